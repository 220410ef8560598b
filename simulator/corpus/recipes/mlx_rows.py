"""How MLX's kernels by rows are called: softmax, norms, reductions, scans, searches, rotary embeddings."""

from __future__ import annotations

import torch
from torch.nn import functional

from .elements import Element, blank, distinct, element, ints, longs, numbers, pattern, wide
from .elementwise import REDUCTIONS, exactly
from .recipe import Recipe, RecipeCall, ceil_div

_FLOATS = ("float16", "float32", "bfloat16")
_INTEGERS = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")
_ROWS, _COLUMNS, _LONG = 5, 37, 300
_WHOLE_GROUP = 1024  # of the looped kernels, which read what each SIMD group of so many has written
_EACH = 4  # elements that a thread reads at a time
_EPSILON = 1e-5


def _group(columns: int, looped: bool, each: int = _EACH) -> int:
    """Threads of a group: enough for a row at once, or as many as there are."""
    return _WHOLE_GROUP if looped else ceil_div(ceil_div(columns, each), 32) * 32


def _shape(looped: object, columns: int = _COLUMNS) -> tuple[int, int]:
    return (2, _WHOLE_GROUP * _EACH + 100) if looped else (_ROWS, columns)


def _softmax(looped: str | None, precise: str | None, name: str) -> RecipeCall:
    of, shape = element(name), _shape(looped)
    x = numbers(shape, of)
    group = _group(shape[1], bool(looped))
    expected = torch.softmax(wide(x), -1)
    return RecipeCall(
        [x, blank(shape, of), shape[1]], {1: expected}, shape[0] * group, group, roundings=4 if precise else 8
    )


def _logsumexp(looped: str | None, name: str) -> RecipeCall:
    of, shape = element(name), _shape(looped)
    x = numbers(shape, of)
    group = _group(shape[1], bool(looped))
    expected = torch.logsumexp(wide(x), -1)
    return RecipeCall([x, blank(shape[0], of), shape[1]], {1: expected}, shape[0] * group, group)


def _layer_norm(looped: str | None, name: str) -> RecipeCall:
    # Of shorter rows, threads behind the last element would write in front of their own array.
    of, shape = element(name), _shape(looped, 252)
    x, weight, bias = numbers(shape, of), numbers(shape[1], of, 0.5, 1.5, seed=1), numbers(shape[1], of, -1, 1, seed=2)
    group = _group(shape[1], bool(looped), each=8)
    expected = functional.layer_norm(wide(x), shape[1:], wide(weight), wide(bias), _EPSILON)
    arguments = [x, weight, bias, blank(shape, of), _EPSILON, shape[1], 1, 1]
    return RecipeCall(arguments, {3: expected}, shape[0] * group, group, roundings=8)


def _rms_norm(looped: str | None, name: str) -> RecipeCall:
    of, shape = element(name), _shape(looped)
    x, weight = numbers(shape, of), numbers(shape[1], of, 0.5, 1.5, seed=1)
    group = _group(shape[1], bool(looped))
    expected = functional.rms_norm(wide(x), [shape[1]], wide(weight), _EPSILON)
    return RecipeCall(
        [x, weight, blank(shape, of), _EPSILON, shape[1], 1], {2: expected}, shape[0] * group, group, roundings=8
    )


def _arg_reduce(which: str, name: str) -> RecipeCall:
    of = element(name)
    x = distinct(_ROWS, _COLUMNS, of)
    expected = (torch.argmin if which == "min" else torch.argmax)(wide(x), -1).int()
    out = blank(_ROWS, element("uint32"))
    arguments = [x, out, ints([_ROWS]), longs([_COLUMNS]), longs([1]), 1, 1, _COLUMNS]
    return RecipeCall(arguments, {1: expected}, (32, _ROWS, 1), (32, 1, 1))


_SMALL = {"prod": (0.75, 1.25)}


def _to_reduce(operation: str, shape: tuple[int, ...], of: Element) -> torch.Tensor:
    if operation == "prod" and not of.is_float:
        x = torch.ones(shape, dtype=of.dtype)
        x.flatten()[::7] = 2
        return x
    return numbers(shape, of, *_SMALL.get(operation, (-2, 2)))


def _accumulated(operation: str, of: Element) -> Element:
    """The type in which MLX sums and multiplies: small integers as 32 bits."""
    if operation in ("and", "or"):
        return element("bool")
    if operation in ("sum", "prod") and not of.is_float and of.size < 4:
        return element("uint32" if of == element("uint16") else "int32")
    return of


def _reduced(operation: str, x: torch.Tensor, dims: tuple[int, ...]) -> torch.Tensor:
    if operation in ("and", "or"):
        truth = x != 0
        return truth.all(dims) if operation == "and" else truth.any(dims)
    return REDUCTIONS[operation](wide(x).flatten(-len(dims)))


def _reduction(operation: str, name: str, shape: tuple[int, ...], dims: tuple[int, ...]) -> tuple[torch.Tensor, ...]:
    of = element(name)
    x = _to_reduce(operation, shape, of)
    result = _accumulated(operation, of)
    expected = exactly(_reduced(operation, x, dims), result)
    return x, blank(max(1, expected.numel()), result), expected.reshape(-1)


_OF_SUMS = 48.0  # roundings: half precision adds in half precision


def _all_reduce(operation: str, name: str) -> RecipeCall:
    x, out, expected = _reduction(operation, name, (_LONG,), (0,))
    return RecipeCall([x, out, _LONG, _LONG], {1: expected}, (64, 1, 1), (64, 1, 1), roundings=_OF_SUMS)


def _row_reduce_simple(operation: str, name: str) -> RecipeCall:
    x, out, expected = _reduction(operation, name, (_ROWS, _LONG), (1,))
    threads = (32, ceil_div(_ROWS, _EACH), 1)
    return RecipeCall([x, out, _LONG, _ROWS], {1: expected}, threads, (32, 1, 1), roundings=_OF_SUMS)


def _row_reduce(kind: str, operation: str, name: str) -> RecipeCall:
    """Over rows, and over the dimension before them."""
    outer, inner = 3, 4
    x, out, expected = _reduction(operation, name, (outer, inner, _COLUMNS), (1, 2))
    strides = x.stride()
    arguments = [
        *(x, out, _COLUMNS, inner, ints([outer]), longs([strides[0]]), 1),
        *(ints([inner]), longs([strides[1]]), 1),
    ]
    looped = kind == "looped"
    threads = (32, outer, 1) if looped else (outer, 1, 1)
    return RecipeCall(arguments, {1: expected}, threads, (32, 1, 1) if looped else (outer, 1, 1), roundings=_OF_SUMS)


def _init_reduce(operation: str, name: str) -> RecipeCall:
    of = element(name)
    limits = torch.finfo(of.dtype) if of.is_float else None if of.dtype is torch.bool else torch.iinfo(of.dtype)
    largest = float("inf") if of.is_float else 1 if limits is None else limits.max
    smallest = float("-inf") if of.is_float else 0 if limits is None or not of.signed else limits.min
    start = {"sum": 0, "prod": 1, "and": 1, "or": 0, "min": largest, "max": smallest}[operation]
    expected = torch.full((9,), start, dtype=torch.float64 if of.is_float else of.dtype)
    return RecipeCall([blank(9, of)], {0: expected}, 9)


def _scan(reverse: str | None, kind: str, operation: str, name: str) -> RecipeCall:
    of, shape = element(name), (_ROWS, 150)
    x = numbers(shape, of, 0.98, 1.02) if operation == "prod" and of.is_float else _to_reduce(operation, shape, of)
    ordered = wide(x).flip(-1) if reverse else wide(x)
    scanned = {
        "sum": lambda t: t.cumsum(-1),
        "prod": lambda t: t.cumprod(-1),
        "max": lambda t: t.cummax(-1).values,
        "min": lambda t: t.cummin(-1).values,
    }[operation](ordered)
    if kind == "exclusive":
        scanned = torch.cat([torch.full_like(scanned[:, :1], {"sum": 0, "prod": 1}[operation]), scanned[:, :-1]], -1)
    expected = exactly(scanned.flip(-1) if reverse else scanned, of)
    return RecipeCall([x, blank(shape, of), 150], {1: expected}, (32, _ROWS, 1), (32, 1, 1), roundings=_OF_SUMS)


def _searchsorted(name: str, side: str) -> RecipeCall:
    of = element(name)
    boundaries, values = numbers(20, of, -9, 9).sort().values, numbers(33, of, -9, 9, seed=1)
    values[:4] = boundaries[2:6]  # what is equal decides between the sides
    expected = torch.searchsorted(wide(boundaries), wide(values), right=side == "right").int()
    return RecipeCall([boundaries, values, blank(33, element("uint32")), 20, 1], {2: expected}, (33, 1, 1))


def _rope_single(frequencies: str | None, name: str) -> RecipeCall:
    of, heads, half, offset, scale = element(name), 3, 8, 5, 0.5
    x = numbers((heads, 2 * half), of)
    base = 10.0  # log2 of the base of the frequencies
    given = numbers(half, element("float32"), 1, 20, seed=1)
    inverse = 1 / wide(given) if frequencies else torch.exp2(-torch.arange(half, dtype=torch.float64) / half * base)
    angle = scale * offset * inverse
    first, second = wide(x)[:, :half], wide(x)[:, half:]
    expected = torch.cat([first * angle.cos() - second * angle.sin(), first * angle.sin() + second * angle.cos()], -1)
    last = [given, 1] if frequencies else [base]
    arguments = [x, blank(x.shape, of), offset, scale, 2 * half, 0, 0, 0, 0, 0, *last]
    return RecipeCall(arguments, {1: expected}, (half, heads), roundings=8)


_UNWRITTEN_SUMS = (
    "each lane loads the sum of a SIMD group, also where there is no such group and nothing wrote one; it is not used"
)
_OPERATIONS = r"(?P<operation>sum|prod|min|max)"
_NUMBERS = rf"(?P<name>{pattern(*_FLOATS, *_INTEGERS)})"
_REAL = rf"(?P<name>{pattern(*_FLOATS)})"
_TRUTH = rf"(?P<operation>and|or)(?P<name>{pattern('int16', 'int32', 'int64', *_FLOATS)})"

RECIPES: tuple[Recipe, ...] = (
    Recipe(
        "softmax",
        "mlx",
        "kernels/softmax.metal",
        rf"(?:block|(?P<looped>looped))_softmax_(?P<precise>precise_)?{_REAL}",
        _softmax,
    ),
    Recipe("logsumexp", "mlx", "logsumexp.metal", rf"(?:block|(?P<looped>looped))_logsumexp_{_REAL}", _logsumexp),
    Recipe("layer norm", "mlx", "layer_norm.metal", rf"layer_norm(?P<looped>_looped)?{_REAL}", _layer_norm),
    Recipe("RMS norm", "mlx", "rms_norm.metal", rf"rms(?P<looped>_looped)?{_REAL}", _rms_norm),
    Recipe("arg reduce", "mlx", "arg_reduce.metal", rf"arg(?P<which>min|max)_{_NUMBERS}", _arg_reduce),
    Recipe("reduce all", "mlx", "kernels/reduce.metal", rf"all_reduce_{_OPERATIONS}{_NUMBERS}", _all_reduce),
    Recipe("reduce to truth", "mlx", "kernels/reduce.metal", rf"all_reduce_{_TRUTH}", _all_reduce),
    Recipe(
        "reduce rows", "mlx", "kernels/reduce.metal", rf"row_reduce_simple_{_OPERATIONS}{_NUMBERS}", _row_reduce_simple
    ),
    Recipe(
        *("reduce rows of rows", "mlx", "kernels/reduce.metal"),
        rf"row_reduce_(?P<kind>small|looped)(?:_large)?_1_reduce_{_OPERATIONS}{_NUMBERS}",
        _row_reduce,
    ),
    Recipe(
        "start of a reduction", "mlx", "kernels/reduce.metal", rf"init_reduce_{_OPERATIONS}{_NUMBERS}", _init_reduce
    ),
    Recipe(
        *("scan", "mlx", "scan.metal"),
        rf"contig_scan_(?P<reverse>reverse_)?(?P<kind>inclusive)_{_OPERATIONS}_{_NUMBERS}_(?P=name)",
        _scan,
        defect=_UNWRITTEN_SUMS,
        defect_shows_in=("checked",),
    ),
    Recipe(
        *("exclusive scan", "mlx", "scan.metal"),
        rf"contig_scan_(?P<reverse>reverse_)?(?P<kind>exclusive)_(?P<operation>sum|prod)_{_NUMBERS}_(?P=name)",
        _scan,
        defect=_UNWRITTEN_SUMS,
        defect_shows_in=("checked",),
    ),
    Recipe(
        "searchsorted", "mlx", "searchsorted.metal", rf"searchsorted_{_NUMBERS}_(?P<side>left|right)", _searchsorted
    ),
    Recipe(
        *("rotary embedding", "mlx", "rope.metal", rf"rope_single_(?P<frequencies>freqs_)?{_REAL}", _rope_single),
        constants={1: True, 2: False, 3: False},
    ),
)
