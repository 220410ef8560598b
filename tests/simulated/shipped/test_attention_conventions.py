"""Attention of few queries by the shipped kernels of each release."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from support.shipped_kernels import Shipped, assert_near, normal, overload_of

pytestmark = pytest.mark.network

# Batch, heads, queries, keys, head size: the last takes two passes.
SIZES = [(2, 3, 1, 5, 64), (1, 2, 8, 40, 96), (1, 2, 3, 1030, 64)]


def masks(*shape: int, dtype: torch.dtype) -> list[Tensor | None]:
    generator = torch.Generator().manual_seed(0)
    allowed = torch.rand(shape, generator=generator) > 0.3
    allowed[..., 0] = True
    return [None, allowed, allowed[:1, :1], torch.rand(shape, generator=generator).to(dtype)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_few_queries(shipped: Shipped, size: tuple[int, ...], dtype: torch.dtype) -> None:
    batch, heads, queries, keys, head = size
    attend = overload_of("_scaled_dot_product_attention_math_for_mps")
    q = normal(dtype, 0, 1.0)((batch, heads, queries, head))
    k, v = (normal(dtype, seed, 1.0)((batch, keys, heads, head)).transpose(1, 2) for seed in (1, 2))
    kernel = "sdpa_vector_2pass_2_*" if keys >= 1024 else "sdpa_vector_*_mask*"
    cases = [(mask, False) for mask in masks(batch, heads, queries, keys, dtype=dtype)] + [(None, True)]
    for mask, causal in cases:
        actual = shipped.run(attend, q, k, v, mask, 0.0, causal, None, scale=0.3, kernels=[kernel])[0]
        wide = mask if mask is None or mask.dtype == torch.bool else mask.double()
        expected = torch.nn.functional.scaled_dot_product_attention(
            q.double(), k.double(), v.double(), wide, 0.0, causal, scale=0.3
        )
        assert_near(actual, expected.to(dtype), 4)


def test_other_head_sizes_and_more_queries_are_not(shipped: Shipped) -> None:
    attend = overload_of("_scaled_dot_product_attention_math_for_mps")
    for shape in ((1, 2, 4, 48), (1, 2, 9, 64)):
        assert shipped.reasons(attend, *(torch.rand(shape) for _ in range(3))) == {"MPSGraph, or prefill attention"}
