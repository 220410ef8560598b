"""How MLX's elementwise kernels are called: each operation and type in many layouts, as its host code chooses them."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from .elements import Element, blank, element, ints, longs, numbers, pattern
from .elementwise import BINARY, UNARY, binary_inputs, exactly, result_of
from .recipe import Recipe, RecipeCall, ceil_div

_FLOATS = ("float16", "float32", "bfloat16")
_INTEGERS = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")
_COUNT = 36
_UNARY_OF_FLOATS = (
    *("Abs", "ArcCos", "ArcCosh", "ArcSin", "ArcSinh", "ArcTan", "ArcTanh", "Ceil", "Cos", "Cosh", "Erf", "ErfInv"),
    *("Exp", "Expm1", "Floor", "Log", "Log10", "Log1p", "Log2", "Negative", "Round", "Rsqrt", "Sigmoid", "Sign"),
    *("Sin", "Sinh", "Sqrt", "Square", "Tan", "Tanh"),
)
_UNARY_OF_INTEGERS = ("Abs", "BitwiseInvert", "Ceil", "Floor", "Negative", "Sign", "Square")
_UNARY_OF_COMPLEX = (
    *("Conjugate", "Cos", "Cosh", "Exp", "Log", "Log10", "Log2", "Negative", "Sign", "Sin", "Sinh", "Sqrt", "Square"),
    *("Tan", "Tanh"),
)
_BINARY_OF_FLOATS = (
    *("Add", "ArcTan2", "Divide", "Equal", "Greater", "GreaterEqual", "Less", "LessEqual", "LogAddExp", "Maximum"),
    *("Minimum", "Multiply", "NaNEqual", "NotEqual", "Power", "Remainder", "Subtract"),
)
_BINARY_OF_INTEGERS = (
    *("Add", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Divide", "Equal", "Greater", "GreaterEqual", "LeftShift"),
    *(
        "Less",
        "LessEqual",
        "Maximum",
        "Minimum",
        "Multiply",
        "NotEqual",
        "Power",
        "Remainder",
        "RightShift",
        "Subtract",
    ),
)
_COMPARISONS = ("Equal", "Greater", "GreaterEqual", "Less", "LessEqual", "NaNEqual", "NotEqual")


def _per_thread(of: Element) -> int:
    """Elements that a thread of the layouts with an `n` takes."""
    return max(1, 8 // of.size)


# Of the layouts that take strides: the shape of memory, and how the kernel's tensor looks into it.
def _looked_at(memory: torch.Tensor, rank: int) -> torch.Tensor:
    return memory[::2] if rank == 1 else memory.transpose(-1, -2)


_MEMORY = {1: (14,), 2: (5, 4), 3: (3, 5, 4)}


def _strides(view: torch.Tensor) -> int | torch.Tensor:
    """One stride as a number, more as memory."""
    return int(view.stride(0)) if view.dim() == 1 else longs(view.stride())


def _unary(layout: str, operation: str, name: str) -> RecipeCall:
    of, known = element(name), UNARY[operation.lower()]
    strided = layout.startswith("g")
    x = numbers(_MEMORY[3] if strided else _COUNT, of, known.low, known.high)
    view = _looked_at(x, 3) if strided else x
    expected = exactly(result_of(known.reference, view), of).contiguous()
    out = blank(view.shape, of)
    roundings = 16.0 if of.dtype.is_complex else known.roundings
    if strided:
        each = 4 if layout == "gn4large" else 1
        threads: tuple[int, ...] = (ceil_div(view.shape[2], each), view.shape[1], view.shape[0])
        return RecipeCall(
            [x, out, ints(view.shape), longs(view.stride()), view.dim()], {1: expected}, threads, roundings=roundings
        )
    each = 1 if layout == "v" else _per_thread(of)
    threads = (ceil_div(_COUNT, 2 * each), 2) if layout == "v2" else (ceil_div(_COUNT, each),)
    return RecipeCall([x, out, _COUNT], {1: expected}, threads, roundings=roundings)


def _operands(
    layout: str, operation: str, of: Element
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Memory of both operands, and as what the layout looks at them."""
    known = BINARY[operation.lower()]
    if layout[0] == "g":
        rank = int(layout[1]) if layout[1].isdigit() else 3
        a, b = binary_inputs(known, _MEMORY[rank], of, seed=1)
        second = b[: a.numel() // 2] if rank == 1 else b[:1].reshape(1, *b.shape[1:])
        view = _looked_at(a, rank)
        if rank == 1:
            return a, b, view, second
        flat = b.flatten()[: view[0].numel()].reshape(view[0].shape)
        return a, b, view, flat.expand(view.shape)
    a, b = binary_inputs(known, (_COUNT,), of, seed=1)
    first = a[:1].expand(_COUNT) if layout[0] == "s" else a
    second = b[:1].expand(_COUNT) if layout[1] == "s" else b
    return (a, b, first[:1], second[:1]) if layout == "ss" else (a, b, first, second)


def _binary(layout: str, operation: str, name: str) -> RecipeCall:
    of = element(name)
    known = BINARY[operation.lower()]
    result = element("bool") if operation in _COMPARISONS else of
    a, b, first, second = _operands(layout, operation, of)
    expected = exactly(result_of(known.reference, first, second), result).contiguous()
    out = blank(first.shape, result)
    arguments = [a, b, out]
    if layout == "ss":
        return RecipeCall(arguments, {2: expected}, 1, roundings=known.roundings)
    if layout.startswith("gn"):
        each = 4 if layout == "gn4large" else 2
        threads: tuple[int, ...] = (ceil_div(first.shape[2], each), first.shape[1], first.shape[0])
        more = [ints(first.shape), longs(first.stride()), longs(second.stride()), first.dim()]
        return RecipeCall([*arguments, *more], {2: expected}, threads, roundings=known.roundings)
    if layout.startswith("g"):
        threads = tuple(reversed(first.shape))
        return RecipeCall(
            [*arguments, _strides(first), _strides(second)], {2: expected}, threads, roundings=known.roundings
        )
    return RecipeCall([*arguments, _COUNT], {2: expected}, _flat_threads(layout, of), roundings=known.roundings)


def _flat_threads(layout: str, of: Element) -> tuple[int, ...]:
    """Threads of the layouts `vv`, `vvn` and `vv2`, and of those with a scalar."""
    if layout.endswith("n"):
        return (ceil_div(_COUNT, _per_thread(of)),)
    return (ceil_div(_COUNT, 2 * _per_thread(of)), 2) if layout.endswith("2") else (_COUNT,)


def _select(layout: str, name: str) -> RecipeCall:
    of = element(name)
    condition = numbers(_COUNT, element("bool"))
    first, second = numbers(_COUNT, of, seed=1), numbers(_COUNT, of, seed=2)
    taken = first[:1] if layout.startswith("sv") else first
    other = second[:1] if layout.startswith("vs") else second
    expected = torch.where(condition, taken, other)
    return RecipeCall([condition, first, second, blank(_COUNT, of), _COUNT], {3: expected}, _flat_threads(layout, of))


def _copy(layout: str, source: str, target: str) -> RecipeCall:
    given, of = element(source), element(target)
    # What is copied into unsigned integers must not be negative: the cast is undefined in C++, and saturates on a GPU.
    low = 0 if (not of.signed and not of.is_float) or of.dtype is torch.bool else -9
    strided = layout.startswith("g")
    rank = int(layout[1]) if strided and layout[1].isdigit() else 3
    memory = numbers(_MEMORY[rank] if strided else _COUNT, given, low, 9)
    view = _looked_at(memory, rank) if strided else memory[:1].expand(_COUNT) if layout.startswith("s") else memory
    expected = view.to(of.dtype).contiguous() if of.dtype is not torch.bool else (view != 0).contiguous()
    out = blank(view.shape, of)
    if layout.startswith("gn"):
        each = 4 if layout == "gn4large" else 2
        threads: tuple[int, ...] = (ceil_div(view.shape[2], each), view.shape[1], view.shape[0])
        return RecipeCall([memory, out, ints(view.shape), longs(view.stride()), 0, view.dim()], {1: expected}, threads)
    if strided:
        return RecipeCall([memory, out, 0, _strides(view)], {1: expected}, tuple(reversed(view.shape)))
    return RecipeCall([memory, out, _COUNT], {1: expected}, _flat_threads(layout, of))


def _arange(name: str) -> RecipeCall:
    of = element(name)
    start: Sequence[float] = (0.5, 0.25) if of.is_float else (3, 2)
    expected = wide_range(start[0], start[1], 40)
    casts = {0: of.cast, 1: of.cast} if of.cast else {}
    return RecipeCall([start[0], start[1], blank(40, of)], {2: exactly(expected, of)}, 40, casts=casts)


def wide_range(start: float, step: float, count: int) -> torch.Tensor:
    """`count` numbers from `start` on."""
    return start + step * torch.arange(count, dtype=torch.float64)


_ALL = "v|vn|v2|gn1|gn4large"
_PAIRS = "ss|[sv]v|vs|[sv]v2|vs2|[sv]vn|vsn|g[123](?:large)?|gn2|gn4large"


def _names(layouts: str, operations: Sequence[str], types: Sequence[str], twice: bool = False) -> str:
    again = "(?P=name)" if twice else ""
    return f"(?P<layout>{layouts})_(?P<operation>{pattern(*operations)})(?P<name>{pattern(*types)}){again}"


RECIPES: tuple[Recipe, ...] = (
    Recipe("unary, floats", "mlx", "unary.metal", _names(_ALL, _UNARY_OF_FLOATS, _FLOATS, twice=True), _unary),
    Recipe("unary, integers", "mlx", "unary.metal", _names(_ALL, _UNARY_OF_INTEGERS, _INTEGERS, twice=True), _unary),
    Recipe("unary, complex", "mlx", "unary.metal", _names(_ALL, _UNARY_OF_COMPLEX, ["complex64"], twice=True), _unary),
    Recipe("binary, floats", "mlx", "kernels/binary.metal", _names(_PAIRS, _BINARY_OF_FLOATS, _FLOATS), _binary),
    Recipe("binary, integers", "mlx", "kernels/binary.metal", _names(_PAIRS, _BINARY_OF_INTEGERS, _INTEGERS), _binary),
    Recipe(
        "binary, bools", "mlx", "kernels/binary.metal", _names(_PAIRS, ["LogicalAnd", "LogicalOr"], ["bool_"]), _binary
    ),
    Recipe(
        *("select", "mlx", "ternary.metal"),
        rf"(?P<layout>v|vs|sv|v2|vs2|sv2|vn|vsn|svn)_Select(?P<name>{pattern('bool_', *_FLOATS, *_INTEGERS)})",
        _select,
    ),
    Recipe(
        *("copy", "mlx", "kernels/copy.metal"),
        rf"(?P<layout>[sv]n?|[sv]2|g[123](?:large)?|gn2|gn4large)_copy"
        rf"(?P<source>{pattern('bool_', *_FLOATS, *_INTEGERS)})"
        rf"(?P<target>{pattern('bool_', *_FLOATS, *_INTEGERS)})",
        _copy,
    ),
    Recipe("arange", "mlx", "arange.metal", rf"arange(?P<name>{pattern(*_FLOATS, *_INTEGERS)})", _arange),
)
