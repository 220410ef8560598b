"""How candle's kernels are called."""

from __future__ import annotations

import torch
from torch.nn import functional

from .elements import Element, blank, distinct, element, ints, longs, numbers, pattern, wide
from .elementwise import BINARY, REDUCTIONS, UNARY, Binary, Unary, binary_inputs, exactly, half_away, result_of
from .recipe import Recipe, RecipeCall, ceil_div

_FLOATS = ("f32", "f16", "bf16")
_ALL = (*_FLOATS, "u8", "u32", "i64")
_COUNT = 36
_SHAPE, _MEMORY = (3, 4, 3), (3, 3, 4)  # a transposed tensor, and its memory
_ROWS, _COLUMNS, _MANY = 5, 50, 200
_WITHOUT_FENCE = (
    "threads exchange through threadgroup memory behind barriers with mem_none, which order no memory: a data race"
)

# Where candle's operation of that name is not what the table has.
_UNARY = {**UNARY, "round": Unary(half_away), "abs": Unary(torch.abs), "erf": Unary(torch.erf, -3, 3, roundings=16)}
_BINARY = {name: BINARY[name.removeprefix("b")] for name in ("badd", "bsub", "bmul", "bdiv", "bminimum", "bmaximum")}
_COMPARISONS = ("eq", "ne", "le", "lt", "ge", "gt")


def _threads(count: int, of: Element) -> int:
    """Of the kernels that give each thread as many elements as eight bytes hold."""
    return ceil_div(count, ceil_div(8, of.size))


def _transposed(of: Element, low: float = -4, high: float = 4, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    memory = numbers(_MEMORY, of, low, high, seed)
    return memory, memory.transpose(1, 2)


def _unary(operation: str, name: str, strided: str | None) -> RecipeCall:
    of, known = element(name), _UNARY[operation]
    if strided:
        memory, x = _transposed(of, known.low, known.high)
        expected = exactly(result_of(known.reference, x), of).contiguous()
        arguments = [x.numel(), x.dim(), longs(x.shape), longs(x.stride()), memory, blank(x.shape, of)]
        return RecipeCall(arguments, {5: expected}, x.numel(), roundings=known.roundings)
    x = numbers(_COUNT, of, known.low, known.high)
    expected = exactly(result_of(known.reference, x), of)
    return RecipeCall([_COUNT, x, blank(_COUNT, of)], {2: expected}, _threads(_COUNT, of), roundings=known.roundings)


def _binary(operation: str, name: str, layout: str | None) -> RecipeCall:
    of = element(name)
    known: Binary = _BINARY.get(operation) or BINARY[operation]
    result = element("bool") if operation in _COMPARISONS else of
    a, b = binary_inputs(known, _MEMORY, of, seed=1)
    looks = {
        "": ("as it is", "as it is"),
        "strided": ("transposed", "transposed"),
        "lstrided": ("transposed", "as it is"),
        "rstrided": ("as it is", "transposed"),
        "scalar": ("scalar", "scalar"),
        "cs": ("as it is", "scalar"),
        "sc": ("scalar", "as it is"),
        "rss": ("scalar", "transposed"),
        "lss": ("transposed", "scalar"),
    }[layout or ""]
    views = []
    for memory, look in zip((a, b), looks, strict=True):
        if look == "transposed":
            views.append(memory.transpose(1, 2))
        else:
            views.append(memory.flatten()[:1].expand(_SHAPE) if look == "scalar" else memory.reshape(_SHAPE))
    left, right = views
    expected = exactly(result_of(known.reference, left, right), result).contiguous()
    out = blank(_SHAPE, result)
    if not layout:
        arguments = [_COUNT, a, b, out]
    else:
        arguments = [_COUNT, 3, longs(_SHAPE), longs(left.stride()), longs(right.stride()), a, b, out]
    return RecipeCall(arguments, {len(arguments) - 1: expected}, _threads(_COUNT, of), roundings=known.roundings)


def _affine(kind: str, name: str, strided: str | None) -> RecipeCall:
    of, factor, addend = element(name), 1.5, 0.25
    known = {
        "affine": Unary(lambda x: x * factor + addend),
        "powf": Unary(lambda x: x**factor, 0.1, 4, roundings=8),
        "elu": Unary(lambda x: torch.where(x > 0, x, factor * torch.expm1(x)), roundings=8),
    }[kind]
    given = [factor, addend] if kind == "affine" else [factor]
    low = known.low if of.is_float else 0
    if strided:
        memory, x = _transposed(of, low, known.high)
        arguments = [x.numel(), x.dim(), longs(x.shape), longs(x.stride()), *given, memory, blank(x.shape, of)]
        threads = x.numel()
    else:
        x = numbers(_COUNT, of, low, known.high)
        arguments = [_COUNT, *given, x, blank(_COUNT, of)]
        threads = _threads(_COUNT, of)
    expected = exactly(known.reference(wide(x).double()), of).contiguous()
    return RecipeCall(arguments, {len(arguments) - 1: expected}, threads, roundings=known.roundings)


def _cast(source: str, target: str, strided: str | None) -> RecipeCall:
    given, of = element(source), element(target)
    low = -9 if of.signed else 0
    if strided:
        memory, x = _transposed(given, low, 9)
        arguments = [x.numel(), x.dim(), longs(x.shape), longs(x.stride()), memory, blank(x.shape, of)]
        return RecipeCall(arguments, {5: x.to(of.dtype).contiguous()}, x.numel())
    x = numbers(_COUNT, given, low, 9)
    return RecipeCall([_COUNT, x, blank(_COUNT, of)], {2: x.to(of.dtype)}, _threads(_COUNT, given))


def _fill(name: str) -> RecipeCall:
    of = element(name)
    value = 2.5 if of.is_float else 7
    casts = {1: of.cast} if of.cast else {}
    return RecipeCall(
        [blank(20, of), value, 17],
        {0: torch.cat([torch.full((17,), value, dtype=of.dtype), blank(3, of)])},
        20,
        casts=casts,
    )


def _where(condition: str, name: str) -> RecipeCall:
    of = element(name)
    chosen = numbers(_COUNT, element(condition), 0, 1)
    taken, other = numbers(_COUNT, of, seed=1), numbers(_COUNT, of, seed=2)
    sizes = [_COUNT, 1, longs([_COUNT]), longs([1]), longs([1]), longs([1])]
    expected = torch.where(chosen != 0, taken, other)
    return RecipeCall([*sizes, chosen, taken, other, blank(_COUNT, of)], {9: expected}, _threads(_COUNT, of))


def _reduce(operation: str, name: str, strided: str | None) -> RecipeCall:
    of = element(name)
    low, high = (0.9, 1.1) if operation == "mul" and of.is_float else (1, 2) if operation == "mul" else (-3, 3)
    columns = 30 if operation == "mul" else _COLUMNS
    memory = numbers((columns, _ROWS) if strided else (_ROWS, columns), of, low, high)
    x = memory.t() if strided else memory
    folded = REDUCTIONS[operation](wide(x))
    strides = [ints(x.stride())] if strided else []
    arguments = [x.numel(), 2, ints(x.shape), *strides, columns, memory, blank(_ROWS, of)]
    expected = {len(arguments) - 1: exactly(folded, of)}
    return RecipeCall(arguments, expected, _ROWS * 32, 32, roundings=32)


def _arg_reduce(which: str, name: str, strided: str | None) -> RecipeCall:
    of = element(name)
    x = distinct(_ROWS, _MANY, of)
    memory = x.t().contiguous() if strided else x
    view = memory.t() if strided else memory
    strides = [ints(view.stride())] if strided else []
    expected = (torch.argmin if which == "min" else torch.argmax)(wide(x), -1).int()
    arguments = [x.numel(), 2, ints(x.shape), *strides, _MANY, memory, blank(_ROWS, element("u32"))]
    return RecipeCall(arguments, {len(arguments) - 1: expected}, _ROWS * 128, 128)


def _softmax(name: str) -> RecipeCall:
    of = element(name)
    x = numbers((_ROWS, _MANY), of)
    arguments = [x.numel(), _MANY, x, blank(x.shape, of)]
    return RecipeCall(arguments, {3: torch.softmax(wide(x), -1)}, _ROWS * 128, 128, roundings=8)


def _norm(kind: str, name: str) -> RecipeCall:
    of, epsilon = element(name), 1e-5
    x = numbers((_ROWS, _COLUMNS), of)
    weight, bias = numbers(_COLUMNS, of, 0.5, 1.5, seed=1), numbers(_COLUMNS, of, -1, 1, seed=2)
    arguments = [x.numel(), _COLUMNS, x, blank(x.shape, of), weight]
    if kind == "rms":
        expected = functional.rms_norm(wide(x), [_COLUMNS], wide(weight), epsilon)
    else:
        expected = functional.layer_norm(wide(x), [_COLUMNS], wide(weight), wide(bias), epsilon)
        arguments.append(bias)
    return RecipeCall([*arguments, epsilon], {3: expected}, _ROWS * 32, 32, roundings=16)


def _rope(kind: str | None, name: str) -> RecipeCall:
    of, batch, heads, time, width = element(name), 2, 3, 4, 8
    cosines, sines = numbers((time, width // 2), of, -1, 1, seed=1), numbers((time, width // 2), of, -1, 1, seed=2)
    c, s = wide(cosines), wide(sines)
    if kind == "thd_":
        x = numbers((batch, time, heads, width), of)
        c, s = c[:, None, :], s[:, None, :]
        sizes = [batch, time, heads, width, 0]
    else:
        x = numbers((batch * heads, time, width), of)
        sizes = [batch * heads, time * width, *([] if kind else [width]), 0]
    given = wide(x)
    first, second = (given[..., ::2], given[..., 1::2]) if kind == "i_" else given.chunk(2, -1)
    turned = first * c - second * s, first * s + second * c
    expected = torch.stack(turned, -1).flatten(-2) if kind == "i_" else torch.cat(turned, -1)
    arguments = [*sizes, x, cosines, sines, blank(x.shape, of)]
    return RecipeCall(arguments, {len(arguments) - 1: expected}, x.numel() // 2)


def _sort(order: str, name: str) -> RecipeCall:
    of, columns, padded = element(name), 50, 64
    x = distinct(_ROWS, columns, of)
    expected = wide(x).argsort(-1, descending=order == "desc").int()
    arguments = [x, blank(x.shape, element("u32")), columns, padded]
    return RecipeCall(arguments, {1: expected}, (padded, _ROWS), (padded, 1), threadgroup_lengths={0: 4 * padded})


# left, dimension, right, indices: what is selected from lies in the middle
_LEFT, _DIMENSION, _RIGHT, _INDICES = 2, 6, 3, 4


def _index_select(index: str, name: str) -> RecipeCall:
    of = element(name)
    x = numbers((_LEFT, _DIMENSION, _RIGHT), of)
    chosen = numbers(_INDICES, element(index), 0, _DIMENSION - 1, seed=1)
    expected = x.index_select(1, chosen.long())
    sizes = [expected.numel(), _LEFT, _DIMENSION, _RIGHT, _INDICES, 1, longs(x.shape), longs(x.stride())]
    return RecipeCall([*sizes, x, chosen, blank(expected.shape, of)], {10: expected}, expected.numel())


def _gather(index: str, name: str) -> RecipeCall:
    of = element(name)
    x = numbers((_LEFT, _DIMENSION, _RIGHT), of)
    chosen = numbers((_LEFT, _INDICES, _RIGHT), element(index), 0, _DIMENSION - 1, seed=1)
    expected = x.gather(1, chosen.long())
    sizes = [expected.numel(), _LEFT, _DIMENSION, _RIGHT, _INDICES]
    return RecipeCall([*sizes, x, chosen, blank(expected.shape, of)], {7: expected}, expected.numel())


def _scatter(adds: str | None, index: str, name: str) -> RecipeCall:
    of = element(name)
    source = numbers((_LEFT, _INDICES, _RIGHT), of)
    order = distinct(_LEFT * _RIGHT, _DIMENSION, element("u8"))[
        :, :_INDICES
    ]  # no place twice, as which comes last is open
    where = order.reshape(_LEFT, _RIGHT, _INDICES).transpose(1, 2).contiguous()
    target = numbers((_LEFT, _DIMENSION, _RIGHT), of, seed=3)
    start = wide(target)
    written = start.scatter_add if adds else start.scatter
    expected = exactly(written(1, where.long(), wide(source)), of)
    sizes = [_LEFT * _RIGHT, _LEFT, _INDICES, _RIGHT, _DIMENSION]
    return RecipeCall([*sizes, source, where.to(element(index).dtype), target], {7: expected}, _LEFT * _RIGHT)


def _index_add(index: str, name: str) -> RecipeCall:
    of = element(name)
    source = numbers((_LEFT, _INDICES, _RIGHT), of)
    chosen = numbers(_INDICES, element(index), 0, _DIMENSION - 1, seed=1)
    target = numbers((_LEFT, _DIMENSION, _RIGHT), of, seed=3)
    expected = exactly(wide(target).index_add(1, chosen.long(), wide(source)), of)
    sizes = [_LEFT * _RIGHT, _LEFT, _INDICES, _RIGHT, _DIMENSION, _INDICES]
    return RecipeCall([*sizes, source, chosen, target], {8: expected}, _LEFT * _RIGHT)


def _im2col(name: str) -> RecipeCall:
    of, kernel, stride, padding, dilation = element(name), (2, 3), 2, 1, 1
    x = numbers((2, 3, 6, 7), of)
    columns = functional.unfold(wide(x).double(), kernel, dilation, padding, stride)
    expected = exactly(columns.transpose(1, 2).contiguous(), of)
    h = (6 + 2 * padding - kernel[0]) // stride + 1
    w = (7 + 2 * padding - kernel[1]) // stride + 1
    sizes = [expected.numel(), h, w, *kernel, stride, padding, dilation, longs(x.shape), longs(x.stride())]
    return RecipeCall([*sizes, x, blank(expected.shape, of)], {11: expected}, expected.numel())


def _pool(kind: str, name: str) -> RecipeCall:
    of, kernel, stride = element(name), (2, 3), (2, 1)
    x = numbers((2, 3, 6, 7), of)
    windows = wide(x).unfold(2, kernel[0], stride[0]).unfold(3, kernel[1], stride[1]).flatten(-2)
    if kind == "max":
        expected = windows.amax(-1)
    else:
        expected = windows.mean(-1) if of.is_float else windows.sum(-1) // (kernel[0] * kernel[1])
    arguments = [*kernel, *stride, longs(x.shape), longs(x.stride()), x, blank(expected.shape, of)]
    return RecipeCall(arguments, {7: exactly(expected, of)}, expected.numel())


def _names(*names: str) -> str:
    return rf"(?P<name>{pattern(*names)})"


_UNARY_NAMES = pattern(
    *("gelu_erf", "sqrt", "sqr", "neg", "recip", "copy", "silu", "gelu", "relu", "cos", "sin", "exp", "log", "abs"),
    *("ceil", "floor", "round", "erf", "sign", "sigmoid", "tanh"),
)
_STRIDED = r"(?P<strided>_strided)?"
_INDEX = rf"(?P<index>{pattern('u8', 'u32', 'i64')})"

RECIPES: tuple[Recipe, ...] = (
    Recipe("unary", "candle", "unary.metal", rf"(?P<operation>{_UNARY_NAMES})_{_names(*_FLOATS)}{_STRIDED}", _unary),
    Recipe(
        *("binary", "candle", "binary.metal"),
        rf"(?P<operation>{pattern(*_BINARY, *_COMPARISONS)})_{_names(*_ALL)}"
        r"(?:_(?P<layout>strided|lstrided|rstrided|scalar|cs|sc|rss|lss))?",
        _binary,
    ),
    Recipe(
        "affine, powers, ELU",
        "candle",
        "affine.metal",
        rf"(?P<kind>affine|powf|elu)_{_names(*_ALL)}{_STRIDED}",
        _affine,
    ),
    Recipe(
        *("cast", "candle", "cast.metal"),
        rf"cast_(?P<source>{pattern(*_ALL)})_(?P<target>{pattern(*_ALL)}){_STRIDED}",
        _cast,
    ),
    Recipe("fill", "candle", "fill.metal", rf"fill_{_names(*_ALL)}", _fill),
    Recipe(
        *(
            "where",
            "candle",
            "ternary.metal",
            rf"where_(?P<condition>{pattern('u8', 'u32', 'i64')})_{_names(*_ALL)}",
            _where,
        ),
        constants={0: True, 1: True, 2: True},
    ),
    Recipe(
        "reduce rows",
        "candle",
        "reduce.metal",
        rf"fast_(?P<operation>sum|mul|min|max)_{_names(*_ALL)}{_STRIDED}",
        _reduce,
    ),
    Recipe(
        "arg reduce",
        "candle",
        "reduce.metal",
        rf"fast_arg(?P<which>min|max)_{_names(*_ALL)}{_STRIDED}",
        _arg_reduce,
        defect=_WITHOUT_FENCE,
        defect_shows_in=("checked",),
    ),
    Recipe(
        "softmax",
        "candle",
        "reduce.metal",
        rf"softmax_{_names(*_FLOATS)}",
        _softmax,
        defect=_WITHOUT_FENCE,
        defect_shows_in=("checked",),
    ),
    Recipe("norms", "candle", "reduce.metal", rf"(?P<kind>rms|layer)norm_{_names(*_FLOATS)}", _norm),
    Recipe("rotary embedding", "candle", "reduce.metal", rf"rope_(?P<kind>i_|thd_)?{_names(*_FLOATS)}", _rope),
    Recipe(
        "sort indices",
        "candle",
        "sort.metal",
        rf"asort_(?P<order>asc|desc)_{_names(*_ALL)}",
        _sort,
    ),
    Recipe("index select", "candle", "indexing.metal", rf"is_{_INDEX}_{_names(*_ALL)}", _index_select),
    Recipe("gather", "candle", "indexing.metal", rf"gather_{_INDEX}_{_names(*_ALL)}", _gather),
    Recipe("scatter", "candle", "indexing.metal", rf"s(?P<adds>a)?_{_INDEX}_{_names(*_ALL)}", _scatter),
    Recipe("index add", "candle", "indexing.metal", rf"ia_{_INDEX}_{_names(*_ALL)}", _index_add),
    Recipe("im2col", "candle", "conv.metal", rf"im2col_{_names(*_ALL)}", _im2col),
    Recipe("pooling", "candle", "conv.metal", rf"(?P<kind>max|avg)_pool2d_{_names(*_ALL)}", _pool),
)
