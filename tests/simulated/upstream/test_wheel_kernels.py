"""Native calls of the simulated device, answered by the host code of a release's macOS wheel."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from mpsmith.simulator.errors import MachOError
from mpsmith.simulator.macho import arm64_command

pytestmark = pytest.mark.network  # the wheel, and mpsmith check --setup

PROGRAM = """
import torch
from mpsmith.audit.releases.surface.profiles import coverage_profile
from mpsmith.audit.running.host_code import start_wheel
from mpsmith.simulator.device import loading
from mpsmith.simulator.macho.device_kernels import WheelKernels

loading.load(coverage_profile(None))
kernels = WheelKernels(lambda: start_wheel("2.13.0", "26"))
kernels.install()
assert "add.Tensor" in kernels.overloads and not kernels.overloads & {"view", "empty_strided"}

values = torch.linspace(-2, 3, 24).reshape(4, 6)
x = values.to("mps")
layouts = [lambda t: t, lambda t: t.t(), lambda t: t[::2, 1:4], lambda t: t[:1].expand(4, 6), lambda t: t[:0]]
for layout in (*layouts, lambda t: t[1, 1]):
    torch.testing.assert_close((layout(x) + 2 * layout(x)).cpu(), 3 * layout(values))
    torch.testing.assert_close(layout(x).exp().cpu(), layout(values).exp())
x.t()[1:3].mul_(2)  # a view, in place
values.t()[1:3].mul_(2)
assert torch.equal(x.cpu(), values)
out = torch.empty(0, device="mps")
assert torch.add(x, 1, out=out) is out
assert out.shape == (4, 6) and torch.equal(out.cpu(), values + 1)
torch.add(x, 1, out=out.t().t()[:, :6])
weight = torch.ones(6, requires_grad=True)
there = weight.detach().to("mps").requires_grad_()
torch.nn.functional.gelu(values * weight).sum().backward()
torch.nn.functional.gelu(x * there).sum().backward()
torch.testing.assert_close(there.grad.cpu(), weight.grad)
x.softmax(1)
assert kernels.graphs >= 1 and kernels.launched["exp_dense_scalar_float_float"] >= 1, kernels.launched
assert not kernels.stood_in, kernels.stood_in
try:
    x + torch.ones(7, device="mps")
except RuntimeError as error:
    assert "must match the size" in str(error)
else:
    raise AssertionError("sizes that do not fit were accepted")

kernels._process._process.kill()  # it crashes: one call is the device's
assert torch.equal(x.neg().cpu(), -values)
assert kernels.stood_in.total() == 1
assert torch.equal(x.neg().cpu(), -values)
assert kernels.stood_in.total() == 1
kernels.close()
print("done")
"""


def test_calls_go_to_the_wheel_and_come_back(fresh_python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    try:
        arm64_command()
    except MachOError as error:
        pytest.skip(str(error))
    done = fresh_python(PROGRAM)
    assert done.stdout.endswith("done\n"), done.stderr[-2000:]
