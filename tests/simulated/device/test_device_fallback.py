"""Missing operators: the texts of the real backend, and PYTORCH_ENABLE_MPS_FALLBACK."""

from __future__ import annotations

import warnings

import pytest
import torch

from mpsmith.simulator.device import loading as device

from ..conftest import FreshPython

SAMPLE = """
import collections, torch
from mpsmith.audit.releases.surface.profiles import coverage_profile
from mpsmith.simulator.device import loading as device
device.load(coverage_profile("2.0.1"))
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(8, 16), torch.nn.Softshrink(), torch.nn.Linear(16, 16), torch.nn.Softshrink(),
    torch.nn.Linear(16, 2),
)
x = torch.rand(4, 8)
expected = torch.func.functional_call(model, {n: p.detach().clone() for n, p in model.named_parameters()}, x)
model.to("mps")
device.reset_counters()
"""


def test_the_sample_of_the_talks_is_refused_in_strict_mode(fresh_python: FreshPython) -> None:
    done = fresh_python(SAMPLE + "model(x.to('mps'))", check=False)
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1
    assert last == (
        "NotImplementedError: The operator 'aten::softshrink.out' is not currently implemented for the MPS device. "
        "If you want this op to be considered for addition please comment on "
        "https://github.com/pytorch/pytorch/issues/141287 and mention use-case, that resulted in missing op as well "
        f"as commit hash {torch.version.git_version}. As a temporary fix, you can set the environment variable "
        "`PYTORCH_ENABLE_MPS_FALLBACK=1` to use the CPU as a fallback for this op. WARNING: this will be slower than "
        "running natively on MPS."
    )


def test_the_sample_of_the_talks_falls_back_forward_and_backward(fresh_python: FreshPython) -> None:
    script = """
y = model(x.to("mps"))
torch.testing.assert_close(y.cpu(), expected.detach())
print(device.drain_fallbacks())
y.square().sum().backward()
print(device.drain_fallbacks())
print({name: calls.fallback for name, calls in device.counters().items() if calls.fallback})
print(sum(calls.error for calls in device.counters().values()))
"""
    done = fresh_python(SAMPLE + script, PYTORCH_ENABLE_MPS_FALLBACK="1")
    assert done.stdout.splitlines() == [
        "['aten::softshrink.out']",
        "['aten::softshrink_backward.grad_input']",
        "{'aten::softshrink.out': 2, 'aten::softshrink_backward.grad_input': 2}",
        "0",
    ]
    assert done.stderr.count("UserWarning") == 1, "as on a Mac, only the first fallback of a process warns"
    assert (
        "UserWarning: The operator 'aten::softshrink.out' is not currently supported on the MPS backend and will fall "
        "back to run on the CPU. This may have performance implications."
    ) in done.stderr


@pytest.mark.parametrize(("value", "outcome"), [("1", "ran"), ("0", "refused"), (None, "refused"), ("2", "ran")])
def test_the_environment_decides_at_load(fresh_python: FreshPython, value: str | None, outcome: str) -> None:
    script = """
        import torch
        from mpsmith.audit.releases.surface.profiles import coverage_profile
        from mpsmith.simulator.device import loading as device
        device.load(coverage_profile(None))
        x = torch.ones(2, device="mps")
        try:
            torch.heaviside(x, x)
            print("ran")
        except NotImplementedError:
            print("refused")
        """
    assert fresh_python(script, PYTORCH_ENABLE_MPS_FALLBACK=value).stdout.strip() == outcome


def test_it_can_be_switched_while_running() -> None:
    x = torch.tensor([-1.0, 2.0], device="mps")
    device.set_fallback_enabled(True)
    y = torch.heaviside(x, x)
    device.set_fallback_enabled(False)
    assert y.tolist() == [0.0, 1.0]
    assert y.device.type == "mps"
    with pytest.raises(NotImplementedError, match=r"'aten::heaviside\.out' is not currently implemented"):
        torch.heaviside(x, x)


def test_every_fallback_warns_when_asked_to_in_backward_too(fallback_enabled: None) -> None:
    x = torch.rand(1, 1, 4, 4, 4, device="mps", requires_grad=True)
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                torch.nn.functional.adaptive_max_pool3d(x, 2).sum().backward()
    finally:
        torch.set_warn_always(False)
    fallbacks = [str(w.message).split("'")[1] for w in caught if "fall back to run on the CPU" in str(w.message)]
    assert fallbacks == ["aten::adaptive_max_pool3d.out", "aten::adaptive_max_pool3d_backward.grad_input"] * 2


def test_out_arguments_of_a_fallback_are_filled(fallback_enabled: None) -> None:
    x = torch.tensor([-1.0, 2.0], device="mps")
    out = torch.empty(0, device="mps")
    torch.heaviside(x, x, out=out)
    assert out.tolist() == [0.0, 1.0]


def test_the_dispatcher_distinguishes_missing_from_native_as_on_a_mac() -> None:
    def mps_line(operator: str) -> str:
        table = torch._C._dispatch_dump_table(operator)
        return next(line for line in table.splitlines() if line.startswith("MPS:"))

    assert "[backend fallback]" in mps_line("aten::heaviside.out")
    assert "[kernel]" in mps_line("aten::softshrink.out")
    assert "[default backend kernel]" in mps_line("aten::heaviside")
    assert torch._C._dispatch_has_kernel_for_dispatch_key("aten::softshrink.out", "MPS")
    assert not torch._C._dispatch_has_kernel_for_dispatch_key("aten::heaviside.out", "MPS")


def test_a_python_kernel_replaces_a_fallback_and_lets_it_come_back(fallback_enabled: None) -> None:
    library = torch.library.Library("aten", "IMPL", "MPS")
    library.impl("heaviside.out", lambda self, values, out: out.copy_(torch.full_like(self, 7.0)))
    x = torch.ones(2, device="mps")
    device.drain_fallbacks()
    assert torch.heaviside(x, x).tolist() == [7.0, 7.0]
    assert device.drain_fallbacks() == []
    library._destroy()
    assert torch.heaviside(x, x).tolist() == [1.0, 1.0]
    assert device.drain_fallbacks() == ["aten::heaviside.out"]
