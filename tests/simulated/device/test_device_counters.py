"""Exact counts of native calls, fallbacks and errors."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import torch

from mpsmith.simulator.device import loading as device
from mpsmith.simulator.device.loading import OperatorCalls

# An operator that has no mps kernel in the installed torch.
MISSING = "aten::heaviside.out"


def call_missing(x: torch.Tensor) -> torch.Tensor:
    return torch.heaviside(x, x)


@pytest.fixture(autouse=True)
def fresh_counters() -> Iterator[None]:
    device.reset_counters()
    yield
    device.reset_counters()


def test_every_native_call_counts() -> None:
    x = torch.ones(3, device="mps")
    device.reset_counters()
    for _ in range(5):
        torch.add(x, x)
    torch.mul(x, 2)
    assert device.counters() == {
        "aten::add.Tensor": OperatorCalls(native=5, fallback=0, error=0),
        "aten::mul.Tensor": OperatorCalls(native=1, fallback=0, error=0),
    }


def test_cpu_calls_inside_a_native_operator_do_not_count() -> None:
    x = torch.rand(4, 4, device="mps")
    device.reset_counters()
    torch.nn.functional.linear(x, x)
    assert list(device.counters()) == ["aten::linear"]


def test_factories_count() -> None:
    torch.empty(2, device="mps")
    torch.empty_strided((2, 2), (1, 2), device="mps")
    assert device.counters() == {
        "aten::empty.memory_format": OperatorCalls(1, 0, 0),
        "aten::empty_strided": OperatorCalls(1, 0, 0),
    }


def test_a_refused_operator_counts_as_error() -> None:
    x = torch.ones(3, device="mps")
    device.reset_counters()
    for _ in range(2):
        with pytest.raises(NotImplementedError):
            call_missing(x)
    assert device.counters()[MISSING] == OperatorCalls(native=0, fallback=0, error=2)
    assert device.drain_calls()[MISSING] == OperatorCalls(native=0, fallback=0, error=2)
    assert device.drain_fallbacks() == []


def test_a_fallback_counts_and_its_copies_are_native_calls(fallback_enabled: None) -> None:
    x = torch.ones(3, device="mps")
    device.reset_counters()
    call_missing(x)
    counts = device.counters()
    assert counts[MISSING] == OperatorCalls(native=0, fallback=1, error=0)
    assert device.drain_fallbacks() == [MISSING]
    assert counts["aten::_copy_from_and_resize"].native == 1
    assert all(calls == OperatorCalls(calls.native, 0, 0) for name, calls in counts.items() if name != MISSING)


def test_an_operator_that_always_falls_back_does_so_in_strict_mode() -> None:
    weight = torch.rand(4, 3, device="mps")
    torch.embedding_renorm_(weight, torch.tensor([0, 1], device="mps"), 0.5, 2.0)
    assert device.drain_fallbacks() == ["aten::embedding_renorm_"]
    assert weight.cpu().norm(dim=1)[:2].tolist() == pytest.approx([0.5, 0.5], abs=1e-4)


def test_a_drain_reports_only_new_calls(fallback_enabled: None) -> None:
    x = torch.ones(3, device="mps")
    device.reset_counters()
    torch.add(x, x)
    call_missing(x)
    assert device.drain_calls()["aten::add.Tensor"].native == 1
    torch.add(x, x)
    torch.add(x, x)
    assert device.drain_calls() == {"aten::add.Tensor": OperatorCalls(2, 0, 0)}
    assert device.drain_calls() == {}
    assert device.counters()["aten::add.Tensor"].native == 3, "a drain leaves the totals alone"


def test_the_two_drains_are_independent(fallback_enabled: None) -> None:
    x = torch.ones(3, device="mps")
    device.drain_calls()
    call_missing(x)
    call_missing(x)
    assert device.drain_fallbacks() == [MISSING]
    assert device.drain_fallbacks() == []
    assert device.drain_calls()[MISSING].fallback == 2


def test_a_drain_is_in_order_of_first_call() -> None:
    x = torch.ones(3, device="mps")
    device.drain_calls()
    torch.neg(x)
    torch.cos(x)
    torch.neg(x)
    assert list(device.drain_calls()) == ["aten::neg", "aten::cos"]


def test_reset_drops_undrained_calls(fallback_enabled: None) -> None:
    x = torch.ones(3, device="mps")
    call_missing(x)
    device.reset_counters()
    assert device.counters() == {}
    assert device.drain_calls() == {}
    assert device.drain_fallbacks() == []
    call_missing(x)
    assert device.drain_calls()[MISSING] == OperatorCalls(0, 1, 0)


def test_a_fallback_in_backward_is_seen(fallback_enabled: None) -> None:
    """The engine runs it in a separate thread."""
    x = torch.rand(1, 3, 6, 6, 6, device="mps", requires_grad=True)
    y = torch.nn.functional.adaptive_max_pool3d(x, 2).sum()
    device.drain_fallbacks()
    y.backward()
    assert device.drain_fallbacks() == ["aten::adaptive_max_pool3d_backward.grad_input"]


def test_counts_of_many_threads_add_up_and_drains_lose_nothing() -> None:
    x = torch.ones(3, device="mps")
    device.reset_counters()
    threads = [threading.Thread(target=lambda: [torch.add(x, x) for _ in range(500)]) for _ in range(4)]
    drained = 0
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        drained += sum(calls.native for calls in device.drain_calls().values())
    for thread in threads:
        thread.join()
    drained += sum(calls.native for calls in device.drain_calls().values())
    assert drained == device.counters()["aten::add.Tensor"].native == 2000


def test_convolutions_are_counted_under_the_names_that_a_mac_uses() -> None:
    x = torch.rand(1, 2, 5, 5, device="mps", requires_grad=True)
    layer = torch.nn.Conv2d(2, 3, 3).to("mps")
    up = torch.nn.ConvTranspose2d(3, 2, 3).to("mps")
    device.reset_counters()
    up(layer(x)).sum().backward()
    counted = device.counters()
    for name in (
        "_mps_convolution",
        "mps_convolution_backward",
        "_mps_convolution_transpose",
        "mps_convolution_transpose_backward",
    ):
        assert counted[f"aten::{name}"] == OperatorCalls(1, 0, 0)


def test_attention_takes_its_own_operator_unless_a_gradient_is_wanted() -> None:
    q = torch.rand(1, 2, 3, 4, device="mps")
    device.reset_counters()
    torch.nn.functional.scaled_dot_product_attention(q, q, q)
    assert device.counters()["aten::_scaled_dot_product_attention_math_for_mps"] == OperatorCalls(1, 0, 0)
    device.reset_counters()
    torch.nn.functional.scaled_dot_product_attention(q.requires_grad_(), q, q).sum().backward()
    assert "aten::_scaled_dot_product_attention_math_for_mps" not in device.counters()


def test_an_operator_that_nothing_here_can_compute_says_so() -> None:
    weight = torch.zeros(32, 32, dtype=torch.int32, device="mps")
    with pytest.raises(
        NotImplementedError, match="'aten::_convert_weight_to_int4pack' is native on the MPS device, but"
    ):
        torch._convert_weight_to_int4pack(weight, 2)
    assert device.counters()["aten::_convert_weight_to_int4pack"] == OperatorCalls(1, 0, 0)
