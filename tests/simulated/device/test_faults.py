"""Faults of the simulated device: each does what its name says, when its condition says, and nothing once cleared."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from mpsmith.audit.judging.fallbacks import CounterRecorder
from mpsmith.audit.running.device import AuditedDevice
from mpsmith.audit.running.worker import _arm
from mpsmith.audit.selection import Settings
from mpsmith.errors import MpsmithError
from mpsmith.simulator.device import loading as device
from mpsmith.simulator.device.faults import Fault, FaultKind, When, clear, inject
from mpsmith.simulator.errors import SimulatorError

pytestmark = pytest.mark.usefixtures("no_faults")

EXP = "aten::exp"


@pytest.fixture
def x() -> Tensor:
    return torch.arange(12.0).reshape(3, 4).to("mps")


def right(result: Tensor, x: Tensor) -> bool:
    return torch.equal(result.cpu(), torch.exp(x.cpu()))


def test_wrong_values(x: Tensor) -> None:
    inject(Fault(EXP, FaultKind.VALUES))
    torch.testing.assert_close(torch.exp(x).cpu(), torch.exp(x.cpu()) + 1)


def test_a_cleared_fault_is_gone(x: Tensor) -> None:
    inject(Fault(EXP, FaultKind.VALUES))
    clear()
    assert right(torch.exp(x), x)


def test_only_the_named_overload_is_faulty(x: Tensor) -> None:
    inject(Fault("aten::exp.out", FaultKind.VALUES))
    assert right(torch.exp(x), x)
    assert not right(torch.exp(x, out=torch.empty_like(x)), x)


def test_nan_in_one_place(x: Tensor) -> None:
    inject(Fault(EXP, FaultKind.NAN))
    assert torch.exp(x).isnan().sum() == 1


def test_one_value_is_off_by_as_much_as_asked(x: Tensor) -> None:
    inject(Fault(EXP, FaultKind.NEAR, relative=0.5, absolute=2.0))
    difference = torch.exp(x).cpu() - torch.exp(x.cpu())
    assert difference.count_nonzero() == 1
    torch.testing.assert_close(difference[-1, -1], torch.exp(torch.tensor(11.0)) / 2 + 2)


@pytest.mark.parametrize(
    ("kind", "differs"),
    [
        (FaultKind.SHAPE, lambda t: t.shape != (3, 4)),
        (FaultKind.DTYPE, lambda t: t.dtype is torch.float16),
        (FaultKind.STRIDE, lambda t: t.stride() == (1, 4)),
    ],
)
def test_wrong_metadata_with_right_values(kind: FaultKind, differs: Callable[[Tensor], bool], x: Tensor) -> None:
    inject(Fault(EXP, kind))
    small = x / 12
    result = torch.exp(small)
    assert differs(result)
    torch.testing.assert_close(result.cpu().float().reshape(3, 4), torch.exp(small.cpu()), rtol=1e-3, atol=0)


def test_a_result_in_the_memory_of_the_input(x: Tensor) -> None:
    inject(Fault(EXP, FaultKind.ALIAS))
    assert torch.exp(x).data_ptr() == x.data_ptr()


def test_a_view_that_is_a_copy(x: Tensor) -> None:
    inject(Fault("aten::unfold", FaultKind.ALIAS))
    assert x.unfold(0, 2, 1).data_ptr() != x.data_ptr()


def test_a_write_behind_the_output(x: Tensor) -> None:
    inject(Fault("aten::exp.out", FaultKind.OUTSIDE))
    storage = torch.ones(20, device="mps")
    torch.exp(x, out=storage[4:16].view(3, 4))
    expected = torch.ones(20)
    expected[4:16] = torch.exp(x.cpu()).flatten()
    assert (storage.cpu() != expected).nonzero().tolist() == [[16]]


def test_a_changed_input(x: Tensor) -> None:
    inject(Fault(EXP, FaultKind.INPUT))
    before = x.cpu()
    torch.exp(x)
    assert (x.cpu() - before).flatten().tolist() == [1.0] + [0.0] * 11


def test_a_result_whose_memory_is_somebody_elses_after_the_next_call(x: Tensor) -> None:
    inject(Fault(EXP, FaultKind.FREED))
    first = torch.exp(x)
    assert right(first, x)
    assert right(torch.exp(x), x)
    assert first.isnan().all()


def test_a_leak_grows_with_each_call(x: Tensor) -> None:
    inject(Fault(EXP, FaultKind.LEAK))
    before = torch.mps.current_allocated_memory()
    for _ in range(5):
        torch.exp(x)
    assert torch.mps.current_allocated_memory() == before + 5 * 48


def draws(seed: int) -> Tensor:
    torch.mps.manual_seed(seed)
    return torch.empty(2000, device="mps").uniform_().cpu()


def test_an_ignored_seed() -> None:
    assert torch.equal(draws(1), draws(1))
    inject(Fault("aten::uniform_", FaultKind.SEED))
    assert not torch.equal(draws(1), draws(1))


def test_the_same_draws_again() -> None:
    inject(Fault("aten::uniform_", FaultKind.SAME_DRAWS))
    assert torch.equal(draws(1), draws(2))


def test_another_distribution() -> None:
    assert abs(float(draws(1).mean()) - 1 / 2) < 0.05
    inject(Fault("aten::uniform_", FaultKind.DISTRIBUTION))
    assert abs(float(draws(1).mean()) - 2 / 3) < 0.05


def test_another_error(x: Tensor) -> None:
    with pytest.raises(RuntimeError, match="must match the size"):
        torch.add(x, x[:, :3])
    inject(Fault("aten::add.Tensor", FaultKind.ERROR))
    with pytest.raises(ValueError, match="must match the size"):
        torch.add(x, x[:, :3])
    assert torch.add(x, x).shape == x.shape


def test_a_fallback_that_nobody_counts(x: Tensor) -> None:
    inject(Fault(EXP, FaultKind.FALLBACK))
    device.reset_counters()
    assert right(torch.exp(x), x)
    assert EXP not in device.counters()


@pytest.mark.parametrize(
    ("kind", "signal"), [(FaultKind.ABORT, 6), (FaultKind.SEGFAULT, 11), (FaultKind.HANG, 14)], ids=str
)
def test_what_ends_the_process(kind: FaultKind, signal: int, fresh_python) -> None:
    script = f"""
        import signal, torch
        from mpsmith.audit.surface.profiles import profile
        from mpsmith.simulator.device import loading as device
        from mpsmith.simulator.device.faults import Fault, FaultKind, inject
        device.load(profile(None))
        inject(Fault({EXP!r}, FaultKind({kind.value!r})))
        signal.setitimer(signal.ITIMER_REAL, 2)
        torch.exp(torch.ones(3, device="mps"))
    """
    assert fresh_python(script, check=False).returncode == -signal


@pytest.mark.parametrize(
    ("when", "acts", "spares"),
    [
        (When.NON_CONTIGUOUS, lambda x: x.t(), lambda x: x),
        (When.OFFSET, lambda x: x[1:], lambda x: x[:2]),
        (When.EXPANDED, lambda x: x[:1].expand(3, 4), lambda x: x),
        (When.EMPTY, lambda x: x[:0], lambda x: x),
    ],
)
def test_a_condition(
    when: When, acts: Callable[[Tensor], Tensor], spares: Callable[[Tensor], Tensor], x: Tensor
) -> None:
    inject(Fault("aten::sum.dim_IntList", FaultKind.VALUES, when))
    for view, is_wrong in ((acts(x), True), (spares(x), False)):
        assert torch.equal(view.sum(0).cpu(), view.cpu().sum(0)) is not is_wrong


def test_the_second_call_with_the_same_shape(x: Tensor) -> None:
    inject(Fault(EXP, FaultKind.VALUES, When.REPEATED))
    assert [right(torch.exp(t), t) for t in (x, x, x[:2], x)] == [True, False, True, True]


def test_one_dtype_and_above_a_size(x: Tensor) -> None:
    inject(Fault(EXP, FaultKind.VALUES, dtype="float16"))
    inject(Fault("aten::sin", FaultKind.VALUES, above=11))
    assert right(torch.exp(x), x)
    assert not right(torch.exp(x.half()), x.half())
    assert torch.equal(torch.sin(x[0]).cpu(), torch.sin(x[0].cpu()))
    assert not torch.equal(torch.sin(x).cpu(), torch.sin(x.cpu()))


def test_only_in_the_gradient(x: Tensor) -> None:
    inject(Fault("aten::silu_backward", FaultKind.VALUES))
    leaf, twin = x.clone().requires_grad_(), x.cpu().requires_grad_()
    outputs = [torch.nn.functional.silu(t) for t in (leaf, twin)]
    torch.testing.assert_close(outputs[0].cpu(), outputs[1])
    for output in outputs:
        output.sum().backward()
    torch.testing.assert_close(leaf.grad.cpu(), twin.grad + 1)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(EXP, FaultKind.ABORT),
        Fault("aten::exp.out", FaultKind.VALUES, When.OFFSET, dtype="float32", above=65536),
        Fault(EXP, FaultKind.NEAR, relative=3.9e-06, absolute=3e-05),
    ],
)
def test_the_compact_form_says_it_all(fault: Fault) -> None:
    assert Fault.parse(str(fault)) == fault


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("exp", "write it as"),
        ("aten::exp=leek", "no 'leek'"),
        ("aten::exp=leak,sometimes", "no 'sometimes'"),
        ("aten::exp=leak,above=many", "'many' is no number"),
        ("aten::exp=leak,size=3", "no setting 'size'"),
    ],
)
def test_bad_text_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(SimulatorError, match=complaint):
        Fault.parse(text)


def test_an_overload_without_a_native_kernel_is_refused() -> None:
    with pytest.raises(SimulatorError, match=r"no native kernel aten::exqp \(did you mean exp"):
        inject(Fault("aten::exqp", FaultKind.LEAK))
    with pytest.raises(SimulatorError, match="no dtype 'float31'"):
        inject(Fault(EXP, FaultKind.LEAK, dtype="float31"))


def test_a_real_device_gets_no_faults() -> None:
    real = AuditedDevice(simulated=False, profile=None, recorder=CounterRecorder())
    with pytest.raises(MpsmithError, match="simulated device only"):
        _arm((f"{EXP}=leak",), real)
    _arm((), real)


def test_faults_are_recorded_with_a_run() -> None:
    settings = Settings(faults=(f"{EXP}=leak",))
    assert Settings.from_recorded(settings.recorded()).faults == settings.faults
    old = settings.recorded()
    del old["faults"]
    assert Settings.from_recorded(old).faults == ()
