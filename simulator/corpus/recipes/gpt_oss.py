"""How the kernels of gpt-oss are called, and their copies among Hugging Face's community kernels."""

from __future__ import annotations

import struct
from collections.abc import Callable

import torch
from torch.nn import functional

from .elements import blank, element, ints, numbers, packed, wide
from .recipe import Recipe, RecipeCall

_GO_ON = ints([0])  # what tells kernels to stop
_FLOAT = element("float")


def _rms_norm() -> RecipeCall:
    rows, columns, epsilon = 3, 256, 1e-5
    x, weight = numbers((rows, columns), _FLOAT), numbers(columns, element("bfloat16"), 0.5, 1.5, seed=1)
    expected = functional.rms_norm(wide(x), [columns], wide(weight), epsilon)
    sizes = packed(struct.pack("<Iff", columns // 4, columns, epsilon))
    return RecipeCall([sizes, x, weight, blank(x.shape, _FLOAT), _GO_ON], {3: expected}, rows * 1024, 1024, roundings=8)


def _embeddings() -> RecipeCall:
    tokens, width = ints([4, 0, 7]), 24
    weights = numbers((9, width), element("bfloat16"))
    sizes = packed(struct.pack("<I", width // 4))
    arguments = [sizes, tokens, weights, blank((3, width), _FLOAT), _GO_ON]
    return RecipeCall(arguments, {3: wide(weights)[tokens.long()]}, 3 * 32, 32)


_MXFP4 = (0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6)


def _convert() -> RecipeCall:
    blocks = 10
    content = numbers((blocks, 16), element("u8"), 0, 255)
    scales = numbers(blocks, element("u8"), 110, 130, seed=1)
    values = torch.stack([content & 15, content >> 4], -1).flatten(1).long()
    expected = torch.tensor(_MXFP4, dtype=torch.float64)[values] * torch.exp2(wide(scales).double() - 127)[:, None]
    sizes = packed(struct.pack("<QQ", blocks, blocks))
    return RecipeCall(
        [sizes, content, scales, blank((blocks, 32), _FLOAT)], {3: expected}, 32, 32, roundings=1, least=0
    )


def _accumulate() -> RecipeCall:
    tokens, width, experts = 3, 24, 4
    x, scores = numbers((experts, tokens, width), _FLOAT), numbers((tokens, experts), _FLOAT, 0, 1, seed=1)
    start = numbers((tokens, width), _FLOAT, seed=2)
    expected = wide(start) + (wide(x) * wide(scores).t()[..., None]).sum(0)
    sizes = packed(struct.pack("<III", tokens * width // 4, width // 4, width // 4))
    predictions = torch.stack([torch.zeros_like(scores), scores], -1)
    return RecipeCall(
        [sizes, x, predictions.contiguous(), start, _GO_ON], {3: expected}, (32, tokens), (32, 1), roundings=8
    )


def _rope() -> RecipeCall:
    """Without scaling of the frequencies, for two tokens from the third on."""
    tokens, pairs, first = 2, 32, 3
    x = numbers((tokens, pairs, 2), _FLOAT)
    frequencies = torch.exp(-0.1 * torch.arange(pairs, dtype=torch.float64))
    angles = (first + torch.arange(tokens, dtype=torch.float64))[:, None] * frequencies
    re, im = wide(x).unbind(-1)
    expected = torch.stack([re * angles.cos() - im * angles.sin(), re * angles.sin() + im * angles.cos()], -1)
    sizes = packed(struct.pack("<IIIfffff", pairs, first, 8, -0.1, 1, 0, 0, 1))
    return RecipeCall(
        [sizes, x, blank((8, 8, 2 * pairs, 2), _FLOAT), _GO_ON], {1: expected}, (pairs, tokens), (32, 1), roundings=8
    )


def _top_k(experts: str) -> RecipeCall:
    count, tokens = int(experts), 3
    x = numbers((tokens, count), _FLOAT)
    best = wide(x).topk(4, -1)
    scores = torch.softmax(best.values, -1)
    sizes = packed(struct.pack("<I", count // 4))
    out = blank((tokens, 4, 2), _FLOAT)
    expected = torch.stack([best.indices.double(), scores], -1)
    return RecipeCall([sizes, x, out, _GO_ON], {2: expected}, tokens * 32, 32, reading={2: _predictions})


def _predictions(memory: torch.Tensor) -> torch.Tensor:
    """An expert's number, which is an integer, beside its score."""
    return torch.stack([memory[..., 0].contiguous().view(torch.int32).double(), memory[..., 1].double()], -1)


def _routing() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Of six tokens with four of nine experts each: predictions, scores, where an expert begins, places within."""
    tokens, experts = 6, 9
    generator = torch.Generator().manual_seed(0)
    chosen = torch.stack([torch.randperm(experts, generator=generator)[:4] for _ in range(tokens)])
    scores = numbers((tokens, 4), _FLOAT, 0, 1)
    predictions = torch.stack([chosen.int().view(torch.float32), scores], -1).contiguous()
    counts = torch.bincount(chosen.flatten(), minlength=experts)
    begins = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)]).int()
    within = torch.zeros(tokens * 4, dtype=torch.int32)
    seen = [0] * experts
    for place, expert in enumerate(chosen.flatten().tolist()):
        within[place] = seen[expert]
        seen[expert] += 1
    return predictions, scores, begins, within


def _expert_offsets() -> RecipeCall:
    predictions, _, begins, within = _routing()
    sizes = packed(struct.pack("<II", within.numel(), begins.numel() - 1))
    out = blank(begins.shape, element("uint"))
    # Which token gets which place is left to the order of threads; where an expert begins is not.
    return RecipeCall([sizes, predictions, out, blank(within.shape, element("uint"))], {2: begins}, 32, 32)


def _scatter() -> RecipeCall:
    predictions, _, begins, within = _routing()
    tokens, width = 6, 16
    x = numbers((tokens, width), _FLOAT)
    where = begins[predictions[..., 0].view(torch.int32).flatten().long()] + within
    expected = torch.zeros((4 * tokens, width), dtype=torch.float64)
    expected[where.long()] = wide(x).repeat_interleave(4, 0)
    sizes = packed(struct.pack("<III", tokens, 4, width))
    arguments = [sizes, x, predictions, begins, within, blank(expected.shape, _FLOAT)]
    return RecipeCall(arguments, {5: expected}, (width // 4, tokens, 1))


def _gather() -> RecipeCall:
    predictions, scores, begins, within = _routing()
    tokens, width = 6, 16
    x, start = numbers((4 * tokens, width), _FLOAT), numbers((tokens, width), _FLOAT, seed=1)
    where = (begins[predictions[..., 0].view(torch.int32).flatten().long()] + within).long()
    taken = wide(x)[where].reshape(tokens, 4, width)
    expected = wide(start) + (taken * wide(scores)[..., None]).sum(1)
    sizes = packed(struct.pack("<III", tokens, 4, width))
    return RecipeCall(
        [sizes, x, predictions, begins, within, start], {5: expected}, (width // 4, tokens, 1), roundings=8
    )


def _squares(offset: int, seed: int) -> int:
    """The counter-based generator "squares" of B. Widynski, with four rounds."""
    mask = 2**64 - 1

    def turned(x: int) -> int:
        return (x >> 32 | x << 32) & mask

    y = offset * seed & mask
    z = (y + seed) & mask
    x = turned(y * y + y & mask)
    x = turned(x * x + z & mask)
    x = turned(x * x + y & mask)
    return (x * x + z & mask) >> 32


def _random(kind: str) -> RecipeCall:
    count, seed, scale, bias = 50, 0x9E3779B97F4A7C15, 2.0**-31, 0.5
    words = torch.tensor([_squares(7 + i, seed) for i in range(count)]).to(torch.int32)
    sizes = struct.pack("<QQQQ", count, count, 7, seed)
    if kind == "u32":
        return RecipeCall([packed(sizes), blank(count, element("u32"))], {1: words}, 32, 32)
    expected = words.double() * scale + bias
    more = struct.pack("<ff", scale, bias)
    return RecipeCall([packed(sizes + more), blank(count, element(kind))], {1: expected}, 32, 32)


_KERNELS: tuple[tuple[str, str, str, Callable[..., RecipeCall]], ...] = (
    ("RMS norm", "rmsnorm.metal", "gptoss_f32_bf16w_rmsnorm", _rms_norm),
    ("embeddings", "embeddings.metal", "gptoss_bf16_f32_embeddings", _embeddings),
    ("of MXFP4", "source/convert.metal", "gptoss_mf4_f32_convert", _convert),
    ("sum of experts", "source/accumulate.metal", "gptoss_f32_accumulate_e4", _accumulate),
    ("top k", "topk.metal", r"gptoss_f32_topk_softmax_e(?P<experts>128|32)_k4", _top_k),
    ("routing", "expert_routing_metadata.metal", "gptoss_f32_expert_routing_metadata", _expert_offsets),
    ("scatter", "source/scatter.metal", "gptoss_f32_scatter_e4", _scatter),
    ("gather", "gather_and_accumulate.metal", "gptoss_f32_gather_and_accumulate_e4", _gather),
    ("random numbers", "source/random.metal", "gptoss_(?P<kind>u32|f32|bf16)_fill_random", _random),
)

RECIPES: tuple[Recipe, ...] = (
    *(Recipe(name, "gpt-oss", file, kernels, call) for name, file, kernels, call in _KERNELS),
    *(Recipe(name, "kernels-community", file, kernels, call) for name, file, kernels, call in _KERNELS),
    Recipe("rotary embedding", "gpt-oss", "source/rope.metal", "gptoss_f32_rope", _rope),
)
