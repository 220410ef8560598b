"""Kernels of a release under the simulated device: each call's flow, with a library of kernels written in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith.simulator.device import faults, launch_counts
from mpsmith.simulator.device.launch_counts import OverloadLaunches
from mpsmith.simulator.device.pause import paused
from mpsmith.simulator.errors import SimulatorError
from mpsmith.simulator.shipped import interposition
from mpsmith.simulator.shipped.call import Call
from mpsmith.simulator.shipped.conventions import copies
from mpsmith.simulator.shipped.plan import (
    ERROR_BUFFER,
    BlitCopy,
    BlitFill,
    Declined,
    KernelLaunch,
    Planner,
    ReleaseKernels,
    Step,
    in_line,
)


class FakeKernel:
    def __init__(self, compute: Callable[..., None]) -> None:
        self.compute = compute

    def prepare(
        self,
        arguments: Mapping[str, object],
        threads: tuple[int, int, int],
        group: tuple[int, int, int],
        threadgroup_memory: Sequence[int] = (),
    ) -> Callable[[], None]:
        if any(name not in ("output", "input", "other", "error_buf") for name in arguments):
            raise SimulatorError(f"a fake kernel has no arguments {sorted(arguments)}")
        return lambda: self.compute(**arguments)


class FakeLibrary:
    """Kernels in Python: `exp` adds 100 to what the CPU would give, so that one sees who computed."""

    release = "9.9.9"

    def __init__(self) -> None:
        self.kernels: dict[str, Callable[..., None]] = {
            "exp_kernel": lambda output, input: output.copy_(input.exp() + 100),
            "add_kernel": lambda output, input, other: output.copy_(input + other + 100),
            "first_only": lambda output, input: output.view(-1)[:1].copy_(input.view(-1)[:1]),
            "reports": self.reports,
        }

    @staticmethod
    def reports(output: Tensor, input: Tensor, error_buf: Tensor) -> None:
        error_buf[0] = 1
        text = b"index 7 is out of bounds"
        error_buf[4 + 256 : 4 + 256 + len(text)] = torch.tensor(list(text), dtype=torch.uint8)

    def __contains__(self, name: object) -> bool:
        return name in self.kernels

    def signature(self, name: str) -> Any:
        raise AssertionError("a fake kernel has no signature")

    def kernel(self, name: str) -> FakeKernel:
        if name not in self.kernels:
            raise SimulatorError(f"kernel {name} of torch 9.9.9 cannot be compiled")
        return FakeKernel(self.kernels[name])


def launch(kernel: str, **arguments: object) -> KernelLaunch:
    threads, group = in_line(1)
    return KernelLaunch(kernel, arguments, threads, group)


def unary(kernel: str) -> Planner:
    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        return [launch(kernel, output=call.result, input=call["self"])]

    return plan


def binary(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    return [launch("add_kernel", output=call.result, input=call["self"], other=call["other"])]


Activate = Callable[..., None]


@pytest.fixture
def activate() -> Iterator[Activate]:
    """Puts planners in place for one test."""

    def put(**planners: Planner) -> None:
        named = {name.replace("__", "."): planner for name, planner in planners.items()}
        interposition.activate(FakeLibrary(), named)
        launch_counts.drain()

    yield put
    interposition.deactivate()
    launch_counts.drain()


def mps(*values: float, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.tensor(values, dtype=dtype, device="mps")


def counted(overload: str) -> OverloadLaunches:
    return launch_counts.drain()[overload]


def test_the_shipped_kernel_computes(activate: Activate) -> None:
    activate(exp=unary("exp_kernel"))
    assert torch.exp(mps(0, 0)).tolist() == [101, 101]
    assert counted("aten::exp") == OverloadLaunches(launched=1, kernels={"exp_kernel": 1})


def test_it_computes_in_place_from_the_old_values(activate: Activate) -> None:
    activate(exp_=unary("exp_kernel"))
    x = mps(0, 0, 0, 0)
    assert x[1:3].exp_().tolist() == [101, 101]
    assert x.tolist() == [0, 101, 101, 0]


def test_it_computes_into_out_of_another_stride(activate: Activate) -> None:
    activate(exp__out=unary("exp_kernel"))
    out = torch.zeros(4, device="mps")
    torch.exp(mps(0, 0), out=out[::2])
    assert out.tolist() == [101, 0, 101, 0]


def test_out_that_is_the_input_keeps_its_values_until_the_kernel_reads_them(activate: Activate) -> None:
    activate(exp__out=unary("exp_kernel"))
    x = mps(0, -1000)
    assert torch.exp(x, out=x).tolist() == [101, 100]


def test_out_is_resized_by_the_stand_in(activate: Activate) -> None:
    activate(exp__out=unary("exp_kernel"))
    out = torch.empty(0, device="mps")
    torch.exp(mps(0, 0), out=out)
    assert out.tolist() == [101, 101]


@pytest.mark.parametrize("in_place", [False, True])
def test_no_value_of_the_stand_in_is_left(activate: Activate, in_place: bool) -> None:
    activate(exp=unary("first_only"), exp_=unary("first_only"))
    x = mps(0, 0)
    result = x.exp_() if in_place else x.exp()
    poison = torch.tensor([0xA5] * 4, dtype=torch.uint8).view(torch.float32).item()
    assert result.tolist() == [0, 0 if in_place else poison]


def test_a_declined_call_keeps_the_stand_ins_values_and_counts_its_reason(activate: Activate) -> None:
    def decline(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        raise Declined("MPSGraph")

    activate(exp=decline, exp_=decline)
    assert torch.exp(mps(0)).tolist() == [1]
    assert mps(0).exp_().tolist() == [1]
    drained = launch_counts.drain()
    assert drained["aten::exp"] == OverloadLaunches(stood_in={"MPSGraph": 1})
    assert drained["aten::exp_"] == OverloadLaunches(stood_in={"MPSGraph": 1})


def test_zeros_without_memory_take_the_stand_in(activate: Activate) -> None:
    activate(copy_=unary("exp_kernel"))
    out = torch.ones(2, device="mps")
    torch.ops.aten._efficientzerotensor.out([2], out=out)
    assert set(counted("aten::copy_").stood_in) == {"zeros without memory, of which torch knows that they are zero"}
    interposition.deactivate()
    assert out.tolist() == [0, 0]


def test_a_fault_wraps_the_shipped_kernel(activate: Activate) -> None:
    activate(exp=unary("exp_kernel"))
    faults.inject(faults.Fault.parse("aten::exp: values"))
    try:
        assert torch.exp(mps(0)).tolist() != [101]
        assert counted("aten::exp") == OverloadLaunches(launched=1, kernels={"exp_kernel": 1})
    finally:
        faults.clear()
    assert torch.exp(mps(0)).tolist() == [101]


def test_a_paused_call_runs_on_the_stand_in_and_is_not_counted(activate: Activate) -> None:
    activate(exp=unary("exp_kernel"), add__Tensor=binary)
    with paused():
        with paused():
            assert torch.exp(mps(0)).tolist() == [1]
        assert torch.add(mps(1), 2).tolist() == [3]
    assert launch_counts.drain() == {}
    assert torch.exp(mps(0)).tolist() == [101]


def test_a_planner_sees_arguments_as_before_the_call(activate: Activate) -> None:
    seen = []

    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        seen.append(call["self"].tolist())
        raise Declined("seen")

    activate(exp_=plan)
    assert mps(0, 1).exp_().tolist() == pytest.approx([1, 2.7182817])
    assert seen == [[0, 1]]


def test_a_mistake_in_a_convention_is_a_reason_too(activate: Activate) -> None:
    activate(exp=lambda call, kernels: [call["no such argument"]])
    assert torch.exp(mps(0)).tolist() == [1]
    assert counted("aten::exp").stood_in == {"the convention failed: KeyError: 'no such argument'": 1}


def test_a_kernel_that_cannot_be_compiled_costs_no_value(activate: Activate) -> None:
    activate(exp_=unary("no_such_kernel"))
    assert mps(0).exp_().tolist() == [1]
    assert counted("aten::exp_").stood_in == {"kernel no_such_kernel of torch 9.9.9 cannot be compiled": 1}


def test_arguments_that_do_not_fit_cost_no_value_either(activate: Activate) -> None:
    activate(exp_=lambda call, kernels: [launch("exp_kernel", out=call.result)])
    assert mps(0).exp_().tolist() == [1]
    assert counted("aten::exp_").stood_in == {"a fake kernel has no arguments ['out']": 1}


def test_an_empty_result_launches_nothing_and_is_neutral(activate: Activate) -> None:
    activate(exp=unary("exp_kernel"))
    assert torch.exp(mps()).tolist() == []
    assert counted("aten::exp") == OverloadLaunches(neutral=1)


def test_a_refused_call_raises_the_error_of_the_stand_in(activate: Activate) -> None:
    activate(add__Tensor=binary)
    with pytest.raises(RuntimeError, match="size of tensor"):
        torch.add(mps(1, 2), mps(1, 2, 3))
    assert counted("aten::add.Tensor") == OverloadLaunches(neutral=1)


def test_moving_bytes_is_neutral(activate: Activate) -> None:
    activate(
        exp=lambda call, kernels: [BlitCopy(call["self"], call.result)],
        sin=lambda call, kernels: [BlitFill(call.result)],
    )
    assert torch.exp(mps(7, 8)).tolist() == [7, 8]
    assert torch.sin(mps(7, 8)).tolist() == [0, 0]
    drained = launch_counts.drain()
    assert drained["aten::exp"] == OverloadLaunches(neutral=1)
    assert drained["aten::sin"] == OverloadLaunches(neutral=1)


def test_copies_of_bytes_between_host_and_device_are_neutral_without_a_plan(activate: Activate) -> None:
    planned: list[Call] = []

    def converts(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        planned.append(call)
        raise Declined("it converts")

    converts.neutral_where = copies.PLANNERS["copy_"].neutral_where  # type: ignore[attr-defined]
    activate(copy_=converts)
    on_device = torch.tensor([7.0, 8.0]).to("mps")
    assert on_device.cpu().tolist() == [7, 8]
    assert on_device.view(2, 1).t().cpu().tolist() == [[7, 8]]
    assert counted("aten::copy_") == OverloadLaunches(neutral=3)
    assert not planned
    number = torch.ones(2, dtype=torch.complex64).to("mps").conj()
    torch.empty(2, dtype=torch.complex64).copy_(number)
    mps(1).copy_(mps(2))
    assert [(call["self"].device.type, "self" in call.on_host) for call in planned] == [("cpu", True), ("cpu", False)]


def test_a_number_is_a_number_and_a_tensor_of_the_host_is_named(activate: Activate) -> None:
    seen: list[Call] = []

    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        seen.append(call)
        raise Declined("seen")

    activate(add__Tensor=plan)
    assert (mps(1, dtype=torch.float16) + 2.5).dtype == torch.float16  # a number does not promote
    mps(1) + torch.tensor(2)
    assert seen[0]["other"] == 2.5
    assert type(seen[0]["other"]) is float
    assert seen[0]["alpha"] == 1
    assert seen[1].on_host == {"other"}
    assert seen[1]["self"].device.type == "cpu"


def test_gradients_flow_through(activate: Activate) -> None:
    activate(exp=unary("exp_kernel"))
    x = mps(0, 0).requires_grad_()
    torch.exp(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [101, 101]


def test_kernel_errors_are_raised(activate: Activate) -> None:
    activate(
        exp=lambda call, kernels: [launch("reports", output=call.result, input=call["self"], error_buf=ERROR_BUFFER)]
    )
    with pytest.raises(torch.AcceleratorError, match="index 7 is out of bounds"):
        torch.exp(mps(0))


def test_deactivated_the_device_is_as_before(activate: Activate) -> None:
    activate(exp=unary("exp_kernel"))
    interposition.deactivate()
    assert torch.exp(mps(0)).tolist() == [1]


def test_activating_again_replaces_the_planners(activate: Activate) -> None:
    activate(exp=unary("exp_kernel"))
    activate(sin=unary("exp_kernel"))
    assert torch.exp(mps(0)).tolist() == [1]
    assert torch.sin(mps(0)).tolist() == [101]
