"""One run of a case: what comes out, what has a gradient, and what was called on the way."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from mpsmith.audit.judging.call_tracer import CallTracer, is_traceable
from mpsmith.audit.judging.execution import execute, gradients, shown_execution
from mpsmith.audit.judging.fallbacks import missing_operator
from mpsmith.audit.model.case import Case
from mpsmith.simulator.device import loading as simulated_device
from mpsmith.simulator.fallback_recorders import CounterRecorder, WarningRecorder


def leaf(*shape: int) -> torch.Tensor:
    return torch.ones(shape or (2,), requires_grad=True)


# ---- execution


def test_outputs_that_are_not_tensors_have_no_gradient() -> None:
    execution = execute(Case(lambda x: (x * 2, 3, x.detach()), differentiable=True), ((leaf(),), {}))
    assert [type(output) for output in execution.outputs] == [torch.Tensor, int, torch.Tensor]
    assert [tensor is execution.outputs[0] for tensor in execution.differentiable] == [True]


def test_inputs_that_require_a_gradient_may_be_keywords() -> None:
    x, weight = leaf(), leaf()
    case = Case(lambda x, scale, weight: x * scale * weight, differentiable=True)
    execution = execute(case, ((x, 3), {"weight": weight}))
    assert list(map(id, execution.inputs)) == list(map(id, execution.tensors)) == [id(x), id(weight)]
    assert list(map(id, execution.leaves)) == [id(x), id(3), id(weight)]


def test_a_case_that_is_not_differentiable_has_no_differentiable_outputs() -> None:
    assert execute(Case(lambda x: x * 2), ((leaf(),), {})).differentiable == []


def test_the_case_says_which_outputs_are_differentiated() -> None:
    case = Case(lambda x: (x * 2, x * 3), differentiable=True, process_output=lambda output: output[1])
    execution = execute(case, ((leaf(),), {}))
    execution.gradients = gradients(execution, [torch.ones(2)])
    outputs = [f"output {i}: tensor([{i + 2}., {i + 2}.], grad_fn=<MulBackward0>)" for i in range(2)]
    assert shown_execution(execution).splitlines() == [*outputs, "gradient 0: tensor([3., 3.])"]
    assert shown_execution(None) == "(nothing)"


def test_a_run_without_unchanged_arguments_keeps_what_was_written_and_what_has_a_gradient() -> None:
    def call(x: torch.Tensor, written: torch.Tensor, same: torch.Tensor, factor: int) -> torch.Tensor:
        return written.add_(factor) * x.detach() + same

    x, written, same = leaf(3), torch.zeros(3), torch.ones(3, dtype=torch.float64)
    execution = execute(Case(call, differentiable=True), ((x, written, same, 2), {}))
    kept = execution.without_unchanged_arguments()
    assert [id(tensor) for tensor in kept.tensors[:2]] == [id(x), id(written)]
    assert (kept.tensors[2].numel(), kept.tensors[2].dtype) == (0, torch.float64)
    assert (kept.leaves[3], list(map(id, kept.outputs))) == (2, list(map(id, execution.outputs)))
    assert list(map(id, execution.tensors)) == [id(x), id(written), id(same)]


def test_gradients_go_through_sparse_outputs() -> None:
    execution = execute(Case(lambda x: (x * 2).to_sparse(), differentiable=True), ((leaf(2, 2),), {}))
    (gradient,) = gradients(execution, [torch.ones(2, 2)])
    assert gradient is not None
    assert gradient.to_dense().tolist() == [[2.0, 2.0], [2.0, 2.0]]


# ---- fallbacks

SENTENCES = [
    "The operator 'aten::mode' is not currently implemented for the MPS device. If you want",
    "The operator 'aten::mode' is not currently supported on the MPS backend and will fall back",
    "Could not run 'aten::mode' from the 'MPS' backend.",
    "Could not run 'aten::mode' with arguments from the 'SparseMPS' backend. This could be",
]


@pytest.mark.parametrize("text", SENTENCES)
def test_an_error_names_the_operator_that_has_no_kernel(text: str) -> None:
    assert missing_operator(NotImplementedError(text)) == "aten::mode"
    assert missing_operator(RuntimeError(text)) is None


@pytest.mark.parametrize("text", ["mode is not implemented", "Could not run 'aten::mode' from the 'CUDA' backend."])
def test_other_errors_name_none(text: str) -> None:
    assert missing_operator(NotImplementedError(text)) is None


WARNING = "The operator '{}' is not currently {} on the MPS backend and will fall back to run on the CPU."


@pytest.fixture
def warn_always() -> Iterator[None]:
    before = torch.is_warn_always_enabled()
    yield
    torch.set_warn_always(before)


@pytest.mark.usefixtures("warn_always")
def test_warnings_name_each_operator_that_fell_back_once() -> None:
    recorder = WarningRecorder()
    assert torch.is_warn_always_enabled()
    names: list[str] = []

    def call() -> None:
        nonlocal names
        with recorder.recording() as names:
            for operator in ("aten::mode", "aten::sort.stable", "aten::mode"):
                warnings.warn(WARNING.format(operator, "supported"), stacklevel=1)
            warnings.warn(WARNING.format("aten::sum", "implemented"), stacklevel=1)
            warnings.warn("something else about the operator 'aten::relu'", stacklevel=1)
            raise RuntimeError("later")

    with pytest.raises(RuntimeError, match="later"):
        call()
    assert names == ["aten::mode", "aten::sort.stable", "aten::sum"]


@pytest.mark.usefixtures("warn_always")
def test_a_warning_that_a_filter_hides_is_seen() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with WarningRecorder().recording() as names:
            warnings.warn(WARNING.format("aten::mode", "supported"), stacklevel=1)
    assert names == ["aten::mode"]


def test_counters_are_emptied_before_and_read_after(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = iter([["aten::before"], ["aten::mode"]])
    monkeypatch.setattr(simulated_device, "drain_fallbacks", lambda: next(counted))
    with CounterRecorder().recording() as names:
        assert names == []
    assert names == ["aten::mode"]


# ---- tracer


@dataclass
class Event:
    """A call as the profiler reports it."""

    full_name: str
    start: int
    duration: int
    overload: str = ""

    def name(self) -> str:
        return self.full_name

    def overload_name(self) -> str:
        return self.overload

    def start_ns(self) -> int:
        return self.start

    def duration_ns(self) -> int:
        return self.duration


def traced_calls(*events: Event, forward: bool = True) -> CallTracer:
    tracer = CallTracer()
    tracer._collect(SimpleNamespace(kineto_results=SimpleNamespace(events=lambda: events)), forward)  # type: ignore[arg-type]
    return tracer


def test_distinguishes_user_calls_from_inner_calls() -> None:
    tracer = traced_calls(
        Event("aten::b", 2, 3),
        Event("aten::a", 0, 10, "Tensor"),
        Event("aten::c", 10, 5),
        Event("aten::b", 10, 2),
        Event("aten::d", 15, 1),
    )
    assert tracer.overloads == {"aten::a.Tensor": True, "aten::b": False, "aten::c": True, "aten::d": True}


def test_one_outermost_call_among_many_counts() -> None:
    inside, outside = Event("aten::b", 2, 3), Event("aten::b", 20, 3)
    assert traced_calls(Event("aten::a", 0, 10), inside, outside).overloads["aten::b"]
    assert traced_calls(Event("aten::a", 30, 10), Event("aten::b", 31, 3), outside).overloads["aten::b"]


def test_in_the_backward_nothing_is_called_by_the_users_code() -> None:
    assert traced_calls(Event("aten::a", 0, 10), forward=False).overloads == {"aten::a": False}


@pytest.mark.parametrize("name", ["autograd::engine: step", "MulBackward0", "torch::autograd::x", "[memory]", "a::b c"])
def test_marks_of_the_profiler_are_not_operators(name: str) -> None:
    tracer = traced_calls(Event(name, 0, 10), Event("aten::a", 1, 5))
    assert tracer.overloads == {"aten::a": True}


def test_the_innermost_caller_that_hands_its_arguments_to_the_cpu_fell_back() -> None:
    tracer = traced_calls(
        Event("aten::outer", 0, 100),
        Event("aten::done", 1, 10),
        Event("aten::falls", 20, 50, "out"),
        Event("aten::_to_cpu", 21, 5),
        Event("aten::_to_cpu", 80, 5),
        Event("aten::_to_cpu", 200, 5),
    )
    assert tracer.sent_to_cpu == ["aten::falls.out", "aten::outer"]


def test_a_call_that_ends_as_another_does_is_inside_it() -> None:
    assert traced_calls(Event("aten::falls", 0, 10), Event("aten::_to_cpu", 5, 5)).sent_to_cpu == ["aten::falls"]


def test_each_context_resets_transfers_and_keeps_calls() -> None:
    tracer = traced_calls(Event("aten::falls", 0, 10), Event("aten::_to_cpu", 5, 5))
    nothing: Any = SimpleNamespace(kineto_results=None)
    tracer._collect(nothing, True)
    assert tracer.sent_to_cpu == []
    assert tracer.overloads["aten::falls"]


@pytest.mark.parametrize(
    ("shape", "dtype", "fits"),
    [
        ((1_025, 5, 10, 10), torch.bfloat16, False),
        ((1_025, 5, 10, 10), torch.float32, True),
        ((1_025, 5, 5, 5), torch.bfloat16, True),
        ((1_025, 10, 10), torch.float16, True),
        ((262_147,), torch.float16, True),
    ],
)
def test_a_call_that_multiplies_very_many_matrices_one_by_one_is_not_traced(
    shape: tuple[int, ...], dtype: torch.dtype, fits: bool
) -> None:
    assert is_traceable(Case(torch.matrix_exp, (torch.ones(shape, dtype=dtype),))) is fits


def test_a_real_call_is_watched_even_when_it_raises() -> None:
    tracer = CallTracer()

    def call() -> None:
        with tracer.tracing(forward=True):
            torch.ones(2).add(1)
            raise ValueError("after")

    with pytest.raises(ValueError, match="after"):
        call()
    assert tracer.overloads["aten::add.Tensor"]
    assert not tracer.overloads["aten::fill_.Scalar"], "ones calls it inside"
