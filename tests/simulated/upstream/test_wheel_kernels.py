"""Native calls of the simulated device, answered by the host code of a release's macOS wheel."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from mpsmith.simulator.errors import MachOError
from mpsmith.simulator.macho import arm64_command

pytestmark = pytest.mark.network  # the wheel, and mpsmith check --setup

PROGRAM = """
from concurrent.futures import ThreadPoolExecutor

import torch
from mpsmith.audit.releases.surface.profiles import coverage_profile
from mpsmith.audit.running.host_code import start_wheel
from mpsmith.simulator.device import loading
from mpsmith.simulator.errors import KernelFault
from mpsmith.simulator.macho.device_kernels import WheelKernels
from mpsmith.simulator.device import launch_counts

loading.load(coverage_profile(None))
with start_wheel("2.13.0", "26") as process:
    native = [name.removeprefix("aten::") for name, found in process.operators().items() if found.mps]
kernels = WheelKernels(lambda: start_wheel("2.13.0", "26"), native)
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
allocated = torch.mps.current_allocated_memory()
(x + 1).exp()
assert torch.mps.current_allocated_memory() == allocated  # the arguments of the last call are freed, too
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
launched = launch_counts.drain()
assert kernels.completed_calls >= 10 and launched["aten::exp"].kernels["exp_dense_scalar_float_float"], launched
completed = kernels.completed_calls
torch.testing.assert_close(x.half().t().contiguous().cpu(), values.half().t().contiguous())  # copies on the device
spun = torch.complex(values, 2 * values)
torch.testing.assert_close(spun.to("mps").conj().t().clone().cpu(), spun.conj().t().clone())
assert kernels.completed_calls > completed
assert launch_counts.drain()["aten::copy_"].kernels["copy_identity_dense_castout_float"]
completed = kernels.completed_calls
assert not torch.empty(0, 3, device="mps").exp().numel() and kernels.completed_calls == completed + 1  # no launch
torch.testing.assert_close(x.median(1)[0].cpu(), values.median(1)[0])
assert not kernels.stood_in, kernels.stood_in
ordered, places = torch.empty(0, device="mps"), torch.empty(0, dtype=torch.int64, device="mps")
torch.sort(x, 1, True, out=(ordered, places))  # both grow, each in its own memory
torch.testing.assert_close((ordered.cpu(), places.cpu()), tuple(values.sort(1, True)))
assert torch.equal(x.cpu(), values)

generator = torch.Generator("mps").manual_seed(7)  # its state goes there and comes back
torch.mps.manual_seed(7)
before = torch.mps.get_rng_state()
drawn = torch.rand(4, 6, device="mps")
assert not torch.equal(torch.mps.get_rng_state(), before)
assert torch.equal(torch.empty(4, 6, device="mps").uniform_(generator=generator).cpu(), drawn.cpu())
assert torch.equal(generator.get_state(), torch.mps.get_rng_state())
assert not torch.equal(torch.rand(4, 6, device="mps").cpu(), drawn.cpu())
torch.mps.set_rng_state(before)
assert torch.equal(torch.rand(4, 6, device="mps").cpu(), drawn.cpu())

with ThreadPoolExecutor(2) as pool:  # calls of two threads do not mix
    for number, found in enumerate(pool.map(lambda number: (x + number).cpu(), range(40))):
        assert torch.equal(found, values + number)
assert not kernels.stood_in, kernels.stood_in
seven = torch.ones(7, device="mps")
completed = kernels.completed_calls
try:
    x + seven
except RuntimeError as error:
    assert "must match the size" in str(error) and kernels.completed_calls == completed + 1
else:
    raise AssertionError("sizes that do not fit were accepted")

try:
    torch.cholesky(-torch.eye(2, device="mps"))
except torch.linalg.LinAlgError as error:
    assert "not positive-definite" in str(error)
else:
    raise AssertionError("a matrix without a factorization was accepted")
try:
    x[torch.tensor([9], device="mps")]
except torch.AcceleratorError as error:
    assert "index 9 is out of bounds" in str(error)
else:
    raise AssertionError("an index out of range was accepted")
launch_counts.drain()
halves = torch.zeros(20, dtype=torch.float16, device="mps")[5:9]  # begins between two words
try:
    halves.index_reduce_(0, torch.tensor([0], device="mps"), halves[:1].clone(), "amax")
except KernelFault as error:
    launched = launch_counts.drain()
    assert "starts at byte 10" in str(error)
    assert launched["aten::index_reduce_"].kernels["index_reduce_amax_half_long"]
else:
    raise AssertionError("what is not aligned was accepted")

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
