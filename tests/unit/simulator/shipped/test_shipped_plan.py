"""Planners: the table of overloads, grids, declined calls, and memory that is poisoned or restored."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from mpsmith.simulator.air.signature import KernelSignature
from mpsmith.simulator.shipped.call import Call
from mpsmith.simulator.shipped.conventions import PLANNERS, join
from mpsmith.simulator.shipped.conventions.composition import inner
from mpsmith.simulator.shipped.conventions.names import functional_inplace_out
from mpsmith.simulator.shipped.plan import BlitCopy, Declined, ReleaseKernels, Step, in_line, in_plane, required
from mpsmith.simulator.shipped.written import POISON, keep, poison


class NoKernels:
    release = "9.9.9"

    def __contains__(self, name: object) -> bool:
        return False

    def signature(self, name: str, /) -> KernelSignature:
        raise AssertionError(name)


def no_plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    return []


def test_rejects_two_planners_for_an_overload() -> None:
    assert join([{"exp": no_plan}, {"sin": no_plan}]) == {"exp": no_plan, "sin": no_plan}
    with pytest.raises(ValueError, match="two conventions plan exp"):
        join([{"exp": no_plan}, {"exp": no_plan}])


def test_planned_overloads_exist_in_torch() -> None:
    operators = {name.removeprefix("aten::") for name in torch._C._dispatch_get_all_op_names()}
    assert sorted(PLANNERS.keys() - operators) == []


def test_a_kernel_that_the_release_lacks_is_declined_by_name() -> None:
    with pytest.raises(Declined, match="no kernel exp_dense_float_float"):
        required(NoKernels(), "exp_dense_float_float")


def test_an_inner_call_without_a_planner_is_declined_by_name() -> None:
    with pytest.raises(Declined, match="built from linalg_svd"):
        inner(NoKernels(), "linalg_svd", torch.zeros(1))


@pytest.mark.parametrize("overload", ["dot", "mse_loss", "_prelu_kernel"])
def test_an_operator_of_mpsgraph_is_declined(overload: str) -> None:
    with pytest.raises(Declined, match="MPSGraph"):
        PLANNERS[overload](Call(overload, {"self": torch.zeros(3)}, (torch.zeros(()),)), NoKernels())


def test_a_composed_operator_plans_its_inner_calls() -> None:
    x, result = torch.arange(8.0).view(2, 4), torch.zeros(2, 4)
    steps = PLANNERS["roll"](Call("roll", {"self": x, "shifts": [3], "dims": []}, (result,)), NoKernels())
    assert [step.source.tolist() for step in steps if isinstance(step, BlitCopy)] == [[5, 6, 7], [0, 1, 2, 3, 4]]


def test_a_group_fits_the_grid_and_the_device() -> None:
    assert in_line(10) == ((10, 1, 1), (10, 1, 1))
    assert in_line(5000) == ((5000, 1, 1), (1024, 1, 1))
    assert in_plane(100, 50) == ((100, 50, 1), (100, 10, 1))
    assert in_plane(4000, 3) == ((4000, 3, 1), (1024, 1, 1))


def test_overloads_of_a_name() -> None:
    assert functional_inplace_out("exp") == ("exp", "exp_", "exp.out")
    assert functional_inplace_out("add", "Tensor") == ("add.Tensor", "add_.Tensor", "add.out")


@pytest.mark.parametrize("dtype", [torch.bool, torch.float16, torch.float32, torch.complex64, torch.complex128])
def test_poison_covers_the_elements_and_nothing_between_them(dtype: torch.dtype) -> None:
    memory = torch.zeros(6, 6, dtype=dtype)
    poison(memory[1::2, ::3])
    touched = memory.view(torch.uint8).view(6, 6, memory.element_size())
    expected = torch.zeros(6, 6, 1, dtype=torch.uint8)
    expected[1::2, ::3] = POISON
    assert torch.equal(touched, expected.expand_as(touched))


def test_poison_of_a_dense_tensor() -> None:
    memory = torch.zeros(7)
    poison(memory[2:5])
    assert (memory.view(torch.uint8) == POISON).nonzero().flatten().tolist() == list(range(8, 20))


def test_put_back_restores_memory_unless_the_tensor_was_moved() -> None:
    memory = torch.arange(8.0)
    old = keep(memory[1:6:2])
    memory.zero_()
    assert old.can_be_put_back
    old.restore()
    assert memory.tolist() == [0, 1, 2, 3, 4, 5, 0, 0]
    old.tensor.set_(torch.zeros(5))
    assert not old.can_be_put_back
