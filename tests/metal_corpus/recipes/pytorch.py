"""Recipes for the Metal kernels of PyTorch 2.6."""

from __future__ import annotations

import torch
from torch.nn import functional

from .elements import blank, element, exactly, ints, longs, numbers, pattern, wide
from .recipe import Recipe, RecipeCall

_FLOATS = ("float", "half", "bfloat")
_COUNT = 24


def _bessel(order: str, name: str, result: str) -> RecipeCall:
    x = numbers(_COUNT, element(name), -3, 9)
    reference = torch.special.i0 if order == "0" else torch.special.i1
    expected = reference(wide(x).double())
    return RecipeCall([x, blank(_COUNT, element(result))], {1: expected}, _COUNT, roundings=16)


def _offsets(count: int, *bytes_each: int) -> torch.Tensor:
    """For each thread the bytes from where result, first and second input are: a uint3, which takes four places."""
    rows = torch.arange(count, dtype=torch.int32)[:, None] * torch.tensor([*bytes_each, 0], dtype=torch.int32)
    return rows.contiguous()


def _binary(operation: str, name: str) -> RecipeCall:
    of = element(name)
    result = of if of.is_float else element("float")
    a, b = numbers(_COUNT, of, -3, 3, seed=1), numbers(_COUNT, of, -3, 3, seed=2)
    expected = getattr(torch, operation)(a.double(), b.double())
    offsets = _offsets(_COUNT, result.size, of.size, of.size)
    return RecipeCall([a, b, blank(_COUNT, result), offsets], {2: expected}, _COUNT)


def _next_after(name: str) -> RecipeCall:
    of = element(name)
    a, b = numbers(_COUNT, of, -3, 3, seed=1), numbers(_COUNT, of, -3, 3, seed=2)
    a[:4], b[4:6] = 0, a[4:6]
    towards_more = (b > a) == (a > 0)
    bits = a.view(torch.int16 if of.size == 2 else torch.int32)
    moved = torch.where(towards_more, bits + 1, bits - 1).view(of.dtype)
    smallest = torch.ones_like(bits).view(of.dtype)
    moved = torch.where(a == 0, torch.where(b > 0, smallest, -smallest), moved)
    expected = torch.where(a == b, b, moved)
    offsets = _offsets(_COUNT, of.size, of.size, of.size)
    return RecipeCall([a, b, blank(_COUNT, of), offsets], {2: expected.double()}, _COUNT, roundings=0)


def _complex(operation: str, name: str) -> RecipeCall:
    of = element(name)
    pairs = operation == "complex_mul"
    shape = (_COUNT, 2) if pairs else (_COUNT,)
    a, b = numbers(shape, of, 0.5, 3, seed=1), numbers(shape, of, -3, 3, seed=2)
    x, y = wide(a), wide(b)
    if pairs:
        expected = torch.view_as_real(torch.view_as_complex(x) * torch.view_as_complex(y))
    else:
        expected = torch.stack([x * y.cos(), x * y.sin()] if operation == "polar" else [x, y], -1)
    each = 2 * of.size if pairs else of.size
    offsets = _offsets(_COUNT, 2 * of.size, each, each)
    return RecipeCall([a, b, blank((_COUNT, 2), of), offsets], {2: expected}, _COUNT, roundings=8)


def _cross(name: str) -> RecipeCall:
    of, count = element(name), 7
    a, b = numbers((3, count), of, seed=1), numbers((3, count), of, seed=2)
    expected = exactly(torch.linalg.cross(wide(a).double(), wide(b).double(), dim=0), of)
    offsets = _offsets(count, of.size, of.size, of.size)
    return RecipeCall([a, b, blank((3, count), of), offsets, count, count, count], {2: expected}, count, roundings=16)


def _triangle(kind: str, name: str) -> RecipeCall:
    of, rows, columns = element(name), 9, 7
    result = torch.int32 if name == "int" else torch.int64
    if kind == "tril":  # a diagonal of 0: the first row has one element, and below the square lies a rectangle
        expected = torch.tril_indices(rows, columns).to(result)
        sizes = [0, 1, columns, columns * (columns + 1) // 2]
    else:
        expected = torch.triu_indices(rows, columns).to(result)
        sizes = [0, columns, columns, 0]
    count = expected.shape[1]
    return RecipeCall([blank(expected.shape, of), *sizes, count], {0: expected}, count)


def _repeat(name: str) -> RecipeCall:
    of = element(name)
    repeats = numbers(10, of, 0, 4)
    expected = torch.arange(10).repeat_interleave(repeats.long()).to(of.dtype)
    return RecipeCall([repeats, repeats.long().cumsum(0), blank(expected.shape, of)], {2: expected}, 10)


def _renorm(name: str) -> RecipeCall:
    of, largest = element(name), 2.0
    norms = numbers(_COUNT, of, 0.5, 6)
    x = wide(norms)
    expected = torch.where(x > largest, largest / (x + 1e-7), torch.ones_like(x))
    return RecipeCall([norms, blank(_COUNT, of), largest], {1: expected}, _COUNT)


def _searchsorted(name: str, result: str, sorter: str | None) -> RecipeCall:
    of = element(name)
    boundaries, values = numbers(20, of, -9, 9), numbers(33, of, -9, 9, seed=1)
    order = wide(boundaries).argsort(stable=True)
    ordered = boundaries[order]
    values[:4] = ordered[2:6]
    expected = torch.searchsorted(wide(ordered), wide(values), right=True).to(element(result).dtype)
    given = boundaries if sorter else ordered
    arguments = [values, given, blank(33, element(result)), 33, 20, 33, 1, 1]
    return RecipeCall([*arguments, order] if sorter else arguments, {2: expected}, (32, 1), (32, 1))


def _histogram(name: str) -> RecipeCall:
    of, count, bins = element(name), 30, 5
    x = numbers(count, of, -2, 2)
    edges = torch.linspace(-2, 2, bins + 1, dtype=of.dtype)
    places = torch.bucketize(wide(x), wide(edges), right=True).clamp(1, bins) - 1
    expected = functional.one_hot(places, bins).double()
    local = torch.zeros((count, bins), dtype=of.dtype)
    arguments = [
        *(x, x, local, ints(range(count)), 1, edges, longs([bins + 1]), edges[:1].clone(), edges[-1:].clone()),
        *(longs([bins, 1]), 2, 0),
    ]
    return RecipeCall(arguments, {2: expected}, count)


def _index_offset() -> RecipeCall:
    shape, strides = (3, 4, 5), (160, 4, 32)
    count = 60
    expected = sum(
        (torch.arange(count) // after % size) * stride
        for size, stride, after in zip(shape, strides, (20, 5, 1), strict=True)
    )
    assert isinstance(expected, torch.Tensor)
    arguments = [ints(strides), blank(count, element("int")), ints(shape), 3]
    return RecipeCall(arguments, {1: expected.int()}, count)


def _im2col(name: str) -> RecipeCall:
    of, batch, channels, height, width = element(name), 2, 3, 6, 7
    kernel, padding, stride, dilation = (2, 3), 1, 2, 1
    x = numbers((batch, channels, height, width), of)
    columns = functional.unfold(wide(x).double(), kernel, dilation, padding, stride)
    expected = columns.to(of.dtype) if not of.is_float else columns
    out_width = (width + 2 * padding - kernel[1]) // stride + 1
    s, o = x.stride(), columns.stride()
    arguments = [
        *(x, blank(columns.shape, of), [kernel[1], kernel[0], dilation, dilation], [padding, padding, stride, stride]),
        *([s[3], s[2], s[1], s[0]], [o[2], o[1], o[0], out_width], [width, height, channels, batch]),
    ]
    return RecipeCall(arguments, {1: expected}, (columns.shape[2], channels, batch), casts={2: "int32", 3: "int32"})


def _matmul(name: str) -> RecipeCall:
    of, rows, inner, columns = element(name), 5, 9, 6
    a, b = numbers((rows, inner), of, -1, 1, seed=1), numbers((inner, columns), of, -1, 1, seed=2)
    strides = [*a.stride(), *b.stride(), columns, 1]
    arguments = [a, b, blank((rows, columns), of), strides, [rows, inner, columns, 0]]
    return RecipeCall(arguments, {2: wide(a) @ wide(b)}, rows * columns, casts={4: "int32"}, roundings=16)


def _unfold_backward(name: str) -> RecipeCall:
    of, shape, size, step = element(name), (3, 10), 4, 2
    windows = torch.zeros(shape).unfold(1, size, step)
    gradient = numbers(tuple(windows.shape), of)
    expected = torch.zeros(shape, dtype=torch.float64)
    for window in range(windows.shape[1]):
        expected[:, window * step : window * step + size] += wide(gradient)[:, window]
    arguments = [
        *(gradient, blank(shape, of), longs(gradient.stride()), longs(shape), longs((shape[1], 1))),
        [1, size, step, len(shape)],
    ]
    return RecipeCall(arguments, {1: expected}, shape[0] * shape[1], casts={5: "int32"})


def _int4_matmul(group: str, name: str) -> RecipeCall:
    of, rows, inner, columns = element(name), 2, 256, 8
    a = numbers((rows, inner), of, -1, 1)
    weights = numbers((columns, inner), element("uchar"), 0, 15, seed=1)
    groups = inner // int(group)
    scales, zeros = numbers((groups, columns), of, 0.1, 0.2, seed=2), numbers((groups, columns), of, -0.5, 0.5, seed=3)
    each = (weights.long() - 8) * wide(scales).t().repeat_interleave(int(group), 1)
    each = each + wide(zeros).t().repeat_interleave(int(group), 1)
    content = (weights[:, ::2] | weights[:, 1::2] << 4).contiguous()
    both = torch.stack([scales, zeros], -1).contiguous()
    arguments = [a, content, both, blank((rows, columns), of), [rows, inner, columns, 0]]
    threads = (columns // 4 * 32, 1, rows)
    return RecipeCall(arguments, {3: wide(a) @ each.t()}, threads, (32, 1, 1), casts={4: "int32"}, roundings=32)


def _pack_int4() -> RecipeCall:
    rows, columns = 3, 4
    weights = numbers((rows, columns), element("int"), -(2**31), 2**31 - 1)
    content = weights.view(torch.uint8)
    expected = (content << 4) | (content >> 4)
    arguments = [weights, blank(expected.shape, element("uchar")), [rows, columns]]
    return RecipeCall(arguments, {1: expected}, (rows, columns), casts={2: "int32"})


def _bicubic(name: str) -> RecipeCall:
    of, shape, size = element(name), (2, 3, 6, 7), (9, 11)
    x = numbers(shape, of, -1, 1)
    expected = functional.interpolate(wide(x), size, mode="bicubic", align_corners=False)
    s = x.stride()
    o = expected.stride()
    arguments = [
        *(x, blank(expected.shape, of), [s[3], s[2], s[1], s[0]], [o[3], o[2], o[1], o[0]]),
        *([shape[3], shape[2], shape[1], shape[0]], [size[1], size[0], shape[1], shape[0]]),
        *([shape[3] / size[1], shape[2] / size[0]], 0),
    ]
    return RecipeCall(arguments, {1: expected}, size[0] * size[1], roundings=32)


def _names(*names: str) -> str:
    return rf"(?P<name>{pattern(*names)})"


_INTEGERS = ("int", "long", "short", "char", "uchar")
_ANY = _names(*_FLOATS)

RECIPES: tuple[Recipe, ...] = (
    Recipe(
        *("Bessel functions", "pytorch", "SpecialOps.metal"),
        rf"i(?P<order>[01])_{_names(*_FLOATS, *_INTEGERS, 'bool')}_(?P<result>{pattern(*_FLOATS)})",
        _bessel,
    ),
    Recipe(
        "binary",
        "pytorch",
        "BinaryKernel.metal",
        rf"(?P<operation>fmax|fmin|copysign)_{_names(*_FLOATS, *_INTEGERS)}",
        _binary,
    ),
    Recipe("next after", "pytorch", "BinaryKernel.metal", rf"nextafter_kernel_{_ANY}", _next_after),
    Recipe(
        "complex", "pytorch", "BinaryKernel.metal", rf"(?P<operation>polar|complex_mul|complex_kernel)_{_ANY}", _complex
    ),
    Recipe("cross product", "pytorch", "CrossKernel.metal", rf"cross_{_names(*_FLOATS, *_INTEGERS)}", _cross),
    Recipe(
        "indices of triangles",
        "pytorch",
        "TriangularOps.metal",
        r"(?P<kind>tril|triu)_indices_(?P<name>int|long)",
        _triangle,
    ),
    Recipe("repeat", "pytorch", "Repeat.metal", r"repeat_interleave_(?P<name>int32_t|int64_t)", _repeat),
    Recipe("renorm", "pytorch", "RenormKernel.metal", rf"renorm_{_ANY}", _renorm),
    Recipe(
        *("searchsorted", "pytorch", "Bucketization.metal"),
        rf"searchsorted_{_names(*_FLOATS, *_INTEGERS)}_(?P<result>int|long)(?P<sorter>_sorter)?",
        _searchsorted,
    ),
    Recipe("histogram", "pytorch", "HistogramKernel.metal", r"histogramdd_(?P<name>float|half)", _histogram),
    Recipe("offsets", "pytorch", "HistogramKernel.metal", "kernel_index_offset", _index_offset),
    Recipe("im2col", "pytorch", "Im2Col.metal", rf"im2col_{_names(*_FLOATS, 'bool')}", _im2col),
    Recipe("matmul", "pytorch", "LinearAlgebra.metal", rf"naive_matmul_{_ANY}", _matmul),
    Recipe("unfold backward", "pytorch", "UnfoldBackward.metal", rf"unfold_backward_{_ANY}", _unfold_backward),
    Recipe("int4 matmul", "pytorch", "Quantized.metal", rf"int4pack_mm_(?P<group>\d+)_{_ANY}", _int4_matmul),
    Recipe("pack int4", "pytorch", "Quantized.metal", "weight_to_int4pack", _pack_int4),
    Recipe("bicubic", "pytorch", "UpSample.metal", rf"upsample_bicubic2d_{_ANY}", _bicubic),
)
