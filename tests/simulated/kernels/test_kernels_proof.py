"""Accepted results of kernels: never computed on the CPU, and within one tolerance of the right value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from mpsmith import kernels
from mpsmith.audit.judging.acceptance import JudgedCase, judged
from mpsmith.audit.model.case import Case
from mpsmith.audit.model.verdicts import CaseVerdict
from mpsmith.kernels.adaptive_max_pool3d import adaptive_max_pool3d
from mpsmith.kernels.heaviside import heaviside
from mpsmith.kernels.runtime import catalog
from mpsmith.kernels.runtime.registration import counting
from mpsmith.kernels.verification import verify as verification
from mpsmith.kernels.verification.calls import KernelCall, RefusedCall
from mpsmith.kernels.verification.verify import FamilyResult, verify
from mpsmith.simulator.fallback_recorders import CounterRecorder

pytestmark = pytest.mark.usefixtures("nothing_registered")


def judge_one(call: Callable[..., Any], *arguments: Any) -> JudgedCase:
    (judged_case,) = judged([Case(call, arguments)], CounterRecorder(), 0, "test")
    return judged_case


def differing(right: float, by: float, dtype: torch.dtype) -> Callable[[torch.Tensor], torch.Tensor]:
    """Gives `right` on the CPU, and on mps what a kernel that is off by so much gives."""

    def call(x: torch.Tensor) -> torch.Tensor:
        return torch.full_like(x, right if x.device.type == "cpu" else right + by, dtype=dtype)

    return call


# torch.testing.assert_close's own (rtol, atol): float32 (1.3e-6, 1e-5), float16 (1e-3, 1e-5), bfloat16 (1.6e-2, 1e-5).
# Of the absolute part a small result that depends on no rounded input gets 16 units in its last place.
# All right values and errors are numbers that the dtype holds, or nearly so.
@pytest.mark.parametrize(
    ("dtype", "right", "within", "beyond"),
    [
        (torch.float32, 10_000.0, 0.0127, 0.0137),  # one tolerance is 0.01301
        (torch.float32, 2.0**-10, 3.0e-9, 3.2e-9),  # 3.13e-9
        (torch.float16, 1000.0, 1.0, 1.5),  # 1.00001
        (torch.float16, 2.0**-13, 1.9e-6, 2.2e-6),  # 2.03e-6
        (torch.bfloat16, 64.0, 1.0, 1.5),  # 1.02401
        (torch.bfloat16, 2.0**-20, 1.27e-7, 1.42e-7),  # 1.35e-7
    ],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_tolerance_is_that_of_torch_testing(
    dtype: torch.dtype, right: float, within: float, beyond: float, sign: int
) -> None:
    integers = torch.arange(3)  # without floating inputs no rounding of theirs excuses anything
    assert judge_one(differing(right, sign * within, dtype), integers).accepted
    refused = judge_one(differing(right, sign * beyond, dtype), integers)
    assert refused.refused
    assert refused.outcome.verdict is CaseVerdict.WRONG


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8])
def test_integers_are_exact(dtype: torch.dtype) -> None:
    assert judge_one(differing(100, 0, dtype), torch.arange(3)).accepted
    assert judge_one(differing(100, 1, dtype), torch.arange(3)).refused


@pytest.mark.usefixtures("fallback_enabled")
def test_fallback_is_refused() -> None:
    x = torch.tensor([-1.0, 0.0, 2.0])
    fallen = judge_one(torch.heaviside, x, x.abs())
    assert fallen.reason == "ran on the CPU: aten::heaviside.out"
    assert fallen.refused
    assert not fallen.accepted
    with kernels.use("heaviside"):
        assert judge_one(torch.heaviside, x, x.abs()).accepted


def test_missing_kernel_is_refused() -> None:
    x = torch.tensor([-1.0, 0.0, 2.0])
    assert judge_one(torch.heaviside, x, x.abs()).outcome.verdict is CaseVerdict.MISSING


def test_result_on_the_cpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Right values, computed by the CPU, left there: nothing falls back, nothing raises."""
    replaced(monkeypatch, "put_take", "aten::take", lambda self, index: torch.take(self.cpu(), index.cpu()))
    result = verify("put_take", [])
    assert "wrong: device is cpu, not mps" in {failure.reason for failure in result.failures}
    assert not result.passed


def replaced(monkeypatch: pytest.MonkeyPatch, family: str, overload: str, function: Callable[..., Any]) -> None:
    """Another function for one overload of a family."""
    rows = tuple(
        replace(kernel, function=function) if kernel.overload == overload else kernel
        for kernel in catalog.family(family)
    )
    real = catalog.family
    monkeypatch.setattr(catalog, "family", lambda name: rows if name == family else real(name))


def only(monkeypatch: pytest.MonkeyPatch, *calls: KernelCall) -> None:
    """A family has these calls alone, and none was recorded."""
    monkeypatch.setattr(verification, "calls_of", lambda family: calls)
    monkeypatch.setattr(verification, "recorded_calls", lambda family, overloads: iter(()))
    monkeypatch.setattr(verification, "refused_calls", lambda family: ())


def pooled_to(*sizes: int) -> KernelCall:
    def images(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
        for size in sizes:
            yield torch.ones(1, 2, 6, 6, dtype=dtype), size

    name = "nn.functional.adaptive_avg_pool2d"
    function = torch.nn.functional.adaptive_avg_pool2d
    return KernelCall(name, ("aten::_adaptive_avg_pool2d",), function, images, (torch.float32,))


def reasons(result: FamilyResult) -> list[str]:
    return [failure.reason for failure in result.failures]


def test_native_kernel_is_not_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes that divide each other go to torch's kernel, sizes that do not to ours."""
    only(monkeypatch, pooled_to(4, 3))
    result = verify("adaptive_avg_pool3d", [])
    assert result.cases == 2
    assert reasons(result)[0] == "none of the family's kernels was called"
    assert "float32[1, 2, 6, 6], 3" in result.failures[0].what
    assert result.operators == {"aten::_adaptive_avg_pool2d"}
    assert not result.passed


def test_kernel_without_calls_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, pooled_to(4))
    result = verify("adaptive_avg_pool3d", [])
    idle = {failure.what for failure in result.failures}
    assert set(reasons(result)) == {"no case called its kernel"}
    assert idle == {kernel.overload for kernel in catalog.family("adaptive_avg_pool3d")} - {
        "aten::_adaptive_avg_pool2d"
    }
    assert not result.passed


def test_wrong_kernel_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heaviside with the operands exchanged."""
    right = heaviside.elementwise
    monkeypatch.setattr(heaviside, "elementwise", lambda s, n, outputs, inputs: right(s, n, outputs, inputs[::-1]))
    result = verify("heaviside", [])
    assert any(reason.startswith("wrong: ") for reason in reasons(result))
    assert not result.passed


def test_family_without_reference_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    def negative(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
        yield torch.ones(2, 3, dtype=dtype), -1

    only(monkeypatch, replace(pooled_to(4), inputs=negative))
    result = verify("adaptive_avg_pool3d", [])
    assert (result.cases, result.without_reference) == (0, 1)
    assert not result.passed


def test_call_that_only_the_cpu_refuses_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(x: torch.Tensor) -> torch.Tensor:
        if x.is_cpu:
            raise RuntimeError
        return x

    only(monkeypatch, pooled_to(3))
    monkeypatch.setattr(verification, "refused_calls", lambda family: (RefusedCall("ones", refuses, (torch.ones(1),)),))
    result = verify("adaptive_avg_pool3d", [])
    assert "wrong: returns where the CPU raises RuntimeError: RuntimeError" in reasons(result)
    assert result.cases == 1


def test_counts_only_calls_of_our_kernel() -> None:
    uneven, even = torch.ones(1, 1, 5, 5, device="mps"), torch.ones(1, 1, 4, 4, device="mps")
    with counting("_adaptive_avg_pool2d", "heaviside") as calls:
        torch.nn.functional.adaptive_avg_pool2d(even, 2)
        assert calls.total() == 0
        torch.nn.functional.adaptive_avg_pool2d(uneven, 2)
        torch.heaviside(uneven, uneven)
        torch.heaviside(uneven, uneven)
        assert calls == {"aten::_adaptive_avg_pool2d": 1, "aten::heaviside.out": 2}
    assert kernels.registered() == ()
    with kernels.use("heaviside"):
        torch.heaviside(uneven, uneven)
    assert calls.total() == 3


def not_written(output: torch.Tensor, contiguous: torch.Tensor) -> torch.Tensor:
    """The output as it was."""
    return output


def written_beside(output: torch.Tensor, contiguous: torch.Tensor) -> torch.Tensor:
    """Right values, and others in all of the memory around them."""
    whole = torch.empty(0, dtype=output.dtype, device=output.device).set_(output.untyped_storage())
    values = contiguous.clone()
    whole.fill_(7)
    return output.copy_(values)


@pytest.mark.parametrize("finish", [not_written, written_beside])
def test_finds_wrong_writes_to_outputs_with_gaps(
    monkeypatch: pytest.MonkeyPatch, finish: Callable[..., torch.Tensor]
) -> None:
    monkeypatch.setattr(adaptive_max_pool3d, "finish", finish)
    failures = verify("adaptive_max_pool3d", []).failures
    for place in ("transposed", "every other element"):
        assert any(f"out= {place}" in failure.what for failure in failures)
