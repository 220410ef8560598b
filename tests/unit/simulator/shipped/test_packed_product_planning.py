"""Products with weights of eight bits: a group of two SIMD groups for eight columns of a row."""

from __future__ import annotations

import pytest
import torch

from mpsmith.simulator.shipped.conventions.packed_products import PLANNERS
from mpsmith.simulator.shipped.plan import Declined, KernelLaunch
from support.fake_kernels import FakeKernels, planned

KERNELS = FakeKernels({"int8pack_mv_half": ()})


def test_few_rows_go_one_by_one() -> None:
    x, weight = torch.zeros(11, 64).half(), torch.zeros(96, 64, dtype=torch.int8)
    scales, result = torch.zeros(96).half(), torch.zeros(11, 96).half()
    (step,) = planned(PLANNERS, "_weight_int8pack_mm", KERNELS, result, self=x, mat2=weight, scales=scales)
    assert isinstance(step, KernelLaunch)
    assert step.arguments["A"] is x
    assert step.arguments["B"] is weight
    assert step.arguments["scalesAndZeros"] is scales
    assert step.arguments["outputData"] is result
    assert step.arguments["sizes"] == [11, 64, 96]
    assert (step.threads, step.group, step.threadgroup_memory) == ((768, 11, 1), (64, 1, 1), (32,))


def test_twelve_rows_are_declined() -> None:
    x, weight = torch.zeros(12, 64).half(), torch.zeros(96, 64, dtype=torch.int8)
    with pytest.raises(Declined, match="twelve rows"):
        planned(PLANNERS, "_weight_int8pack_mm", KERNELS, x, self=x, mat2=weight, scales=torch.zeros(96).half())


@pytest.mark.parametrize(("columns", "inner"), [(20, 64), (96, 16)])
def test_sizes_that_the_host_code_refuses_are_declined(columns: int, inner: int) -> None:
    x, weight = torch.zeros(4, inner).half(), torch.zeros(columns, inner, dtype=torch.int8)
    with pytest.raises(Declined, match="no multiples of 32"):
        planned(PLANNERS, "_weight_int8pack_mm", KERNELS, x, self=x, mat2=weight, scales=torch.zeros(columns).half())
