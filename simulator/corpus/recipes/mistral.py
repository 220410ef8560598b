"""How kernels of mistral.rs are called."""

from __future__ import annotations

import struct

import torch
from torch.nn import functional

from .elements import blank, element, numbers, packed, pattern, wide
from .elementwise import exactly
from .recipe import Recipe, RecipeCall

_COUNT = 40
_FLOATS = ("float", "half", "bfloat", "bfloat16_t")
_NF4 = torch.tensor(
    [
        *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635),
        *(-0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725),
        *(0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
    ],
    dtype=torch.float64,
)
_FP4 = torch.tensor([0, 5.208333333e-03, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4], dtype=torch.float64)


def _float8(count: int) -> torch.Tensor:
    """Bytes of E4M3 that are numbers, none of them among the smallest ones."""
    return numbers(count, element("u8"), 8, 119)


def _of_float8(content: torch.Tensor) -> torch.Tensor:
    return content.view(torch.float8_e4m3fn).double()


def _softcap() -> RecipeCall:
    x = numbers(_COUNT, element("float"), -60, 60)
    expected = 30 * torch.tanh(wide(x) / 30)
    return RecipeCall([x, blank(_COUNT, element("float")), _COUNT, 30.0], {1: expected}, 48, roundings=8)


def _fused_glu(name: str) -> RecipeCall:
    of = element(name)
    a, b = numbers(_COUNT, of), numbers(_COUNT, of, seed=1)
    expected = functional.silu(wide(a)) * wide(b)
    return RecipeCall([a, b, blank(_COUNT, of), _COUNT, 0], {2: expected}, 48, roundings=8)


def _rms_norm_residual(name: str) -> RecipeCall:
    of, rows, columns = element(name), 4, 50
    x, residual = numbers((rows, columns), of), numbers((rows, columns), of, seed=1)
    weight, scale = numbers(columns, of, 0.5, 1.5, seed=2), numbers(1, of, 0.5, 1.5, seed=3)
    expected = (functional.rms_norm(wide(x), [columns], wide(weight), 1e-5) + wide(residual)) * wide(scale)
    arguments = [x, residual, weight, scale, blank(x.shape, of), columns, 1e-5, 1]
    return RecipeCall(arguments, {4: expected}, rows * 64, 64, threadgroup_lengths={0: 256}, roundings=8)


def _bitwise(operation: str, name: str) -> RecipeCall:
    of = element(name)
    a, b = numbers(_COUNT, of, -100, 100), numbers(_COUNT, of, -100, 100, seed=1)
    operate = {"or": torch.bitwise_or, "xor": torch.bitwise_xor, "and": torch.bitwise_and}[operation]
    return RecipeCall([a, b, blank(_COUNT, of), _COUNT], {2: operate(a, b)}, 48)


def _bitwise_of_one(operation: str, name: str) -> RecipeCall:
    of = element(name)
    x = numbers(_COUNT, of, -100, 100)
    if operation == "not":
        return RecipeCall([x, blank(_COUNT, of), _COUNT], {1: torch.bitwise_not(x)}, 48)
    expected = exactly(wide(x) << 3, of)
    return RecipeCall([x, blank(_COUNT, of), 3, _COUNT], {1: expected}, 48)


def _from_float8(name: str) -> RecipeCall:
    content = torch.arange(_COUNT).to(torch.uint8)  # subnormal numbers first
    return RecipeCall(
        [content, blank(_COUNT, element(name)), _COUNT], {1: _of_float8(content)}, 48, roundings=1, least=0
    )


def _to_float8(name: str) -> RecipeCall:
    x = numbers(_COUNT, element(name), -20, 20)
    x[:2] = torch.tensor([17, 0.01])  # between 16 and 18; less than the smallest normal number
    expected = x.float().to(torch.float8_e4m3fn).view(torch.uint8)
    return RecipeCall([x, blank(_COUNT, element("u8")), _COUNT], {1: expected}, 48)


def _scaled_float8(kind: str, name: str) -> RecipeCall:
    count = 300
    content, scales = _float8(count), numbers(3, element("float"), 0.001, 0.01)
    each = wide(scales)[:1] if kind == "pertensor" else wide(scales).repeat_interleave(128)[:count]
    expected = _of_float8(content) * each
    return RecipeCall([content, scales, blank(count, element(name)), count], {2: expected}, count, least=0)


def _blockwise_float8(name: str) -> RecipeCall:
    height, width, tile = 12, 20, 8
    content, scales = _float8(height * width).reshape(height, width), numbers((2, 3), element("float"), 0.001, 0.01)
    each = wide(scales).repeat_interleave(tile, 0)[:height].repeat_interleave(tile, 1)[:, :width]
    expected = _of_float8(content) * each
    sizes = packed(struct.pack("<6I", height, width, width, 3, tile, tile))
    return RecipeCall(
        [content, scales, blank((height, width), element(name)), sizes], {2: expected}, (24, 16, 1), (8, 8, 1), least=0
    )


def _weighted_reduce(name: str) -> RecipeCall:
    of, tokens, hidden, top = element(name), 5, 12, 3
    x, weights = numbers((tokens, top, hidden), of), numbers((tokens, top), element("float"), 0, 1, seed=1)
    expected = (wide(x) * wide(weights)[..., None]).sum(1)
    return RecipeCall([x, weights, blank((tokens, hidden), of), tokens, hidden, top], {2: expected}, (hidden, tokens))


def _pack_8() -> RecipeCall:
    x = numbers(_COUNT, element("int"), 0, 255)
    return RecipeCall([x, blank(_COUNT, element("u8")), _COUNT], {1: x.to(torch.uint8)}, 48)


def _pack(bits: str) -> RecipeCall:
    """Values a step apart go into one byte, or (of three bits) into one int, the first one highest."""
    width, pieces = 5, {"1": 8, "2": 4, "3": 10, "4": 2}[bits]
    step = 3
    of = element("u32" if bits == "3" else "u8")
    x = numbers((pieces * step, width), of, 0, 2 ** int(bits) - 1)
    shifts = torch.arange(pieces - 1, -1, -1) * int(bits)
    expected = (wide(x).reshape(pieces, step, width) << shifts[:, None, None]).sum(0)
    out = torch.zeros((step, width), dtype=of.dtype)
    return RecipeCall([x, out, pieces * step, width], {1: expected.to(of.dtype)}, (step, width))


def _unpack(bits: str, name: str) -> RecipeCall:
    of, height, width = element(name), 3, 8
    pieces = {"8": 1, "4": 2, "2": 4, "1": 8, "3": 10}[bits]
    largest = 2 ** (int(bits) * pieces) - 1
    weights = numbers((height, width), element("int" if bits == "3" else "u8"), 0, largest)
    scale, zero = numbers(width, of, 0.25, 1.5, seed=1), numbers(width, of, 0, 3, seed=2)
    shifts = torch.arange(pieces - 1, -1, -1) * int(bits)
    values = (wide(weights) >> shifts[:, None, None]) & (2 ** int(bits) - 1)
    expected = (values.double() - wide(zero)) * wide(scale)
    arguments = [weights, scale, zero, blank(expected.shape, of), height, width]
    return RecipeCall(arguments, {3: expected}, height * width)


def _float8_blocks(name: str) -> RecipeCall:
    blocks = 4
    scales, values = _float8(blocks), numbers((blocks, 32), element("int8"), -100, 100)
    content = torch.cat([scales[:, None], values.view(torch.uint8)], 1).contiguous()
    expected = wide(values).double() * (_of_float8(scales) / 448)[:, None]
    return RecipeCall([content, blank((blocks, 32), element(name)), blocks], {1: expected}, blocks, least=0)


def _softmax_with_sinks(name: str) -> RecipeCall:
    of, batch, heads, queries, keys = element(name), 2, 3, 2, 70
    logits, sinks = numbers((batch, heads, queries, keys), of), numbers(heads, of, seed=1)
    more = wide(sinks)[None, :, None, None].expand(batch, heads, queries, 1)
    expected = torch.softmax(torch.cat([wide(logits), more], -1), -1)[..., :keys]
    rows = batch * heads * queries
    arguments = [logits, sinks, blank(logits.shape, of), heads, queries, keys]
    return RecipeCall(arguments, {2: expected}, rows * 64, 64, threadgroup_lengths={0: 256})


def _of_four_bits(kind: str, name: str) -> RecipeCall:
    of, block, count = element(name), 8, 32  # values of a block; bytes, of two values each
    content = numbers(count, element("u8"), 0, 255)
    largest = numbers(2 * count // block, element("float"), 0.5, 2, seed=1)
    values = torch.stack([content >> 4, content & 15], 1).flatten().long()
    table = _NF4 if kind == "nf4" else torch.cat([_FP4, -_FP4])
    expected = table[values] * wide(largest).repeat_interleave(block)
    code = numbers(256, element("float"), -1, 1, seed=2)
    arguments = [code, content, largest, blank(2 * count, of), block, count]
    return RecipeCall(arguments, {3: expected}, count // block)


def _of_eight_bits(name: str) -> RecipeCall:
    of, block, count = element(name), 8, 30
    content, largest = numbers(count, element("u8"), 0, 255), numbers(4, element("float"), 0.5, 2, seed=1)
    code = numbers(256, element("float"), -1, 1, seed=2)
    expected = wide(code)[content.long()] * wide(largest).repeat_interleave(block)[:count]
    return RecipeCall([code, content, largest, blank(count, of), block, count], {3: expected}, 4)


_NAME = rf"(?P<name>{pattern(*_FLOATS)})"
_INTEGERS = rf"(?P<name>{pattern('uint8_t', 'uint32_t', 'int64_t', 'int')})"

RECIPES: tuple[Recipe, ...] = (
    Recipe("softcap", "mistral.rs", "softcap.metal", "softcap_float", _softcap),
    Recipe("gated linear unit", "mistral.rs", "fused_glu.metal", rf"fused_glu_{_NAME}", _fused_glu),
    Recipe(
        *("RMS norm and residual", "mistral.rs", "rmsnorm_residual.metal"),
        r"rmsnorm_residual_(?P<name>f32|f16|bf16)",
        _rms_norm_residual,
    ),
    Recipe("bitwise", "mistral.rs", "bitwise.metal", rf"bitwise_(?P<operation>or|xor|and)_{_INTEGERS}", _bitwise),
    Recipe(
        *("bitwise of one", "mistral.rs", "bitwise.metal"),
        rf"bitwise_(?P<operation>not|leftshift)_{_INTEGERS}",
        _bitwise_of_one,
    ),
    Recipe(
        *("from float8", "mistral.rs", "scalar_fp8.metal", rf"fp8_to_dtype_{_NAME}", _from_float8),
        defect="subnormal numbers come out eight times too small: their mantissa is divided by eight twice",
    ),
    Recipe(
        *("to float8", "mistral.rs", "scalar_fp8.metal", rf"dtype_to_fp8_{_NAME}", _to_float8),
        defect="a number half way between two goes away from zero, not to the even one, and subnormal ones become zero",
    ),
    Recipe(
        *("scaled float8", "mistral.rs", "scalar_fp8.metal"),
        rf"fp8_(?P<kind>pertensor|vector)_dequant_{_NAME}",
        _scaled_float8,
    ),
    Recipe(
        "float8 by tiles", "mistral.rs", "blockwise_fp8.metal", rf"dequant_fp8_blockwise_{_NAME}", _blockwise_float8
    ),
    Recipe(
        "sum of experts",
        "mistral.rs",
        "metal_kernels/moe.metal",
        rf"moe_weighted_reduce_flat_{_NAME}",
        _weighted_reduce,
    ),
    Recipe("pack bytes", "mistral.rs", "hqq_bitpack.metal", "pack_8bit", _pack_8),
    Recipe("pack bits", "mistral.rs", "hqq_bitpack.metal", r"pack_(?P<bits>[1234])bit", _pack),
    Recipe("unpack bits", "mistral.rs", "hqq_dequantize.metal", rf"dequantize_(?P<bits>[12348])bit_{_NAME}", _unpack),
    Recipe("blocks of bytes", "mistral.rs", "f8q8.metal", r"f8q8_dequantize_(?P<name>float|half)", _float8_blocks),
    Recipe(
        "softmax with sinks",
        "mistral.rs",
        "softmax_with_sinks.metal",
        rf"softmax_with_sinks_{_NAME}",
        _softmax_with_sinks,
    ),
    Recipe(
        *("of four bits", "mistral.rs", "bnb_dequantize.metal"),
        rf"kernel_dequantize_(?P<kind>nf4|fp4)_{_NAME}",
        _of_four_bits,
        defect="a thread reads one scale for a block's number of bytes, which are two blocks of values: each second "
        "block is scaled by the first one's",
    ),
    Recipe("of eight bits", "mistral.rs", "bnb_dequantize.metal", rf"kernel_dequantize_int8_{_NAME}", _of_eight_bits),
)
