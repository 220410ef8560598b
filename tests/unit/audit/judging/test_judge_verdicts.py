"""What the judge says of a case, whole: verdict, stage, message, fallbacks, and what was compared."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith.audit.judging import judge
from mpsmith.audit.judging.call_tracer import CallTracer
from mpsmith.audit.judging.execution import execute
from mpsmith.audit.judging.refusals import DeviceError, classify
from mpsmith.audit.judging.uninitialised_memory import UNDEFINED, reads_uninitialised_memory
from mpsmith.audit.model.case import Case
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome

NOT_IMPLEMENTED = NotImplementedError("The operator 'aten::mode' is not currently implemented for the MPS device.")


def fields(outcome: Outcome) -> tuple[CaseVerdict, str, str]:
    return outcome.verdict, outcome.stage, outcome.message


def raising(error: Exception) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        raise error

    return call


def ones(*, grad: bool = False) -> Tensor:
    return torch.ones(3, requires_grad=grad)


class Scaled(torch.autograd.Function):
    """x times one, with a gradient that the test gives."""

    slope: Any = None

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return Scaled.slope(gradient)


# ---- what passes


def test_a_case_that_agrees_passes_with_its_error_and_time(played: Any) -> None:
    outcome = played.judge(Case(played.does(lambda x: x + 1, lambda x: x + 1 + 2**-18), (ones(),)))
    assert fields(outcome) == (CaseVerdict.PASSED, "forward", "")
    assert outcome.compared == "values"
    assert outcome.max_error == pytest.approx(2**-18 / (2 * 1.3e-6 + 2 * 16 * 2**-23), rel=1e-3)
    assert outcome.seconds > 0
    assert not outcome.backward
    assert outcome.fallbacks == ()


def test_a_case_in_which_something_fell_back_did_not_pass(played: Any) -> None:
    played.falls_back = ["aten::mode", "aten::sum"]
    outcome = played.judge(Case(torch.neg, (ones(grad=True),), differentiable=True))
    assert outcome.verdict is CaseVerdict.FALLBACK
    assert outcome.fallbacks == ("aten::mode", "aten::sum"), "each once, forward and backward together"
    assert outcome.backward


def test_a_wrong_fallback_is_wrong_and_names_the_overload(played: Any) -> None:
    played.falls_back = ["aten::mode"]
    outcome = played.judge(Case(played.does(torch.neg, torch.abs), (ones(),)))
    assert outcome.verdict is CaseVerdict.WRONG
    assert outcome.fallbacks == ("aten::mode",)
    assert outcome.max_error is not None


def test_a_skipped_case_is_not_executed(played: Any) -> None:
    outcome = played.judge(Case(raising(AssertionError()), skipped="asks for float64"))
    assert fields(outcome) == (CaseVerdict.SKIPPED, "forward", "asks for float64")
    assert played.waits == 0


@pytest.mark.parametrize(
    ("case", "compared"),
    [
        (Case(torch.rand_like, (ones(),)), "random"),
        (Case(torch.rand_like, (ones(),), distribution=True), "distribution"),
        (Case(torch.empty_like, (ones(),), uninitialised="fresh memory"), "fresh memory"),
        (Case(torch.neg, (ones(),)), "values"),
    ],
    ids=["random", "distribution", "uninitialised", "values"],
)
def test_the_outcome_names_the_compared_part(case: Case, compared: str, played: Any) -> None:
    outcome = played.judge(case)
    assert outcome.verdict is CaseVerdict.PASSED
    assert outcome.compared == compared


def test_only_a_random_operator_has_its_values_left_alone(played: Any) -> None:
    different = played.does(torch.rand_like, lambda x: torch.rand_like(x) + 5)
    assert played.judge(Case(different, (ones(),))).verdict is CaseVerdict.PASSED


# ---- backward


def test_a_wrong_gradient_is_wrong_in_the_backward(played: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scaled, "slope", played.does(lambda g: g, lambda g: g * 2))
    outcome = played.judge(Case(Scaled.apply, (ones(grad=True),), differentiable=True))
    assert outcome.verdict is CaseVerdict.WRONG
    assert outcome.stage == "backward"
    assert outcome.message.startswith("gradient 0: 3 of 3 elements differ")
    assert outcome.backward


def test_the_larger_error_of_forward_and_backward_counts(played: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scaled, "slope", played.does(lambda g: g, lambda g: g + 2**-20))
    case = Case(Scaled.apply, (ones(grad=True),), differentiable=True)
    gradients_differ = played.judge(case).max_error
    assert gradients_differ is not None
    assert gradients_differ > 0
    monkeypatch.setattr(Scaled, "slope", lambda g: g)
    outputs_differ = played.judge(
        Case(played.does(Scaled.apply, lambda x: Scaled.apply(x) + 2**-20), (ones(grad=True),), differentiable=True)
    ).max_error
    assert outputs_differ == pytest.approx(2**-20 / (1.3e-6 + 16 * 2**-23), rel=0.01)


def test_where_the_cpu_has_no_backward_the_forward_counts_and_it_is_said(
    played: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Scaled, "slope", raising(RuntimeError("no derivative")))
    outcome = played.judge(Case(Scaled.apply, (ones(grad=True),), differentiable=True))
    assert outcome.verdict is CaseVerdict.PASSED
    assert outcome.message == "forward only, the CPU's backward raises: no derivative"
    assert not outcome.backward


def test_a_backward_error_belongs_to_the_backward(played: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scaled, "slope", played.does(lambda g: g, raising(RuntimeError("oh"))))
    outcome = played.judge(Case(Scaled.apply, (ones(grad=True),), differentiable=True))
    assert fields(outcome) == (CaseVerdict.WRONG, "backward", "raises RuntimeError: oh")


@pytest.mark.parametrize("differentiable", [True, False])
def test_gradients_are_asked_for_where_the_case_says_that_it_has_some(
    differentiable: bool, played: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Scaled, "slope", played.does(lambda g: g, lambda g: g * 2))
    outcome = played.judge(Case(Scaled.apply, (ones(grad=True),), differentiable=differentiable))
    assert outcome.verdict is (CaseVerdict.WRONG if differentiable else CaseVerdict.PASSED)


def test_cotangents_are_the_same_for_a_seed_and_laid_out_as_the_case_says(
    played: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Tensor] = []
    monkeypatch.setattr(Scaled, "slope", lambda g: seen.append(g.clone()) or g)

    def cotangents(seed: int, layout: Any = None) -> list[Tensor]:
        seen.clear()
        x = torch.ones(2, 3, requires_grad=True)
        played.judge(Case(Scaled.apply, (x,), differentiable=True, cotangent_layout=layout), seed)
        return list(seen)

    first = cotangents(0)
    assert torch.equal(first[0], first[1]), "the CPU and the device get the same"
    assert torch.equal(first[0], torch.randn(2, 3, generator=torch.Generator().manual_seed(0)))
    assert not torch.equal(first[0], cotangents(1)[0])
    assert cotangents(0, lambda t: t * 0 + 7)[0].eq(7).all()
    assert torch.equal(cotangents(0, lambda t: None)[0], first[0]), "a layout that does not fit changes nothing"


# ---- what the CPU refuses


def test_without_an_answer_of_the_cpu_nothing_is_said_about_the_device(played: Any) -> None:
    outcome = played.judge(Case(played.does(raising(ValueError("bad")), torch.neg), (ones(),)))
    assert fields(outcome) == (CaseVerdict.REFERENCE_FAILED, "forward", "bad")


def test_where_errors_count_the_device_must_refuse_with_the_same_type(played: Any) -> None:
    def outcome_of(on_device: Callable[..., Any]) -> Outcome:
        call = played.does(raising(ValueError("bad")), on_device)
        return played.judge(Case(call, (ones(),), errors_count=True))  # type: ignore[no-any-return]

    same = outcome_of(raising(ValueError("in other words")))
    assert fields(same) == (CaseVerdict.PASSED, "forward", "")
    assert same.max_error is None
    other = outcome_of(raising(TypeError("bad")))
    assert fields(other) == (CaseVerdict.WRONG, "forward", "raises TypeError, the CPU ValueError: bad")
    returned = outcome_of(torch.neg)
    assert fields(returned) == (CaseVerdict.WRONG, "forward", "returns where the CPU raises ValueError: bad")
    missing = outcome_of(raising(NOT_IMPLEMENTED))
    assert missing.verdict is CaseVerdict.MISSING
    gap = outcome_of(raising(TypeError("the MPS framework doesn't support float64")))
    assert fields(gap)[0] is CaseVerdict.DTYPE_GAP, "a refused dtype comes before the arguments"
    assert outcome_of(raising(ValueError("MPS does not support complex"))).verdict is CaseVerdict.PASSED
    assert missing.fallbacks == ("aten::mode",)


def test_a_result_of_fresh_memory_says_nothing_about_the_device(played: Any) -> None:
    def fresh(x: Tensor) -> Tensor:
        return torch.empty(100) if torch.are_deterministic_algorithms_enabled() else torch.zeros(100)

    outcome = played.judge(Case(played.does(fresh, lambda x: torch.full((100,), 5.0)), (ones(),)))
    assert fields(outcome) == (
        CaseVerdict.REFERENCE_FAILED,
        "forward",
        "the CPU's result depends on uninitialised memory",
    )
    assert not torch.are_deterministic_algorithms_enabled()


@pytest.mark.parametrize("on_the_device", [torch.neg, raising(RuntimeError("key must have dtype uint64"))])
def test_an_operator_that_the_cpu_has_no_kernel_for_has_no_reference(on_the_device: Any, played: Any) -> None:
    lacking = "Could not run 'aten::_philox_key_split' with arguments from the 'CPU' backend. This could be"
    call = played.does(raising(NotImplementedError(lacking)), on_the_device)
    outcome = played.judge(Case(call, (ones(),), errors_count=True))
    assert outcome.verdict is CaseVerdict.REFERENCE_FAILED
    assert outcome.message.startswith("Could not run 'aten::_philox_key_split'")


def test_an_expected_refusal_frees_its_inputs_at_once(played: Any) -> None:
    """Else the memory of the device looks like a leak until the next garbage collection."""
    inputs: list[weakref.ref[Tensor]] = []

    def refuses(x: Tensor) -> None:
        inputs.append(weakref.ref(x))
        raise ValueError("no")

    gc.disable()
    try:
        assert played.judge(Case(refuses, (ones(),), errors_count=True)).verdict is CaseVerdict.PASSED
        assert [ref() for ref in inputs] == [None, None]
    finally:
        gc.enable()


def test_a_result_made_of_nothing_is_looked_at_even_where_both_agree(played: Any) -> None:
    def fresh(x: Tensor) -> tuple[int, Tensor]:
        return 3, torch.empty(1) if torch.are_deterministic_algorithms_enabled() else torch.zeros(1)

    agreeing = played.does(fresh, fresh)
    assert played.judge(Case(agreeing, (torch.ones(0, 3),))).message == UNDEFINED
    assert played.judge(Case(agreeing, (), {"x": torch.ones(0, 3)})).message == UNDEFINED
    assert played.judge(Case(agreeing, (torch.ones(1, 3),))).verdict is CaseVerdict.PASSED
    uninitialised = Case(agreeing, (torch.ones(0, 3),), uninitialised="its values are undefined")
    assert played.judge(uninitialised).verdict is CaseVerdict.PASSED
    assert played.judge(Case(played.does(torch.sum, torch.sum), (torch.ones(0, 3),))).verdict is CaseVerdict.PASSED


@pytest.mark.parametrize(("third", "undefined"), [(0.0, True), (float("nan"), False)])
def test_freed_memory_that_held_nan_by_chance_is_recognised(third: float, undefined: bool) -> None:
    values = iter([float("nan"), float("nan"), third])  # of the case, of the filled run, of the run after other bytes
    settings: list[tuple[bool, bool]] = []

    def call() -> Tensor:
        enabled = torch.are_deterministic_algorithms_enabled()
        settings.append((enabled, torch.is_deterministic_algorithms_warn_only_enabled()))
        return torch.full((1,), next(values))

    assert reads_fresh_memory(call) is undefined
    assert settings == [(False, False), (True, True), (False, False)]


@pytest.mark.parametrize("before", [(False, False), (True, False), (True, True)])
def test_looking_for_fresh_memory_leaves_torchs_settings_as_they_were(before: tuple[bool, bool], played: Any) -> None:
    enabled, warn_only = before
    torch.use_deterministic_algorithms(enabled, warn_only=warn_only)
    try:
        played.judge(Case(played.does(torch.neg, torch.abs), (ones(),)))
        after = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    finally:
        torch.use_deterministic_algorithms(False)
    assert after == before


def reads_fresh_memory(call: Callable[..., Any], seeded: list[int] | None = None) -> bool:
    case = Case(call)
    return reads_uninitialised_memory(case, execute(case, ((), {})), lambda: (seeded or []).append(1))


def again(first: Any, then: Callable[[], Any]) -> Callable[[], Any]:
    """A call with another answer where fresh memory is filled."""
    return lambda: then() if torch.are_deterministic_algorithms_enabled() else first


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8, torch.complex64, torch.float16])
def test_fresh_memory_is_recognised_in_every_dtype(dtype: torch.dtype) -> None:
    zeros = torch.zeros(4, dtype=dtype)
    assert reads_fresh_memory(again(zeros, lambda: torch.empty(4, dtype=dtype)))
    assert reads_fresh_memory(again((3, zeros), lambda: (3, torch.empty(4, dtype=dtype))))
    assert not reads_fresh_memory(lambda: zeros)


@pytest.mark.parametrize(
    "then",
    [
        lambda: torch.empty(4, dtype=torch.bool),
        lambda: torch.full((2,), torch.nan).to_sparse(),
        lambda: 3,
        lambda: (),
        raising(RuntimeError("no deterministic kernel")),
    ],
    ids=["bool", "sparse", "a number", "fewer results", "an error"],
)
def test_memory_without_the_fill_is_not_fresh(then: Callable[[], Any]) -> None:
    assert not reads_fresh_memory(again(torch.zeros(4), then))


def test_the_second_look_starts_from_the_same_seed() -> None:
    seeded = [0]
    reads_fresh_memory(lambda: torch.zeros(4), seeded)
    assert seeded == [0, 1]


def test_a_result_equal_to_the_fill_value_is_not_taken_for_fresh_memory(played: Any) -> None:
    outcome = played.judge(Case(played.does(lambda x: x / 0 * 0, torch.neg), (ones(),)))
    assert outcome.verdict is CaseVerdict.WRONG


# ---- running


def test_random_operators_draw_the_same_numbers_for_the_same_seed(played: Any) -> None:
    draws: list[Tensor] = []

    def call(x: Tensor) -> Tensor:
        draws.append(torch.rand_like(x))
        return draws[-1]

    for seed in (1, 1, 2):
        played.judge(Case(call, (ones(),)), seed)
    on_cpu, on_device = draws[::2], draws[1::2]
    assert torch.equal(on_cpu[0], on_cpu[1])
    assert torch.equal(on_device[0], on_device[1])
    assert not torch.equal(on_cpu[0], on_cpu[2])
    assert not torch.equal(on_device[0], on_device[2])


def test_a_call_that_names_no_device_runs_on_the_default_device(played: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    devices: list[str] = []

    def call() -> int:
        devices.append(torch.get_default_device().type)
        return 1

    monkeypatch.setattr(judge, "DEVICE", "meta")
    for default_device in (True, False):
        assert played.judge(Case(call, default_device=default_device)).verdict is CaseVerdict.PASSED
    assert devices == ["cpu", "meta", "cpu", "cpu"]


def test_the_device_is_waited_for_after_forward_and_backward(played: Any) -> None:
    played.judge(Case(torch.neg, (ones(),)))
    forward_only = played.waits
    played.waits = 0
    played.judge(Case(torch.neg, (ones(grad=True),), differentiable=True))
    assert forward_only == 1, "making the inputs is not waited for"
    assert played.waits == 3, "forward, copies of the cotangents, backward"


def test_caller_is_notified_before_the_device_runs_and_after_both_runs(played: Any) -> None:
    order: list[str] = []

    def call(x: Tensor) -> Tensor:
        order.append("device" if played.turn else "cpu")
        return -x

    def look(trial: judge.Trial) -> None:
        assert trial.cpu is not None
        assert trial.mps is not None
        order.append("looked")

    judge.judge(Case(call, (ones(),)), played, 0, "x", on_device=lambda: order.append("told"), on_executed=look)
    assert order[:4] == ["cpu", "told", "device", "looked"]


def test_leak_repetitions_come_after_on_executed(played: Any) -> None:
    calls: list[str] = []

    def leaking(x: Tensor) -> Tensor:
        if played.turn:
            calls.append("device")
            played.memory += 8
        return -x

    judge.judge(Case(leaking, (ones(),)), played, 0, "x", on_executed=lambda trial: calls.append("looked"))
    assert calls[:2] == ["device", "looked"]
    assert set(calls[2:]) == {"device"}


def test_silent_cpu_execution_is_a_fallback(played: Any) -> None:
    class Silent(CallTracer):
        def _collect(self, profiler: Any, forward: bool) -> None:
            super()._collect(profiler, forward)
            self.sent_to_cpu = ["aten::quiet"]

    outcome = played.judge(Case(torch.neg, (ones(),)), tracer=Silent())
    assert outcome.verdict is CaseVerdict.FALLBACK
    assert outcome.fallbacks == ("aten::quiet",)


def test_a_witness_sees_the_device_and_not_the_cpu(played: Any) -> None:
    tracer = CallTracer()
    played.judge(Case(played.does(torch.neg, lambda x: x.mul(-1)), (ones(grad=True),), differentiable=True), 0, tracer)
    assert "aten::neg" not in {name for name, outermost in tracer.overloads.items() if outermost}
    assert tracer.overloads["aten::mul.Tensor"]


# ---- memory


def leaking(played: Any, sizes: list[int]) -> Case:
    """A call that leaves so many bytes on the device, call after call, the last number again and again."""
    left = list(sizes)

    def call(x: Tensor) -> Tensor:
        if played.turn:
            played.memory += left.pop(0) if len(left) > 1 else left[0]
        return -x

    return Case(call, (ones(),))


def test_a_call_that_leaves_memory_behind_each_time_leaks(played: Any) -> None:
    outcome = played.judge(leaking(played, [1024]))
    assert fields(outcome) == (
        CaseVerdict.WRONG,
        "forward",
        "leaks memory: 1,024 bytes more are allocated after each call",
    )


def test_a_cache_that_grows_once_or_twice_is_not_a_leak(played: Any) -> None:
    assert played.judge(leaking(played, [4096, 4096, 4096, 0])).verdict is CaseVerdict.PASSED


def test_the_middle_of_five_calls_decides(played: Any) -> None:
    """One call of the trial, then five; a second look of five, after a full collection, must say the same."""
    three, two = [8, 8, 8, 0, 0], [8, 8, 0, 0, 0]
    assert played.judge(leaking(played, [8, *three, *three, 0])).verdict is CaseVerdict.WRONG
    for sizes in ([8, *two, *three, 0], [8, *three, *two, 0]):
        played.memory = 0
        assert played.judge(leaking(played, sizes)).verdict is CaseVerdict.PASSED


def test_the_third_call_that_leaves_nothing_is_the_last(played: Any) -> None:
    for sizes, repeated in ([4096, 0], 3), ([4096, 8, 0], 4), ([8], 10):
        played.memory = 0
        case, turns = leaking(played, sizes), []
        leaves = case.call
        case.call = lambda x, leaves=leaves, turns=turns: turns.append(played.turn) or leaves(x)
        played.judge(case)
        assert turns == [False, True] + [True] * repeated


def test_memory_that_shrinks_is_not_a_leak(played: Any) -> None:
    assert played.judge(leaking(played, [4096, -8])).verdict is CaseVerdict.PASSED


def test_no_second_call_without_leaked_memory(played: Any) -> None:
    calls: list[bool] = []
    played.judge(Case(lambda x: calls.append(played.turn) or -x, (ones(),)))
    assert calls == [False, True]
    assert played.collected == []


def test_a_wrong_case_is_not_called_again_for_its_memory(played: Any) -> None:
    def call(x: Tensor) -> Tensor:
        played.memory += 8 * played.turn
        return x.abs() if played.turn else -x

    assert played.judge(Case(call, (ones(),))).message.startswith("3 of 3 elements differ")


def test_a_slow_case_is_not_called_again_for_its_memory(played: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 1.0])
    monkeypatch.setattr(judge.time, "perf_counter", lambda: next(clock))
    outcome = played.judge(leaking(played, [1024]))
    assert outcome.verdict is CaseVerdict.PASSED
    assert outcome.seconds == 1.0
    clock = iter([0.0, 0.99])
    monkeypatch.setattr(judge.time, "perf_counter", lambda: next(clock))
    assert played.judge(leaking(played, [1024])).verdict is CaseVerdict.WRONG


def test_a_leak_in_the_backward_alone_is_found(played: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def slope(gradient: Tensor) -> Tensor:
        played.memory += 64 * played.turn
        return gradient

    monkeypatch.setattr(Scaled, "slope", slope)
    outcome = played.judge(Case(Scaled.apply, (ones(grad=True),), differentiable=True))
    assert outcome.message == "leaks memory: 64 bytes more are allocated after each call"


def test_a_call_that_fails_the_second_time_is_not_a_leak(played: Any) -> None:
    calls: list[int] = []

    def call(x: Tensor) -> Tensor:
        calls.append(1)
        if len(calls) > 2:
            raise RuntimeError("once is enough")
        played.memory += played.turn
        return -x

    assert played.judge(Case(call, (ones(),))).verdict is CaseVerdict.PASSED


# ---- what the device raises


@pytest.mark.parametrize(
    ("error", "verdict", "message"),
    [
        (NOT_IMPLEMENTED, CaseVerdict.MISSING, "aten::mode has no kernel for mps"),
        (MemoryError("x"), CaseVerdict.CRASH, "out of memory: x"),
        (
            RuntimeError("MPS backend out of memory (x)"),
            CaseVerdict.CRASH,
            "out of memory: MPS backend out of memory (x)",
        ),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), CaseVerdict.CRASH, None),
        (RuntimeError("sizes do not match"), CaseVerdict.WRONG, "raises RuntimeError: sizes do not match"),
        (IndexError("out of range"), CaseVerdict.WRONG, "raises IndexError: out of range"),
        (
            RuntimeError("[F1201 00:36:36.300156954 FusedSgdKernel.mm:79] Check failed: momentum > 0 (-1 vs. 0). "),
            CaseVerdict.WRONG,
            "raises RuntimeError: [FusedSgdKernel.mm:79] Check failed: momentum > 0 (-1 vs. 0).",
        ),
        (TypeError("the MPS framework doesn't support float64."), CaseVerdict.DTYPE_GAP, None),
        (RuntimeError("\"abs\" not implemented for 'Half'"), CaseVerdict.DTYPE_GAP, None),
        (RuntimeError("MPS: unsupported data type Long"), CaseVerdict.DTYPE_GAP, None),
        (RuntimeError("dtype int64 is not supported"), CaseVerdict.DTYPE_GAP, None),
        (RuntimeError("int64 is not supported"), CaseVerdict.WRONG, None),
        (RuntimeError("data type Long unsupported"), CaseVerdict.DTYPE_GAP, None),
        (RuntimeError("only floating point types are taken"), CaseVerdict.DTYPE_GAP, None),
        (RuntimeError("logit on MPS does not support complex"), CaseVerdict.DTYPE_GAP, None),
        (RuntimeError("Does Not Support Int8"), CaseVerdict.DTYPE_GAP, None),
        (RuntimeError("MPS device does not support linear for non-float inputs"), CaseVerdict.DTYPE_GAP, None),
        (RuntimeError("MPS device does not support linear for other reasons"), CaseVerdict.WRONG, None),
        (RuntimeError("Convolution is supported only for Floating types"), CaseVerdict.DTYPE_GAP, None),
        (RuntimeError("linalg.solve.triangular(); Only float is supported!"), CaseVerdict.DTYPE_GAP, None),
        (RuntimeError("linalg.lu_factor(): MPS only supports floats."), CaseVerdict.DTYPE_GAP, None),
        (RuntimeError("linalg.lu_factor(): MPS doesn't support complex types."), CaseVerdict.DTYPE_GAP, None),
        (RuntimeError("linalg_inv: not supported for complex types yet!"), CaseVerdict.DTYPE_GAP, None),
        (RuntimeError("linalg_qr: MPS currently supports float32 only"), CaseVerdict.DTYPE_GAP, None),
        (RuntimeError("cholesky_inverse: MPS only supports float type!"), CaseVerdict.DTYPE_GAP, None),
        (RuntimeError("f_mps only supports floating-point dtypes"), CaseVerdict.DTYPE_GAP, None),
        (RuntimeError("Undefined type ComplexDouble"), CaseVerdict.DTYPE_GAP, None),
        (RuntimeError("Undefined type Float8_e4m3fn"), CaseVerdict.WRONG, None),
        (RuntimeError("index_reduce for MPS does not support torch.long dtype"), CaseVerdict.DTYPE_GAP, None),
        (RuntimeError("ConvTranspose 3D with BF16 or FP16 types is not supported on MPS"), CaseVerdict.DTYPE_GAP, None),
        (RuntimeError("Failed to create function state object for: renorm_float2"), CaseVerdict.DTYPE_GAP, None),
        (
            RuntimeError("Failed to create function state object for: silu_dense_float2_float2"),
            CaseVerdict.DTYPE_GAP,
            None,
        ),
        (
            RuntimeError("Failed to create function state object for: scatter_prod_dense_float2_long"),
            CaseVerdict.DTYPE_GAP,
            None,
        ),
        (
            RuntimeError("Failed to create function state object for: add_dense_broadcast_float_half"),
            CaseVerdict.WRONG,
            None,
        ),
        (RuntimeError("Failed to create function state object for: round_dense_castout_bool"), CaseVerdict.WRONG, None),
        (
            RuntimeError("Failed to create function state object for: minimum_dense_cast_float2_float2"),
            CaseVerdict.WRONG,
            None,
        ),
        (NotImplementedError("Adaptive pool MPS: input sizes must be divisible"), CaseVerdict.DTYPE_GAP, None),
        (RuntimeError("Conv3D is not supported on MPS"), CaseVerdict.DTYPE_GAP, None),
        (RuntimeError("ConvTranspose 3D is not supported on MPS"), CaseVerdict.DTYPE_GAP, None),
        (NotImplementedError("these sizes are for later"), CaseVerdict.WRONG, None),
    ],
    ids=str,
)
def test_the_verdict_on_device_errors(error: Exception, verdict: CaseVerdict, message: str | None) -> None:
    classified = classify(error, "forward")
    assert isinstance(classified, DeviceError)
    assert (classified.verdict, classified.stage) == (verdict, "forward")
    if message is not None:
        assert str(classified) == message
    assert classified.operator == ("aten::mode" if verdict is CaseVerdict.MISSING else None)


def test_a_missing_operator_is_named_after_those_that_fell_back(played: Any) -> None:
    played.falls_back = ["aten::sum"]
    outcome = played.judge(Case(played.does(torch.neg, raising(NOT_IMPLEMENTED)), (ones(),)))
    assert fields(outcome) == (CaseVerdict.MISSING, "forward", "aten::mode has no kernel for mps")
    assert outcome.fallbacks == ("aten::sum", "aten::mode")
    played.falls_back = ["aten::mode", "aten::sum"]
    outcome = played.judge(Case(played.does(torch.neg, raising(NOT_IMPLEMENTED)), (ones(),)))
    assert outcome.fallbacks == ("aten::mode", "aten::sum"), "each once"


def test_copying_the_inputs_is_not_attributed_to_the_operator(played: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(*args: Any) -> Any:
        if args[2] != "cpu" or played.turn:
            raise TypeError("the MPS framework doesn't support float64")
        return original(*args)

    original = judge.move
    monkeypatch.setattr(judge, "move", refusing)
    played.falls_back = ["aten::copy_"]
    outcome = played.judge(Case(torch.neg, (ones(),)))
    assert (outcome.verdict, outcome.stage, outcome.fallbacks) == (CaseVerdict.DTYPE_GAP, "inputs", ())


@pytest.mark.parametrize(
    ("function", "verdict"),
    [
        ("silu_dense_float2_float2", CaseVerdict.DTYPE_GAP),
        ("col2im_kernel_float2_u32", CaseVerdict.DTYPE_GAP),
        ("scatter_prod_dense_float2_long", CaseVerdict.DTYPE_GAP),
        ("add_dense_broadcast_float_half", CaseVerdict.WRONG),
        ("round_dense_castout_bool", CaseVerdict.WRONG),
        ("minimum_dense_cast_float2_float2", CaseVerdict.WRONG),
    ],
)
def test_a_metal_function_of_two_dtypes_is_not_a_gap_of_one(function: str, verdict: CaseVerdict) -> None:
    refused = classify(RuntimeError(f"Failed to create function state object for: {function}"), "forward")
    assert refused.verdict is verdict
    assert refused.refuses_dtypes


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("MPSGraph, simulated: 'multiplication' op requires the same element type for all operands and results", True),
        ("MPSGraph, simulated: a placeholder of type Half was fed with Float", True),
        ("MPSGraph, simulated: the result of reshape has type Half, and its place Float", True),
        ("Undefined type Half", False),
        ("MPSGraph, simulated: pooling: windows do not fit", False),
    ],
)
def test_a_refusal_of_two_dtypes_is_one_of_dtypes(message: str, expected: bool) -> None:
    assert classify(RuntimeError(message), "backward").refuses_dtypes is expected
