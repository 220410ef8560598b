"""Recipes for kernels of packages on PyPI."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

import torch

from .elements import blank, element, exactly, numbers, packed, wide
from .recipe import Recipe, RecipeCall, ceil_div

_FLOAT, _HALF, _BYTE = element("float"), element("half"), element("u8")


# ------------------------------------------------------------------------------------------ mccl
_COUNT = 45  # five whole steps of eight, and what remains


_OPERATIONS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "chunk": torch.add,
    "min": torch.minimum,
    "max": torch.maximum,
    "product": torch.mul,
}


def _into(operation: str, name: str) -> RecipeCall:
    of = element(name)
    operate = _OPERATIONS[operation]
    target, source = numbers(_COUNT, of, -3, 3), numbers(_COUNT, of, -3, 3, seed=1)
    expected = exactly(operate(wide(target), wide(source)), of)
    return RecipeCall([target, source, _COUNT, 1], {0: expected}, ceil_div(_COUNT, 8))


def _scaled(adds: str | None, name: str) -> RecipeCall:
    of = element(name)
    factor = 0.5 if of.is_float else 3.0
    target, source = numbers(_COUNT, of, -3, 3), numbers(_COUNT, of, -3, 3, seed=1)
    total = (wide(target) + wide(source) if adds else wide(target)) * factor
    given = [source] if adds else []
    casts = {1 + len(given): of.cast} if of.cast else {}
    arguments = [target, *given, factor, _COUNT, 1]
    return RecipeCall(arguments, {0: exactly(total, of)}, ceil_div(_COUNT, 8), casts=casts)


_BATCH, _LENGTH, _POINTS, _HOP = 2, 64, 16, 8
_FRAMES, _FREQUENCIES = (_LENGTH - _POINTS) // _HOP + 1, _POINTS // 2 + 1


def _spectrum() -> RecipeCall:
    x, window = numbers((_BATCH, _LENGTH), _FLOAT, -1, 1), torch.hann_window(_POINTS)
    frames = wide(x).unfold(1, _POINTS, _HOP) * window.double()
    spectrum = torch.fft.rfft(frames).transpose(1, 2)
    shape = (_BATCH, _FREQUENCIES, _FRAMES)
    sizes = [_BATCH, _LENGTH, _LENGTH, _POINTS, _HOP, _FRAMES, _FREQUENCIES, int(math.log2(_POINTS))]
    arguments = [x, window, blank(shape, _FLOAT), blank(shape, _FLOAT), *sizes]
    expected = {2: spectrum.real.contiguous(), 3: spectrum.imag.contiguous()}
    return RecipeCall(arguments, expected, (_BATCH, _FRAMES, 1), roundings=32)


def _signal() -> RecipeCall:
    x, window = numbers((_BATCH, _FRAMES, _POINTS), _FLOAT, -1, 1), torch.hann_window(_POINTS)
    spectrum = torch.fft.rfft(wide(x)).transpose(1, 2)
    real, imaginary = spectrum.real.float().contiguous(), spectrum.imag.float().contiguous()
    sizes = [_BATCH, _POINTS, _FRAMES, _FREQUENCIES, int(math.log2(_POINTS))]
    arguments = [real, imaginary, window, blank(x.shape, _FLOAT), *sizes]
    return RecipeCall(arguments, {3: wide(x) * window.double()}, (_BATCH, _FRAMES, 1), roundings=32)


def _overlap_add() -> RecipeCall:
    x = numbers((_BATCH, _FRAMES, _POINTS), _FLOAT, -1, 1)
    total, times = (
        torch.zeros((_BATCH, _LENGTH), dtype=torch.float64),
        torch.zeros((_BATCH, _LENGTH), dtype=torch.float64),
    )
    for frame in range(_FRAMES):
        total[:, frame * _HOP : frame * _HOP + _POINTS] += wide(x)[:, frame]
        times[:, frame * _HOP : frame * _HOP + _POINTS] += 1
    shape = (_BATCH, _LENGTH)
    arguments = [x, blank(shape, _FLOAT), blank(shape, _FLOAT), _BATCH, _LENGTH, _POINTS, _HOP, _FRAMES, 1e-8]
    return RecipeCall(arguments, {1: total, 2: times.clamp(min=1e-8)}, (_BATCH, _LENGTH, 1))


def _normalized() -> RecipeCall:
    total, times = numbers(_COUNT, _FLOAT), numbers(_COUNT, _FLOAT, 0.5, 3, seed=1)
    return RecipeCall([total, times, _COUNT], {0: wide(total) / wide(times)}, 48)


# ------------------------------------------------------------------------------------------ metal-gauss
def _adam() -> RecipeCall:
    rate, first, second, epsilon, step = 0.01, 0.9, 0.999, 1e-8, 3
    p, g = numbers(_COUNT, _FLOAT), numbers(_COUNT, _FLOAT, seed=1)
    m, v = numbers(_COUNT, _FLOAT, -1, 1, seed=2), numbers(_COUNT, _FLOAT, 0.1, 1, seed=3)
    corrections = 1 - first**step, math.sqrt(1 - second**step)
    mean = first * wide(m) + (1 - first) * wide(g)
    square = second * wide(v) + (1 - second) * wide(g) ** 2
    moved = wide(p) - rate / corrections[0] * mean / (square.sqrt() / corrections[1] + epsilon)
    sizes = packed(struct.pack("<I6f", _COUNT, rate, first, second, epsilon, *corrections))
    return RecipeCall([p, g, m, v, sizes], {0: moved, 2: mean, 3: square}, 48, roundings=8)


# ------------------------------------------------------------------------------------------ mps-bitsandbytes
_M, _N, _K = 35, 40, 70


def _tiles() -> tuple[tuple[int, int], tuple[int, int]]:
    return (ceil_div(_N, 32) * 8, ceil_div(_M, 32) * 8), (8, 8)


def _int8_matmul() -> RecipeCall:
    a, b = numbers((_M, _K), element("char"), -100, 100), numbers((_K, _N), element("char"), -100, 100, seed=1)
    arguments = [a, b, blank((_M, _N), element("int")), _M, _N, _K]
    return RecipeCall(arguments, {2: (wide(a) @ wide(b)).int()}, *_tiles())


def _int8_matmul_dequantized() -> RecipeCall:
    a, b = numbers((_M, _K), element("char"), -100, 100), numbers((_K, _N), element("char"), -100, 100, seed=1)
    rows, columns = numbers(_M, _FLOAT, 0.5, 2, seed=2), numbers(_N, _FLOAT, 0.5, 2, seed=3)
    expected = (wide(a) @ wide(b)) * wide(rows)[:, None] * wide(columns) / 127**2
    return RecipeCall([a, b, blank((_M, _N), _HALF), rows, columns, _M, _N, _K], {2: expected}, *_tiles())


def _dequantized() -> RecipeCall:
    x = numbers((_M, _N), element("int"), -20000, 20000)
    rows, columns = numbers(_M, _FLOAT, 0.5, 2, seed=2), numbers(_N, _FLOAT, 0.5, 2, seed=3)
    expected = wide(x) * wide(rows)[:, None] * wide(columns) / 127**2
    return RecipeCall([x, blank((_M, _N), _HALF), rows, columns, _M, _N], {1: expected}, (40, 40))


# ------------------------------------------------------------------------------------------ fp4-fp8-for-torch-mps
_FLOAT8 = {
    "e4m3fn": torch.float8_e4m3fn,
    "e5m2": torch.float8_e5m2,
    "e4m3fnuz": torch.float8_e4m3fnuz,
    "e5m2fnuz": torch.float8_e5m2fnuz,
}
_FP4 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=torch.float64)


def _of_float8(kind: str, name: str) -> RecipeCall:
    content = torch.arange(256).to(torch.uint8)
    expected = content.view(_FLOAT8[kind]).double()
    return RecipeCall([content, blank(256, element(name)), 256], {1: expected}, 256, roundings=1, least=0)


def _of_e4m3(name: str) -> RecipeCall:
    return _of_float8("e4m3fn", name)


def _of_powers() -> RecipeCall:
    content = torch.arange(256).to(torch.uint8)
    expected = torch.exp2(content.double() - 127)
    expected[255] = math.nan
    return RecipeCall([content, blank(256, _FLOAT), 256], {1: expected}, 256, roundings=1, least=0)


def _to_float8(kind: str) -> RecipeCall:
    """Numbers of all sizes that the type has, and smaller ones."""
    powers = numbers(400, _FLOAT, -14, 7, seed=1).double().exp2()
    x = (powers * (1 - 2 * (torch.arange(400) % 2))).float()
    expected = x.to(_FLOAT8[kind]).view(torch.uint8)
    return RecipeCall([x, blank(400, _BYTE), 400], {1: expected}, 400)


def _to_e4m3() -> RecipeCall:
    return _to_float8("e4m3fn")


def _of_pairs() -> RecipeCall:
    content = numbers(40, _BYTE, 0, 255)
    values = torch.stack([content & 15, content >> 4], 1).long()
    return RecipeCall([content, blank((40, 2), _HALF), 40], {1: _FP4[values]}, 40)


def _to_pairs() -> RecipeCall:
    x = numbers((40, 2), _FLOAT, -7, 7)
    nearest = (wide(x).abs()[..., None] - _FP4[:8]).abs().argmin(-1) + 8 * (wide(x) < 0)
    expected = (nearest[:, 0] | nearest[:, 1] << 4).to(torch.uint8)
    return RecipeCall([x, blank(40, _BYTE), 40], {1: expected}, 40)


def _lookup(name: str) -> RecipeCall:
    of = element(name)
    content, table = numbers(50, _BYTE, 0, 255), numbers(256, of, seed=1)
    return RecipeCall([content, table, blank(50, of), 50], {2: wide(table)[content.long()]}, 64, roundings=0)


# ------------------------------------------------------------------------------------------ evo2-metal
def _attention() -> RecipeCall:
    length, width, rows, columns = 40, 32, 16, 16
    q, k, v = (numbers((length, width), _FLOAT, -1, 1, seed=seed) for seed in range(3))
    scale = width**-0.5
    expected = torch.softmax(wide(q) @ wide(k).t() * scale, -1) @ wide(v)
    arguments = [q, k, v, blank(q.shape, _FLOAT), length, width, columns, rows, scale]
    tile = columns * width * 4
    groups = ceil_div(length, rows)
    return RecipeCall(
        arguments, {3: expected}, groups * rows, rows, threadgroup_lengths={0: tile, 1: tile}, roundings=32
    )


_MCCL: tuple[tuple[str, str, Callable[..., RecipeCall]], ...] = (
    ("spectra", "stft_rfft_frame", _spectrum),
    ("overlap and add", "stft_overlap_add", _overlap_add),
    ("normalise", "stft_normalize_ola", _normalized),
)
_TYPES = r"(?P<name>f32|f16|bf16|i32|i64|u8)"
_FP8_FILE = "fp8_matmul.metal"

RECIPES: tuple[Recipe, ...] = (
    Recipe(
        *("into memory", "mccl", "shaders.metal"),
        rf"(?:accumulate|elementwise)_(?P<operation>chunk|min|max|product)_{_TYPES}",
        _into,
    ),
    Recipe("scaled", "mccl", "shaders.metal", rf"(?:scale_inplace|(?P<adds>accumulate)_scale)_{_TYPES}", _scaled),
    *(Recipe(name, "mccl", "shaders.metal", kernel, call) for name, kernel, call in _MCCL),
    Recipe(
        *("signals of spectra", "mccl", "shaders.metal", "stft_irfft_frame", _signal),
        defect="the upper half of the spectrum, the conjugate of the lower one, is taken as zero: most frequencies "
        "come back halved",
    ),
    Recipe("Adam", "metal-gauss", "adam.metal", "adam_step", _adam),
    Recipe("int8 matmul", "mps-bitsandbytes", "int8_mm.metal", "int8_matmul_tiled", _int8_matmul),
    Recipe("int8 matmul to half", "mps-bitsandbytes", "int8_mm.metal", "int8_matmul_dequant", _int8_matmul_dequantized),
    Recipe("dequantise", "mps-bitsandbytes", "int8_mm.metal", "dequantize_int32_to_fp16", _dequantized),
    Recipe(
        *("of float8", "fp4-fp8-for-torch-mps", _FP8_FILE),
        r"fp8_(?P<kind>e5m2|e4m3fnuz|e5m2fnuz)_to_(?P<name>half|float)_arithmetic_kernel",
        _of_float8,
    ),
    Recipe(
        *("of float8", "fp4-fp8-for-torch-mps", _FP8_FILE),
        r"fp8(?:_e4m3fn)?_to_(?P<name>half|float)(?:_arithmetic)?_kernel",
        _of_e4m3,
    ),
    Recipe(
        "of powers of two", "fp4-fp8-for-torch-mps", _FP8_FILE, "fp8_e8m0fnu_to_float_arithmetic_kernel", _of_powers
    ),
    Recipe(
        *("to float8", "fp4-fp8-for-torch-mps", _FP8_FILE),
        r"float_to_fp8_(?P<kind>e5m2|e5m2fnuz)_arithmetic_kernel",
        _to_float8,
    ),
    Recipe(
        *("to float8 E4M3FNUZ", "fp4-fp8-for-torch-mps", _FP8_FILE),
        r"float_to_fp8_(?P<kind>e4m3fnuz)_arithmetic_kernel",
        _to_float8,
        defect="a negative number that is too small keeps its sign, which makes the NaN of this type of it",
    ),
    Recipe(
        *("to float8 E4M3", "fp4-fp8-for-torch-mps", _FP8_FILE, "float_to_fp8_kernel", _to_e4m3),
        defect="what lies between half of the smallest number and that number becomes zero, and not that number",
    ),
    Recipe("of pairs of float4", "fp4-fp8-for-torch-mps", _FP8_FILE, "fp4x2_to_half(?:_arithmetic)?_kernel", _of_pairs),
    Recipe("to pairs of float4", "fp4-fp8-for-torch-mps", _FP8_FILE, "float_to_fp4x2_kernel", _to_pairs),
    Recipe("table", "fp4-fp8-for-torch-mps", _FP8_FILE, "fp8_lut_to_(?P<name>half|float)_kernel", _lookup),
    Recipe("attention", "evo2-metal", "flash_attention.metal", "flash_attention_forward", _attention),
)
