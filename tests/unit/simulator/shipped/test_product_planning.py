"""Products of matrices: what Metal computes, in which tiles."""

from __future__ import annotations

import pytest
import torch

from mpsmith.simulator.shipped.conventions.products import PLANNERS
from mpsmith.simulator.shipped.plan import Declined, KernelLaunch
from support.fake_kernels import FakeKernels, planned

KERNELS = FakeKernels(dict.fromkeys(("matmul_int", "addmm_int", "naive_bmm_int", "naive_addbmm_int"), ()))


def integers(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.int32)


def test_a_product_goes_in_whole_tiles() -> None:
    a, b, result = integers(5, 18).t(), integers(5, 33), integers(18, 33)
    (step,) = planned(PLANNERS, "mm", KERNELS, result, self=a, mat2=b)
    assert isinstance(step, KernelLaunch)
    assert step.arguments["mat1Data"] is a
    assert step.arguments["mat2Data"] is b
    assert step.arguments["outputData"] is result
    assert step.arguments["strides"] == {"__elems": [1, 18, 33, 1, 33, 1]}
    assert step.arguments["sizes"] == [18, 5, 33]
    assert (step.threads, step.group) == ((48, 32, 1), (16, 16, 1))


def test_a_bias_is_expanded() -> None:
    a, b, result = integers(2, 3), integers(3, 4), integers(2, 4)
    (step,) = planned(PLANNERS, "addmm", KERNELS, result, self=integers(4), mat1=a, mat2=b, alpha=5, beta=7)
    assert isinstance(step, KernelLaunch)
    assert step.arguments["alpha_beta"] == {"__elems": [5, 7]}
    assert step.arguments["strides"] == {"__elems": [3, 1, 4, 1, 4, 1, 0, 1]}


def test_batches_go_innermost_first() -> None:
    a, b, result = integers(6, 2, 3), integers(6, 3, 4), integers(6, 2, 4)
    (step,) = planned(PLANNERS, "bmm", KERNELS, result, self=a, mat2=b)
    assert isinstance(step, KernelLaunch)
    assert step.arguments["strides"] == {"__elems": [1, 3, 6, 1, 4, 12, 1, 4, 8]}
    assert step.arguments["sizes"] == [2, 3, 4, 6]
    assert step.threads == (16, 16, 6)


def test_the_sum_of_a_batch_has_no_depth() -> None:
    a, b, result = integers(6, 2, 3), integers(6, 3, 4), integers(2, 4)
    (step,) = planned(PLANNERS, "addbmm", KERNELS, result, self=integers(2, 1), batch1=a, batch2=b)
    assert isinstance(step, KernelLaunch)
    assert step.arguments["strides"] == {"__elems": [1, 3, 6, 1, 4, 12, 1, 4, 0, 0, 1, 0]}
    assert step.threads == (16, 16, 1)


@pytest.mark.parametrize(
    ("left", "right", "metal"),
    [
        (torch.zeros(3, 4), torch.zeros(4, 5), False),
        (torch.zeros(3, 4).half(), torch.zeros(5, 4).half().t(), False),
        (torch.zeros(3, 5).half()[:, :4], torch.zeros(5, 4).half().t(), True),
        (torch.zeros(3, 24).half()[:, :4], torch.zeros(5, 4).half().t(), True),
        (torch.zeros(17, 5).half()[:, :4], torch.zeros(17, 4).half().t(), False),
        (torch.zeros(3, 2049, dtype=torch.complex64), torch.zeros(2049, 2, dtype=torch.complex64), True),
    ],
)
def test_what_metal_computes(left: torch.Tensor, right: torch.Tensor, metal: bool) -> None:
    kernels = FakeKernels({f"matmul_{name}": () for name in ("float", "half", "float2")})
    result = torch.zeros(left.shape[0], right.shape[1], dtype=left.dtype)
    if metal:
        assert len(planned(PLANNERS, "mm", kernels, result, self=left, mat2=right)) == 1
    else:
        with pytest.raises(Declined, match="MPSGraph"):
            planned(PLANNERS, "mm", kernels, result, self=left, mat2=right)
