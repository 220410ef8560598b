"""Attention: which kernel for which head size, mask and number of keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith.simulator.shipped.conventions.attention import PLANNERS
from mpsmith.simulator.shipped.plan import Declined, KernelLaunch, Step
from support.fake_kernels import FakeKernels, planned

VARIANTS = ("float_64_64_masknone", "float_64_64_maskbool", "float_64_64_masknone_causal")
KERNELS = FakeKernels(
    {
        **{f"sdpa_vector_{variant}": () for variant in VARIANTS},
        "sdpa_vector_2pass_1_float_64_64_masknone": (),
        "sdpa_vector_2pass_2_float_64": (),
    }
)


def attention(query: Tensor, key: Tensor, mask: Tensor | None = None, causal: bool = False) -> Sequence[Step]:
    results = torch.zeros(query.shape), torch.zeros(*query.shape[:-1], key.shape[-2])
    given: dict[str, Any] = {"query": query, "key": key, "value": key.clone(), "attn_mask": mask, "is_causal": causal}
    return planned(PLANNERS, "_scaled_dot_product_attention_math_for_mps", KERNELS, *results, **given)


def test_heads_share_keys_and_queries_have_a_group_each() -> None:
    query, key = torch.zeros(2, 6, 3, 64), torch.zeros(2, 10, 2, 64).transpose(1, 2)
    mask = torch.ones(3, 10, dtype=torch.bool)
    (step,) = attention(query, key, mask.expand(2, 6, 3, 10))
    assert isinstance(step, KernelLaunch)
    assert step.kernel == "sdpa_vector_float_64_64_maskbool"
    assert step.arguments["queries"] is query
    assert step.arguments["gqa_factor"] == 3
    assert step.arguments["N"] == 10
    assert step.arguments["qkv_head_strides"] == [192, 64, 64]
    assert step.arguments["qkv_seq_strides"] == [64, 128, 128]
    assert step.arguments["qkv_batch_strides_heads"] == [1152, 1280, 1280, 6]
    assert step.arguments["mask_strides"] == [1, 10, 0, 0]
    assert step.arguments["scale"] == 0.125
    assert (step.threads, step.group) == ((12 * 1024, 3, 1), (1024, 1, 1))


def test_many_keys_take_two_passes() -> None:
    first, second = attention(torch.zeros(1, 2, 3, 64), torch.zeros(1, 2, 1024, 64))
    assert isinstance(first, KernelLaunch)
    assert isinstance(second, KernelLaunch)
    assert (first.threads, first.group) == ((512, 3, 32), (256, 1, 1))
    assert second.arguments["partials"] is first.arguments["out"]
    assert second.arguments["sums"] is first.arguments["sums"]
    assert second.arguments["maxs"] is first.arguments["maxs"]


def test_a_causal_mask_has_a_kernel() -> None:
    (step,) = attention(torch.zeros(2, 3, 64), torch.zeros(2, 5, 64), causal=True)
    assert isinstance(step, KernelLaunch)
    assert step.kernel == "sdpa_vector_float_64_64_masknone_causal"


@pytest.mark.parametrize("shape", [(1, 1, 9, 64), (1, 1, 3, 48)])
def test_the_rest_is_declined(shape: tuple[int, ...]) -> None:
    with pytest.raises(Declined, match="MPSGraph"):
        attention(torch.zeros(shape), torch.zeros(shape))
