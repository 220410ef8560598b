"""An example of each kind of difference that the judge reports, by its message.

The CPU plays the device: `Turn` says which of them runs, and the examples misbehave on the device.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith.audit.cases.sources import forms
from mpsmith.audit.cases.sources.random import under_seeds
from mpsmith.audit.cases.sources.repetition import WithOtherValues
from mpsmith.audit.judging import judge, reference
from mpsmith.audit.judging.compare import SLACK, TOLERANCES
from mpsmith.audit.judging.judge import Trial
from mpsmith.audit.judging.reference import WideRuns
from mpsmith.audit.model.case import Case
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome

RTOL, ATOL = TOLERANCES[torch.float32]


class Turn:
    """Whether the device's run is going on, where there is a device that does otherwise."""

    device = False
    possible = True


class NoRecorder:
    @contextmanager
    def recording(self) -> Iterator[list[str]]:
        yield []


@pytest.fixture(autouse=True)
def the_cpu_plays_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    def guarded(self: Trial, stage: str, run: Callable[[], Any]) -> Any:
        Turn.device = Turn.possible
        try:
            return original(self, stage, run)
        finally:
            Turn.device = False

    original = Trial._guarded
    monkeypatch.setattr(Trial, "_guarded", guarded)
    monkeypatch.setattr(judge, "DEVICE", "cpu")
    monkeypatch.setattr(torch.mps, "synchronize", lambda: None)
    monkeypatch.setattr(torch.mps, "get_rng_state", lambda: torch.default_generator.get_state())
    monkeypatch.setattr(torch.mps, "manual_seed", lambda seed: torch.default_generator.manual_seed(seed + 1))


def judged(case: Case) -> Outcome:
    return Trial(case, NoRecorder(), 0, "example").outcome()


def misbehaving(good: Callable[..., Any], bad: Callable[..., Any]) -> Callable[..., Any]:
    """Does the right thing on the CPU and in the float64 reference, and another on the device."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return (bad if Turn.device else good)(*args, **kwargs)

    return call


# ---- examples


def ones(*shape: int, grad: bool = False) -> Tensor:
    return torch.ones(shape or (8,), requires_grad=grad)


def near(units: float) -> Case:
    """One element off by so many tolerances."""

    def bad(x: Tensor) -> Tensor:
        result = x * 3
        result[0] = result[0] * (1 + units * RTOL) + units * ATOL
        return result

    return Case(misbehaving(lambda x: x * 3, bad), (ones(),))


def where_the_cpu_is_off() -> Case:
    """The CPU misses the float64 result by 1e-3, the device by a little more than SLACK times that."""

    def good(x: Tensor) -> Tensor:
        return x if x.dtype is torch.float64 else x + 1e-3

    return Case(misbehaving(good, lambda x: x - 1.2 * SLACK * 1e-3), (ones(),))


class Cubed(torch.autograd.Function):
    """x ** 3 whose gradient, and whose tangent, is wrong on the device; `missing`: there the gradient is absent."""

    missing = False

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x**3

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor | None:
        if Turn.device and Cubed.missing:
            return None
        return gradient * ctx.saved_tensors[0] ** 2 * (4 if Turn.device else 3)

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Tensor:
        return tangent * ctx.saved_tensors[0] ** 2 * (4 if Turn.device else 3)


class Doubled(torch.autograd.Function):
    """x ** 2 whose second derivative alone is wrong on the device."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        slope = 2 * x
        return gradient * (slope.detach() if Turn.device else slope) + 0 * x


class Spoiling(torch.autograd.Function):
    """x * 2, whose backward writes into x on the device."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.x = x.detach()
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        if Turn.device:
            ctx.x.add_(1)
        return gradient * 2


class SpoilingCotangents(torch.autograd.Function):
    """x * 2, whose backward writes into what it is given on the device."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        result = gradient * 2
        if Turn.device:
            gradient.add_(1)
        return result


def written_around(x: Tensor) -> Tensor:
    x.as_strided((1,), (1,), 4).fill_(9)
    return x + 1


def named_neg(call: Callable[..., Any]) -> Callable[..., Any]:
    call.__name__ = "neg"
    return call


def given_to(x: Tensor, generator: torch.Generator) -> Tensor:
    return torch.rand(x.shape, generator=generator)


def absent_gradient() -> Case:
    Cubed.missing = True
    return Case(Cubed.apply, (ones(grad=True),), differentiable=True)


def written_outside(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    if out is None:
        return x + 1
    out.copy_(x + 1)
    if Turn.device:
        out.as_strided((1,), (1,), out.storage_offset() + out.numel()).fill_(9)
    return out


def written_before(x: Tensor) -> Tensor:
    x.add_(1)
    if Turn.device:
        x.as_strided((1,), (1,), x.storage_offset() - 1).fill_(9)
    return x


def returns_another(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    if out is None:
        return x + 1
    out.copy_(x + 1)
    return out.clone() if Turn.device else out


class Stale:
    """On the device, the second call answers with what it had for the first."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.calls += Turn.device
        return x + 2 if Turn.device and self.calls > 1 else x + 1


def refuses(kind: type[Exception]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        raise kind("refused")

    return call


def unseeded(x: Tensor) -> Tensor:
    return torch.rand(x.shape, generator=torch.Generator().manual_seed(next(OTHER_SEEDS)))


OTHER_SEEDS = itertools.count()


@dataclass(frozen=True)
class Example:
    """A case that only the device gets wrong, and what the judge reports."""

    case: Callable[[], Case]
    message: str


def example(good: Callable[..., Any], bad: Callable[..., Any], message: str, **of_case: Any) -> Example:
    return Example(lambda: Case(misbehaving(good, bad), (ones(2, 3),), **of_case), message)


EXAMPLES: dict[str, Example] = {
    "values": example(lambda x: x + 1, lambda x: x + 2, "^6 of 6 elements differ"),
    "values of integers": example(lambda x: x.int(), lambda x: x.int() + 1, "^6 of 6 elements differ"),
    "NaN where finite": example(lambda x: x, lambda x: x * math.nan, ": nan, CPU 1"),
    "infinity where finite": example(lambda x: x, lambda x: x * math.inf, ": inf, CPU 1"),
    "the tolerance": Example(lambda: near(3.0), "^1 of 8 elements differ"),
    "the slack": Example(where_the_cpu_is_off, "^8 of 8 elements differ"),
    "shape": example(lambda x: x, lambda x: x.T, "^shape is \\[3, 2\\], not"),
    "dtype": example(lambda x: x, lambda x: x.half(), "^dtype is torch.float16, not"),
    "layout": example(lambda x: x, lambda x: x.to_sparse(), "^layout is torch.sparse_coo"),
    "device": example(lambda x: x, lambda x: x.to("meta"), "^device is meta, not"),
    "the number of results": example(lambda x: x + 1, lambda x: (x + 1, x), "^returns 2 values, the CPU 1"),
    "the second result": example(lambda x: (x, x + 1), lambda x: (x, x + 2), "^output 1: 6 of 6"),
    "the type of a plain result": example(lambda x: 1, lambda x: 1.0, "^is float, not int"),
    "plain integers": example(lambda x: 1, lambda x: 2, "^is 2, not 1"),
    "plain texts": example(lambda x: "a", lambda x: "b", "^is 'b', not 'a'"),
    "plain numbers": example(lambda x: 1.0, lambda x: 1.1, "elements differ"),
    "strides of elementwise operators": example(
        lambda x: x + 1, lambda x: (x.T + 1).contiguous().T, "has stride \\(1, 2\\), not \\(3, 1\\)", elementwise=True
    ),
    "memory shared with an input": example(
        lambda x: x.view(6), lambda x: x.reshape(6).clone(), "shares no memory with an input"
    ),
    "memory not shared with an input": example(lambda x: x.clone(), lambda x: x, "shares the memory of input 0"),
    "strides of a view": example(lambda x: x.view(6)[:2], lambda x: x.view(6)[::3], "a view, has stride \\(3,\\), not"),
    "an input that is left alone": example(
        lambda x: x + 1, lambda x: (x + 1, x.add_(1))[0], "^input 0 was changed, which the CPU leaves alone"
    ),
    "running statistics": example(
        lambda x: x.add_(1).sum(), lambda x: (x + 1).sum(), "^input 0 after the call: 6 of 6 elements differ"
    ),
    "memory around a view": Example(
        lambda: Case(misbehaving(lambda x: x + 1, written_around), (torch.zeros(8)[2:4],)),
        "^the memory around input 0 was changed",
    ),
    "outputs that share memory": example(
        lambda x: (x + 1, x + 2),
        lambda x: torch.stack([x + 1, x + 2]).unbind(),
        "^output 1 shares the memory of output 0, unlike",
    ),
    "outputs that share no memory": example(
        lambda x: (x + 1).split(1),
        lambda x: tuple(part.clone() for part in (x + 1).split(1)),
        "^output 1 shares no memory with output 0, unlike",
    ),
    "that the argument itself is returned": example(
        lambda x: x.add_(1), lambda x: x.add_(1).view_as(x), "^output 0 is not input 0 itself, unlike"
    ),
    "the containers of the results": example(
        lambda x: x.sort(), lambda x: tuple(x.sort()), "^is returned as tuple\\(\\*, \\*\\), not sort\\(\\*, \\*\\)"
    ),
    "that results require gradients": Example(
        lambda: Case(misbehaving(lambda x: x * 2, lambda x: (x * 2).detach()), (ones(grad=True),)),
        "^does not require a gradient, the CPU's requires one",
    ),
    "draws for nothing": Example(
        lambda: Case(named_neg(misbehaving(torch.neg, lambda x: (-x, torch.rand(1))[0])), (ones(),)),
        "^draws from the default generator, unlike the CPU",
    ),
    "a generator that does not advance": example(
        torch.rand_like, lambda x: x / 2, "^does not advance the default generator, unlike the CPU"
    ),
    "a generator that is given and not used": Example(
        lambda: Case(
            misbehaving(given_to, lambda x, generator: torch.rand(x.shape)),
            (ones(),),
            {"generator": torch.Generator().manual_seed(3)},
        ),
        "^draws from the default generator, unlike the CPU",
    ),
    "a backward that writes into its input": Example(
        lambda: Case(Spoiling.apply, (ones(grad=True),), differentiable=True),
        "^after the backward, input 0 was changed, which the CPU leaves alone",
    ),
    "a backward that writes into its cotangent": Example(
        lambda: Case(SpoilingCotangents.apply, (ones(grad=True),), differentiable=True),
        "^cotangent 0 was changed, which the CPU leaves alone",
    ),
    "gradients": Example(lambda: Case(Cubed.apply, (ones(grad=True),), differentiable=True), "^gradient 0: 8 of 8"),
    "the presence of a gradient": Example(absent_gradient, "^gradient 0: is absent, the CPU's present"),
    "forward mode": Example(lambda: Case(forms.tangents(Cubed.apply), (ones(grad=True),)), "^output 1: 8 of 8"),
    "the second derivative": Example(
        lambda: Case(
            forms.first_derivative(Doubled.apply, lambda output: output), (ones(grad=True),), differentiable=True
        ),
        "^gradient 0: 8 of 8",
    ),
    "the guard after out=": Example(
        lambda: Case(forms.OutForm("exact").of(written_outside), (ones(),)), "^output 2: 1 of \\d+ elements differ"
    ),
    "the guard before an in-place result": Example(
        lambda: Case(forms.in_place(written_before), (ones(),)), "^output 2: 1 of \\d+ elements differ"
    ),
    "that out= is what is returned": Example(
        lambda: Case(forms.OutForm("exact").of(returns_another), (ones(),)), "^output 1: is False, not True"
    ),
    "the second call": Example(
        lambda: Case(WithOtherValues(Stale(), copies=False), (((ones(),), {}),) * 3), "^output 1: 8 of 8"
    ),
    "the type of an error": example(
        refuses(ValueError), refuses(TypeError), "^raises TypeError, the CPU ValueError", errors_count=True
    ),
    "that an error is raised": example(
        refuses(ValueError), lambda x: x, "^returns where the CPU raises ValueError", errors_count=True
    ),
    "that a seed repeats the numbers": Example(
        lambda: Case(under_seeds(misbehaving(torch.rand_like, unseeded)), (ones(64),)),
        "^output 0: is 'a seed gives other",
    ),
    "the distribution": Example(
        lambda: Case(misbehaving(torch.rand_like, lambda x: torch.rand_like(x) ** 2), (ones(8192),), distribution=True),
        "^8192 draws are distributed unlike",
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_difference_is_wrong_and_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cubed, "missing", False)
    caught = judged(EXAMPLES[name].case())
    assert caught.verdict is CaseVerdict.WRONG, caught
    assert re.search(EXAMPLES[name].message, caught.message), caught.message


@pytest.mark.parametrize("name", EXAMPLES)
def test_same_result_passes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cubed, "missing", False)
    case = EXAMPLES[name].case()
    Turn.possible = False
    try:
        assert judged(case).verdict is CaseVerdict.PASSED
    finally:
        Turn.possible = True


@pytest.mark.parametrize("units", [0.8, 1.3])
def test_how_far_a_sensitive_element_may_be_off(units: float) -> None:
    """A sum that cancels: it moves by the sensitivity when its inputs move by a unit in their last place."""
    x = torch.tensor([1000.0, -999.0])
    runs = WideRuns(Case(torch.sum, (x,)), [], lambda: None)
    allowed = SLACK * float(reference.WideOutput(runs, 0).sensitivity(8))
    assert allowed > ATOL + RTOL
    case = Case(misbehaving(torch.sum, lambda x: torch.sum(x) + units * allowed), (x,))
    assert judged(case).verdict is (CaseVerdict.PASSED if units < 1 else CaseVerdict.WRONG)


def test_cotangents_move_with_the_inputs() -> None:
    """The gradient of a bias is a sum of cotangents: it depends on no input at all, and is sensitive all the same."""
    bias = torch.zeros(1, requires_grad=True)
    runs = WideRuns(Case(lambda b: b.expand(1000), (bias,), differentiable=True), [ones(1000)], lambda: None)
    assert float(reference.WideGradient(runs, 0).sensitivity(8)) > torch.finfo(torch.float32).eps


@pytest.mark.skipif(not hasattr(torch, "AcceleratorError"), reason="this torch has no error that kernels report")
@pytest.mark.parametrize(("cpu_refuses", "verdict"), [(True, CaseVerdict.PASSED), (False, CaseVerdict.WRONG)])
def test_an_error_that_a_kernel_reports_counts_as_the_error_of_the_cpu(
    cpu_refuses: bool, verdict: CaseVerdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    def call(x: Tensor) -> Tensor:
        if cpu_refuses and not Turn.device:
            raise IndexError("out of range")
        return x + 1

    def synchronize() -> None:
        raise torch.AcceleratorError("index 7 is out of range")

    monkeypatch.setattr(torch.mps, "synchronize", synchronize)
    trial = Trial(Case(call, (torch.ones(2),), errors_count=True), NoRecorder(), 0, "call:0")
    assert trial.outcome().verdict is verdict
