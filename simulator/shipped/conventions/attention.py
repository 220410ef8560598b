"""Attention with few queries, which Metal computes one query at a time: `sdpa_vector`, in one or two passes over keys.

The host code is aten/src/ATen/native/mps/operations/Attention.mm; the choice of kernels is that of the 2.13.0 binary.
At most eight queries with certain head sizes use `sdpa_vector`; more queries use `prefill_attention`, which has no
convention. All other attention runs in MPSGraph.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import torch
from torch import Tensor

from ..call import Call
from ..plan import Declined, KernelLaunch, Planner, ReleaseKernels, Step, keeps_stand_in, required
from .metal_types import metal_name

_HEAD_SIZES = (64, 96, 128, 256)
_MOST_QUERIES = 8
_KEYS_FOR_TWO_PASSES = 1024
_GROUP, _GROUP_OF_BLOCKS = 1024, 256
_BLOCKS = 32


@keeps_stand_in(1)
def _attention(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """Plan the first result only: the second, the weights, is neither written nor read."""
    query, key, value = (_four_dimensions(call[name]) for name in ("query", "key", "value"))
    result = _four_dimensions(call.result)
    mask, causal = call["attn_mask"], call["is_causal"]
    if not _takes_vectors(query, key, value, mask, causal):
        raise Declined("MPSGraph, or prefill attention")
    keys = key.shape[2]
    if not result.is_contiguous():
        raise Declined("a result with gaps")
    query, key, value = (t if t.stride(3) == 1 else t.contiguous() for t in (query, key, value))
    if mask is not None:
        mask = mask.expand(*query.shape[:3], keys) if mask.dim() <= 4 else mask
    scale = call["scale"] if call["scale"] is not None else 1 / sqrt(query.shape[3])
    operands = query, key, value
    arguments = {
        "queries": query,
        "keys": key,
        "values": value,
        "gqa_factor": query.shape[1] // key.shape[1],
        "N": keys,
        "qkv_head_strides": [tensor.stride(1) for tensor in operands],
        "qkv_seq_strides": [tensor.stride(2) for tensor in operands],
        "scale": scale,
        "mask": mask,
        "mask_strides": [mask.stride(d) for d in (3, 2, 1, 0)] if mask is not None else [0, 0, 0, 0],
        "qkv_batch_strides_heads": [*(tensor.stride(0) for tensor in operands), query.shape[1]],
    }
    variant = _variant(query, value, mask, causal)
    if keys >= _KEYS_FOR_TWO_PASSES:
        return _in_two_passes(kernels, variant, arguments, query, result)
    name = required(kernels, f"sdpa_vector_{variant}")
    return [KernelLaunch(name, {**arguments, "out": result}, *_grid(query, _GROUP))]


def _grid(query: Tensor, group: int, blocks: int = 1) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Grid and group: a threadgroup for each query, or for each query and block of keys."""
    return (query.shape[0] * query.shape[1] * group, query.shape[2], blocks), (group, 1, 1)


def _in_two_passes(
    kernels: ReleaseKernels, variant: str, arguments: dict[str, object], query: Tensor, result: Tensor
) -> list[Step]:
    """The first kernel computes results, sums and maxima of blocks of keys; the second combines them."""
    blocks = (*query.shape[:3], _BLOCKS)
    partials = torch.empty((*blocks, query.shape[3]), dtype=query.dtype, device="cpu")
    sums, maxima = (torch.empty(blocks, dtype=torch.float32, device="cpu") for _ in range(2))
    first = required(kernels, f"sdpa_vector_2pass_1_{variant}")
    second = required(kernels, f"sdpa_vector_2pass_2_{metal_name(query.dtype)}_{query.shape[3]}")
    between = {"sums": sums, "maxs": maxima}
    return [
        KernelLaunch(first, {**arguments, "out": partials, **between}, *_grid(query, _GROUP_OF_BLOCKS, _BLOCKS)),
        KernelLaunch(second, {"partials": partials, **between, "out": result}, *_grid(query, _GROUP)),
    ]


def _four_dimensions(tensor: Tensor) -> Tensor:
    if tensor.dim() == 3:
        return tensor.unsqueeze(0)
    if tensor.dim() != 4:
        raise Declined("more than four dimensions")
    return tensor


def _takes_vectors(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool) -> bool:
    if query.shape[3] != value.shape[3] or query.shape[3] not in _HEAD_SIZES:
        return False
    if mask is not None and (causal or mask.dtype not in (torch.bool, query.dtype)):
        return False
    return query.shape[2] <= min(_MOST_QUERIES, key.shape[2])


def _variant(query: Tensor, value: Tensor, mask: Tensor | None, causal: bool) -> str:
    """The part of the kernel's name for types, head sizes and mask."""
    kind = "none" if mask is None else metal_name(mask.dtype)
    sizes = f"{query.shape[3]}_{value.shape[3]}"
    return f"{metal_name(query.dtype)}_{sizes}_mask{kind}{'_causal' if causal else ''}"


PLANNERS: dict[str, Planner] = {"_scaled_dot_product_attention_math_for_mps": _attention}
