"""Registering kernels with the dispatcher: what is touched, what comes back, and what torch's machinery makes of it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import torch
from torch._subclasses import FakeTensorMode

from mpsmith import kernels
from mpsmith.kernels import State
from mpsmith.kernels.runtime import catalog, dispatcher
from mpsmith.simulator.device import loading as device

pytestmark = pytest.mark.usefixtures("nothing_registered")

HEAVISIDE = "aten::heaviside.out"


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


def test_enabling_twice_changes_nothing_and_disabling_brings_back_what_was() -> None:
    assert not has_kernel(HEAVISIDE)
    assert kernels.enable("heaviside") == (HEAVISIDE,)
    assert kernels.enable("aten::heaviside.out", "heaviside") == (HEAVISIDE,)
    assert kernels.registered() == (HEAVISIDE,)
    assert has_kernel(HEAVISIDE)
    assert kernels.disable() == (HEAVISIDE,)
    assert not has_kernel(HEAVISIDE)
    assert kernels.disable() == ()


def test_native_overloads_are_left_alone() -> None:
    kernels_here = [kernel for kernel in catalog.all_kernels() if dispatcher.exists(kernel.overload)]
    overloads = {kernel.overload: kernel for kernel in kernels_here}
    native = {name for name, kernel in overloads.items() if kernel.applies is None and has_kernel(name)}
    native -= {"aten::embedding_renorm_", "aten::linalg_svd", "aten::linalg_svd.U"}  # torch hands them to the CPU
    registered = set(kernels.enable(*overloads))
    assert registered == set(overloads) - native
    assert {name for name, state in states().items() if state is State.native} == native
    assert "aten::softshrink.out" in native


@pytest.mark.filterwarnings("ignore:The operator .aten::embedding_renorm_")
def test_what_torch_hands_to_the_cpu_counts_as_lacking() -> None:
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


def test_use_is_exact_inside_and_restores_what_was_outside() -> None:
    kernels.enable("mode")
    before = kernels.registered()
    with kernels.use("heaviside") as inside:
        assert inside == kernels.registered() == (HEAVISIDE,)
        with kernels.use():
            assert kernels.registered() == ()
        assert kernels.registered() == (HEAVISIDE,)
    assert kernels.registered() == before
    with pytest.raises(KeyError), kernels.use("heaviside"):
        raise KeyError
    assert kernels.registered() == before


def test_many_threads_may_enable_and_disable() -> None:
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


def test_the_registry_decides_what_is_registered_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "h.yaml").write_text(
        "aten::heaviside:\n  status: implemented\n  kernel: heaviside\n"
        "aten::take:\n  status: scaffolded\n  kernel: put_take\n"
    )
    monkeypatch.setenv("MPSMITH_REGISTRY", str(tmp_path))
    assert kernels.enable() == (HEAVISIDE,)
    assert states()[HEAVISIDE] is State.registered
    assert states()["aten::take"] is State.unfinished
    kernels.disable()
    assert states()[HEAVISIDE] is State.available


def test_an_override_answers_only_the_calls_that_it_is_for() -> None:
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


def test_a_broadcast_in_place_call_runs_through_the_out_kernel() -> None:
    kernels.enable("heaviside")
    x = torch.tensor([[-1.0, 0.0, 2.0], [0.0, 1.0, -2.0]], device="mps")
    assert x.heaviside_(torch.tensor([5.0, 6.0, 7.0], device="mps")) is x
    assert x.tolist() == [[0, 6, 1], [5, 1, 0]]
    assert fallbacks_of(lambda: x.heaviside_(x)) == []


def test_autocast_leaves_the_dtype_and_the_gradient_alone() -> None:
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


def test_compile_without_a_code_generator() -> None:
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
