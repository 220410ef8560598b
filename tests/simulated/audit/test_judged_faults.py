"""Faults that a comparison of results alone does not show: in the arguments, in memory, in the generators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith.audit.cases.sources import case_sources
from mpsmith.audit.judging.compare import FLUSHED
from mpsmith.audit.judging.judge import judge
from mpsmith.audit.model.case import make_cases
from mpsmith.audit.model.selection import Samples
from mpsmith.audit.model.verdicts import CaseVerdict
from mpsmith.simulator.fallback_recorders import CounterRecorder
from support.faulty_kernels import faulty_kernel

Kernel = Callable[..., Any]


@pytest.fixture(scope="module")
def sources() -> Any:
    return case_sources(())


def messages(sources: Any, source: str, operator: str, dtype: str = "float32") -> list[str]:
    """What the judge says of the operator's cases that are wrong."""
    keys = [key for key in sources[source].groups() if key.operator == operator and key.dtype == dtype]
    assert keys
    outcomes = [
        judge(case, CounterRecorder(), 0, f"{key.label}:{position}")
        for key in keys
        for position, case in make_cases(sources[source], key, Samples.DEFAULT, 0).items()
    ]
    return [outcome.message for outcome in outcomes if outcome.verdict is CaseVerdict.WRONG]


def forgets_statistics(kernel: Kernel, *args: Any) -> Any:
    copies = [arg.clone() if i in (3, 4) and arg is not None else arg for i, arg in enumerate(args)]
    return kernel(*copies)


@pytest.mark.parametrize(
    ("source", "operator"),
    [
        ("opinfo", "nn.functional.batch_norm"),
        ("opinfo", "nn.functional.instance_norm"),
        ("modules", "nn.BatchNorm2d"),
        ("modules", "nn.InstanceNorm1d"),
    ],
)
def test_running_statistics_that_are_never_updated_show(source: str, operator: str, sources) -> None:
    assert messages(sources, source, operator) == []
    with faulty_kernel("native_batch_norm", forgets_statistics):
        assert any(" after the call: " in message for message in messages(sources, source, operator))


def forgets_squares(
    kernel: Kernel, self: Any, grads: Any, exp_avgs: Any, exp_avg_sqs: Any, *args: Any, **kw: Any
) -> Any:
    return kernel(self, grads, exp_avgs, [square.clone() for square in exp_avg_sqs], *args, **kw)


def test_a_fused_optimizer_that_does_not_update_a_state_is_wrong(sources) -> None:
    assert messages(sources, "schema", "_fused_adam_") == []
    with faulty_kernel("_fused_adam_", forgets_squares):
        assert messages(sources, "schema", "_fused_adam_")


def test_a_write_outside_a_view_is_wrong(sources) -> None:
    def spills(kernel: Kernel, self: Tensor) -> Tensor:
        result = kernel(self)
        whole = torch.empty(0, dtype=self.dtype, device=self.device).set_(self.untyped_storage())
        if whole.numel() > self.numel():
            whole[~_touched(whole, self)] = 7
        return result

    def _touched(whole: Tensor, view: Tensor) -> Tensor:
        touched = torch.zeros(whole.numel(), dtype=torch.bool)
        touched.as_strided(view.size(), view.stride(), view.storage_offset()).fill_(True)
        return touched.to(whole.device)

    assert messages(sources, "layouts", "erf") == []
    with faulty_kernel("erf", spills):
        assert any(m.startswith("the memory around input 0") for m in messages(sources, "layouts", "erf"))


def test_a_backward_that_overwrites_an_input_is_wrong(sources) -> None:
    def corrupts(kernel: Kernel, gradient: Tensor, output: Tensor) -> Tensor:
        result = kernel(gradient, output)
        output.zero_()
        return result

    with faulty_kernel("tanh_backward", corrupts):
        assert any(m.startswith("output 0 after the backward") for m in messages(sources, "opinfo", "tanh"))


def test_outputs_in_one_storage_show_where_each_has_its_own(sources) -> None:
    def sliced(kernel: Kernel, *args: Any, **kwargs: Any) -> Any:
        return tuple(torch.stack(kernel(*args, **kwargs)).unbind())

    assert messages(sources, "opinfo", "aminmax") == []
    with faulty_kernel("aminmax", sliced):
        assert "output 1 shares the memory of output 0, unlike the CPU's" in messages(sources, "opinfo", "aminmax")


def test_views_that_are_copies_show(sources) -> None:
    def copied(kernel: Kernel, *args: Any, **kwargs: Any) -> Any:
        return [part.clone() for part in kernel(*args, **kwargs)]

    assert messages(sources, "opinfo", "split_with_sizes") == []
    with faulty_kernel("split_with_sizes", copied):
        assert "output 0 shares no memory with an input, unlike the CPU's" in messages(
            sources, "opinfo", "split_with_sizes"
        )


def test_an_unneeded_random_draw_is_wrong(sources) -> None:
    def draws(kernel: Kernel, self: Tensor) -> Tensor:
        torch.rand(1, device=self.device)
        return kernel(self)

    with faulty_kernel("sinh", draws):
        assert set(messages(sources, "opinfo", "sinh")) == {"draws from the default generator, unlike the CPU"}


def test_a_generator_that_does_not_advance_is_wrong(sources) -> None:
    def still(kernel: Kernel, self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        state = torch.mps.get_rng_state()
        result = kernel(self, *args, **kwargs)
        torch.mps.set_rng_state(state)
        return result

    with faulty_kernel("exponential_", still):
        assert "does not advance the default generator, unlike the CPU" in messages(sources, "opinfo", "exponential")


def naive_log1p(kernel: Kernel, self: Tensor) -> Tensor:
    return torch.log(self + 1)


def naive_sinh(kernel: Kernel, self: Tensor) -> Tensor:
    return (torch.exp(self) - torch.exp(-self)) / 2


@pytest.mark.parametrize(("operator", "faulty"), [("log1p", naive_log1p), ("sinh", naive_sinh)])
def test_a_result_that_is_inexact_near_zero_is_wrong(operator: str, faulty: Any, sources) -> None:
    with faulty_kernel(operator, faulty):
        assert any(" elements differ" in m for m in messages(sources, "cancellation", operator))


def by_moments(kernel: Kernel, self: Tensor, dim: Any = None, *, correction: Any = 1, keepdim: bool = False) -> Tensor:
    dims = dim or list(range(self.dim()))
    exact = kernel(self, dim, correction=correction, keepdim=keepdim)
    biased = kernel(self, dim, correction=0, keepdim=keepdim)
    mean, of_squares = self.mean(dims, keepdim), (self * self).mean(dims, keepdim)
    return (of_squares - mean * mean) * (exact / biased).nan_to_num(1.0, 1.0, 1.0)


def test_a_variance_from_its_moments_is_wrong(sources) -> None:
    assert messages(sources, "cancellation", "var") == []
    with faulty_kernel("var.correction", by_moments):
        assert any(" elements differ" in m for m in messages(sources, "cancellation", "var"))


def test_a_softmax_without_subtracting_the_maximum_is_wrong(sources) -> None:
    def overflowing(kernel: Kernel, self: Tensor, dim: int, half_to_float: bool) -> Tensor:
        return self.exp() / self.exp().sum(dim, keepdim=True)

    assert messages(sources, "cancellation", "softmax") == []
    with faulty_kernel("_softmax", overflowing):
        assert any(": nan, CPU " in m for m in messages(sources, "cancellation", "softmax"))


@pytest.mark.parametrize(
    ("prefix", "operator"),
    [("", "neg"), ("", "round"), ("", "tan"), ("schema ", "index.Tensor"), ("schema ", "upsample_nearest2d")],
)
def test_a_lost_sign_of_zero_is_wrong(prefix: str, operator: str, sources) -> None:
    def without_sign(kernel: Kernel, *args: Any) -> Tensor:
        return kernel(*args) + 0.0

    source = f"{prefix}special values"
    assert messages(sources, source, operator) == []
    with faulty_kernel(operator, without_sign):
        assert any(m.startswith("the sign of zero") for m in messages(sources, source, operator))


def test_a_device_that_flushes_is_right_and_it_is_said(sources) -> None:
    def flushed(x: Tensor) -> Tensor:
        return torch.where(x.abs() < 2.0**-126, x * 0, x)

    (key,) = [k for k in sources["special values"].groups() if k.operator == "log" and k.dtype == "float32"]
    with faulty_kernel("log", lambda kernel, self: kernel(flushed(self))):
        outcomes = [
            judge(case, CounterRecorder(), 0, f"{key.label}:{position}")
            for position, case in make_cases(sources["special values"], key, Samples.DEFAULT, 0).items()
        ]
    assert {outcome.verdict for outcome in outcomes} == {CaseVerdict.PASSED}
    assert FLUSHED in {outcome.message for outcome in outcomes}
