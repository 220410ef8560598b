"""Kernels in the real dispatcher, with fake tensors, autocast, vmap, torch.compile and opcheck."""

from __future__ import annotations

import threading

import pytest
import torch
from torch._subclasses import FakeTensorMode

from mpsmith import kernels
from mpsmith.kernels import State
from mpsmith.kernels.runtime import catalog, dispatcher
from mpsmith.simulator.device import loading as device

pytestmark = pytest.mark.usefixtures("nothing_registered")


def has_kernel(overload: str) -> bool:
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(overload, "MPS"))


def states() -> dict[str, State]:
    return {status.overload: status.state for status in kernels.status()}


def fallbacks_of(call) -> list[str]:  # type: ignore[no-untyped-def]
    device.set_fallback_enabled(True)
    device.drain_fallbacks()
    try:
        call()
    finally:
        device.set_fallback_enabled(False)
    return device.drain_fallbacks()


def test_native_overloads_are_not_replaced() -> None:
    kernels_here = [kernel for kernel in catalog.all_kernels() if dispatcher.exists(kernel.overload)]
    overloads = {kernel.overload: kernel for kernel in kernels_here}
    native = {name for name, kernel in overloads.items() if kernel.applies is None and has_kernel(name)}
    native |= {name for name, kernel in overloads.items() if kernel.derived}
    native -= {"aten::embedding_renorm_", "aten::linalg_svd", "aten::linalg_svd.U"}  # torch hands them to the CPU
    native -= {"aten::_slow_conv2d_forward"}  # torch's kernel refuses every call
    registered = set(kernels.enable(*overloads))
    assert registered == set(overloads) - native
    assert {name for name, state in states().items() if state is State.native} == native
    assert "aten::softshrink.out" in native


def test_convolution_on_two_devices_is_refused() -> None:
    x, weight = torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2, device="mps")
    with kernels.use("_slow_conv2d_forward"), pytest.raises(RuntimeError, match="two devices, cpu and mps:0"):
        torch.conv2d(x, weight)


@pytest.mark.filterwarnings("ignore:The operator .aten::embedding_renorm_")
def test_cpu_fallbacks_are_replaced() -> None:
    def renorm() -> torch.Tensor:
        weight = torch.ones(3, 4, device="mps")
        return torch.embedding_renorm_(weight, torch.tensor([1], device="mps"), 1.0, 2.0).cpu()

    expected = renorm()
    assert fallbacks_of(renorm) == ["aten::embedding_renorm_"]
    kernels.enable("embedding_renorm_")
    assert fallbacks_of(renorm) == []
    torch.testing.assert_close(renorm(), expected)
    kernels.disable()
    assert fallbacks_of(renorm) == ["aten::embedding_renorm_"]


def test_enable_and_disable_in_threads() -> None:
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(30):
                kernels.enable("heaviside", "take")
                kernels.disable("heaviside")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert set(kernels.registered()) == {"aten::take", "aten::take.out"}


def test_override_replaces_only_its_calls() -> None:
    def pooled(size: int) -> torch.Tensor:
        x = torch.arange(2 * 36.0, device="mps").reshape(1, 2, 6, 6).requires_grad_()
        y = torch.nn.functional.adaptive_avg_pool2d(x, size)
        y.square().sum().backward()
        return torch.cat([y.detach().reshape(-1), x.grad.reshape(-1)]).cpu()

    even, uneven = pooled(3), pooled(4)
    names = kernels.enable("_adaptive_avg_pool2d", "_adaptive_avg_pool2d_backward")
    assert names == ("aten::_adaptive_avg_pool2d", "aten::_adaptive_avg_pool2d_backward")
    for size, expected, native in ((3, even, 1), (4, uneven, 0)):
        device.reset_counters()
        torch.testing.assert_close(pooled(size), expected)
        for name in names:
            calls = device.counters().get(name)
            assert (calls.native if calls else 0) == native, (name, size)


def test_broadcast_in_place_call_uses_the_out_kernel() -> None:
    kernels.enable("heaviside")
    x = torch.tensor([[-1.0, 0.0, 2.0], [0.0, 1.0, -2.0]], device="mps")
    assert x.heaviside_(torch.tensor([5.0, 6.0, 7.0], device="mps")) is x
    assert x.tolist() == [[0, 6, 1], [5, 1, 0]]
    assert fallbacks_of(lambda: x.heaviside_(x)) == []


def test_autocast_keeps_dtype_and_gradient() -> None:
    kernels.enable("_pdist_forward", "_pdist_backward")
    x = torch.randn(4, 3, device="mps", requires_grad=True)
    with torch.autocast("mps", dtype=torch.float16):
        y = torch.nn.functional.pdist(x)
    assert y.dtype == torch.float32
    y.sum().backward()
    assert x.grad is not None


def test_fake_tensors_and_meta_run_no_kernel() -> None:
    kernels.enable("mode", "heaviside")
    with FakeTensorMode():
        values, indices = torch.mode(torch.empty(3, 4, device="mps"), 0)
        assert values.shape == indices.shape == (4,)
        assert values.device.type == "mps"
        assert torch.heaviside(torch.empty(2, device="mps"), torch.empty(2, device="mps")).shape == (2,)


def test_vmap() -> None:
    kernels.enable("heaviside", "mode")
    x = torch.randint(-1, 2, (4, 5), device="mps").float()
    at_zero = torch.tensor(0.5, device="mps")
    assert torch.equal(torch.vmap(lambda row: torch.heaviside(row, at_zero))(x), torch.heaviside(x, at_zero))
    assert torch.equal(torch.vmap(lambda row: torch.mode(row)[0])(x), torch.mode(x, 1)[0])


def test_compile_with_aot_eager() -> None:
    kernels.enable("heaviside", "_adaptive_avg_pool3d", "_adaptive_avg_pool3d_backward")

    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.adaptive_avg_pool3d(x * 2, (2, 2, 3)).sum()

    x = torch.randn(1, 2, 4, 5, 6, device="mps", requires_grad=True)
    expected = torch.autograd.grad(f(x), x)[0]
    actual = torch.autograd.grad(torch.compile(f, backend="aot_eager")(x), x)[0]
    torch.testing.assert_close(actual, expected)


OPCHECKED = {
    "aten::mode": (torch.tensor([[1.0, 2.0, 2.0]]), 1),
    "aten::heaviside": (torch.tensor([1.0, 0.0]), torch.tensor([1.0, 0.5])),
    "aten::take": (torch.tensor([1.0, 2.0]), torch.tensor([1, 0])),
    "aten::put_": (torch.tensor([1.0, 2.0]), torch.tensor([1]), torch.tensor([3.0])),
    "aten::logit_": (torch.tensor([0.25, 0.5]), 0.1),
    "aten::_pdist_forward": (torch.ones(3, 2), 2.0),
    "aten::_adaptive_avg_pool3d": (torch.ones(1, 2, 4, 4, 4), [2, 2, 2]),
    "aten::adaptive_max_pool3d": (torch.ones(1, 2, 4, 4, 4), [2, 2, 2]),
    "aten::fractional_max_pool2d": (torch.ones(1, 2, 6, 6), [2, 2], [3, 3], torch.full((1, 2, 2), 0.5)),
    "aten::multi_margin_loss": (torch.ones(2, 3), torch.tensor([0, 1])),
    "aten::multilabel_margin_loss_forward": (torch.ones(2, 3), torch.tensor([[0, -1, 0], [1, 2, -1]]), 1),
    "aten::special_ndtri": (torch.tensor([0.25, 0.5]),),
    "aten::special_airy_ai": (torch.tensor([0.25, 0.5]),),
    "aten::embedding_renorm_": (torch.ones(3, 2), torch.tensor([1]), 0.5, 2.0),
    "aten::rrelu_with_noise": (torch.ones(3), torch.ones(3), 0.1, 0.3, True),
    "aten::linalg_ldl_factor_ex": (torch.eye(3),),
    "aten::linalg_ldl_solve": (torch.eye(3), torch.tensor([1, 2, 3], dtype=torch.int32), torch.ones(3, 1)),
}


@pytest.mark.parametrize("operator", OPCHECKED)
def test_opcheck(operator: str) -> None:
    kernels.enable(operator)
    arguments = [a.to("mps") if isinstance(a, torch.Tensor) else a for a in OPCHECKED[operator]]
    overload = getattr(torch.ops.aten, operator.removeprefix("aten::")).default
    torch.library.opcheck(
        overload, tuple(arguments), test_utils=("test_schema", "test_autograd_registration", "test_faketensor")
    )
