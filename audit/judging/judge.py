"""Judges one case: runs it on the CPU and on mps, forward and then backward, and compares."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from statistics import median_low
from typing import TypeVar

import torch
from torch import Tensor

from ...errors import one_line
from ...simulator.fallback_recorders import FallbackRecorder
from ..model.case import Case, seed_generators
from ..model.verdicts import COMPARED_ERRORS, CaseVerdict, Outcome
from .agreement import Comparison
from .call_tracer import CallTracer
from .compare import Difference
from .eigenvalues import order_of_outputs
from .execution import Execution, execute, gradients
from .fallbacks import NO_CPU_KERNEL
from .randomness import Draws, compare_draws_from
from .reference import WideRuns
from .refusals import DeviceError, classify
from .transfer import move
from .uninitialised_memory import UNDEFINED, made_from_empty_inputs, reads_uninitialised_memory

DEVICE = "mps"
LEAK_REPETITIONS = 5
# Seconds: a case that takes longer is not called again for its memory, it might run into its time limit.
LEAK_LONGEST = 1.0
Result = TypeVar("Result")

REPORTED_BY_A_KERNEL: tuple[type[Exception], ...] = (
    (torch.AcceleratorError,) if hasattr(torch, "AcceleratorError") else ()
)


def judge(
    case: Case,
    recorder: FallbackRecorder,
    seed: int,
    label: str,
    tracer: CallTracer | None = None,
    on_device: Callable[[], None] = lambda: None,
    on_executed: Callable[[Trial], None] = lambda trial: None,
) -> Outcome:
    """Run `case` on both devices and compare. Errors of the operator are part of the outcome.

    Args:
        case: the case; its inputs stay as they are.
        recorder: attributes fallbacks to operators, for the kind of device that is audited.
        seed, label: make random operators repeatable.
        tracer: records the overloads that the device executes, or None.
        on_device: called after the CPU run and before the device run, to know which of them crashes.
        on_executed: called with both executions before they are freed.
    """
    trial = Trial(case, recorder, seed, label, tracer, on_device)
    before = torch.mps.current_allocated_memory()
    outcome = trial.outcome()
    on_executed(trial)
    if outcome.verdict in (CaseVerdict.PASSED, CaseVerdict.FALLBACK) and outcome.seconds < LEAK_LONGEST:
        leaked = trial.leaked_bytes(before)
        if leaked:
            text = f"leaks memory: {leaked:,} bytes more are allocated after each call"
            outcome = replace(outcome, verdict=CaseVerdict.WRONG, message=text)
    return outcome


class Trial:
    """One judgement in progress."""

    def __init__(
        self,
        case: Case,
        recorder: FallbackRecorder,
        seed: int,
        label: str,
        tracer: CallTracer | None = None,
        on_device: Callable[[], None] = lambda: None,
    ) -> None:
        self._case = case
        self._recorder = recorder
        self._seed = seed
        self._tracer = tracer
        self._on_device = on_device
        self._random = False
        self._notes: list[str] = []
        self._cpu_draws: tuple[bool, ...] = ()
        self._device_draws: tuple[bool, ...] = ()
        self._cotangents: list[Tensor] = []
        # Not a method of this object: a cycle would keep the case's tensors until the next garbage collection.
        self._seed_cpu = partial(seed_generators, seed, label)
        self._wide = WideRuns(case, self._cotangents, self._seed_cpu)
        self.fallbacks: list[str] = []
        self.cpu: Execution | None = None
        self.mps: Execution | None = None
        self.differs_in_values = self.differs_in_form = False

    @property
    def can_be_predicted(self) -> bool:
        """Whether values, a shape or a dtype differ: what a model of a defect may explain."""
        return self.differs_in_values or self.differs_in_form

    def outcome(self) -> Outcome:
        """The verdict over forward and backward. The executions stay available in `cpu` and `mps`."""
        start = time.perf_counter()
        try:
            outcome = self._judge()
        except DeviceError as error:
            fallbacks = list(self.fallbacks)
            if error.operator is not None and error.operator not in fallbacks:
                fallbacks.append(error.operator)
            outcome = Outcome(error.verdict, error.stage, str(error), tuple(fallbacks))
        return replace(outcome, seconds=time.perf_counter() - start)

    def compared_by(self, make: Callable[[Case, WideRuns, list[Tensor]], Comparison]) -> bool:
        """Whether another comparison accepts the whole case: outputs, gradients and arguments.

        Gradients that the first comparison did not reach are computed here; those of a result with another shape, and
        those that the device refuses for their dtype, are left out. `make` gets the case, its float64 runs and the
        cotangents.
        """
        cpu, mps = self.cpu, self.mps
        if cpu is None or mps is None:
            return False
        differentiable = bool(cpu.differentiable and cpu.inputs)
        pairs = list(zip(cpu.differentiable, mps.differentiable, strict=False))
        if any(cpus.shape != mine.shape for cpus, mine in pairs):
            differentiable = False  # no cotangent fits both
        if differentiable and not self._cotangents:
            self._cotangents.extend(self._make_cotangents(cpu.differentiable))
            try:
                cpu.gradients = gradients(cpu, self._cotangents)
            except Exception:  # as in `_judge_backward`
                differentiable = False
        try:
            if differentiable and not mps.gradients:
                mps.gradients = self._gradients_in_its_order(mps, cpu)
        except DeviceError as refused:
            if not refused.refuses_dtypes:
                return False
            differentiable = False
        comparison = make(self._case, self._wide, self._cotangents if differentiable else [])
        if isinstance(comparison.forward(mps, cpu), Difference):
            return False
        return not differentiable or not isinstance(comparison.backward(mps, cpu), Difference)

    def seed_cpu(self) -> None:
        """Seed the generators as for the run on the CPU."""
        self._seed_cpu()

    def leaked_bytes(self, before: int) -> int:
        """How many bytes of device memory each further call leaves allocated. Frees the results first.

        Args:
            before: the bytes that were allocated before the trial. A cache grows once, a leak with every call, and
                memory of an earlier case may be freed at any time. So the median of LEAK_REPETITIONS calls decides.
        """
        self.cpu = self.mps = self._tracer = None
        if torch.mps.current_allocated_memory() <= before:
            return 0
        # A full collection takes a hundred times as long as one of the youngest objects, so it only confirms a leak.
        return self._growth(generation=1) and self._growth(generation=2)

    def _growth(self, generation: int) -> int:
        levels = [_memory_in_use(generation)]
        growth: list[int] = []
        # The median is zero or less as soon as most calls leave nothing allocated.
        while len(growth) < LEAK_REPETITIONS and sum(leaked <= 0 for leaked in growth) <= LEAK_REPETITIONS // 2:
            self._repeat_on_device()
            levels.append(_memory_in_use(generation))
            growth.append(levels[-1] - levels[-2])
        return max(0, median_low(growth))

    def _repeat_on_device(self) -> None:
        try:
            execution = self._run_on_device()
            if self._cotangents and execution.differentiable:
                self._gradients_on_device(execution)
        except DeviceError:
            return  # the source "repetition" finds calls that fail the second time

    def _judge(self) -> Outcome:
        if self._case.skipped:
            return Outcome(CaseVerdict.SKIPPED, message=self._case.skipped)
        try:
            cpu = self.cpu = self._run_on_cpu()
        except Exception as error:
            if self._case.errors_count:
                return self._judge_error(error)
            return Outcome(CaseVerdict.REFERENCE_FAILED, message=one_line(error))
        mps = self.mps = self._run_on_device()
        comparison = Comparison(self._case, self._wide, DEVICE, random=self._random)
        self._notes = comparison.notes
        agreement = comparison.forward(mps, cpu)
        if not isinstance(agreement, Difference):
            agreement = self._compare_draws() or agreement
        differs = isinstance(agreement, Difference)
        if (differs or made_from_empty_inputs(self._case, cpu)) and reads_uninitialised_memory(
            self._case, cpu, self._seed_cpu
        ):
            return Outcome(CaseVerdict.REFERENCE_FAILED, message=UNDEFINED)
        if isinstance(agreement, Difference):
            return self._wrong(agreement, "forward")
        if not cpu.differentiable or not cpu.inputs:
            return self._right(agreement)
        return self._judge_backward(cpu, mps, comparison, agreement)

    def _judge_backward(self, cpu: Execution, mps: Execution, comparison: Comparison, error_so_far: float) -> Outcome:
        self._cotangents.extend(self._make_cotangents(cpu.differentiable))
        try:
            cpu.gradients = gradients(cpu, self._cotangents)
        except Exception as error:
            message = f"forward only, the CPU's backward raises: {one_line(error)}"
            return replace(self._right(error_so_far), message=message)
        mps.gradients = self._gradients_in_its_order(mps, cpu)
        agreement = comparison.backward(mps, cpu)
        if isinstance(agreement, Difference):
            return replace(self._wrong(agreement, "backward"), backward=True)
        return replace(self._right(max(error_so_far, agreement)), backward=True)

    def _judge_error(self, expected: Exception) -> Outcome:
        """The CPU refuses the arguments, so the device must raise the same type of exception.

        A kernel reports what only it can see, such as an index out of range, as torch.AcceleratorError at the next
        synchronization.
        """
        try:
            self.mps = self._run_on_device()
        except DeviceError as refused:
            # Not the exception itself: its frames hold this one, and a cycle keeps the device's memory.
            actual = type(refused.__cause__)
            if refused.verdict is CaseVerdict.MISSING:
                raise
            if actual is type(expected) or issubclass(actual, REPORTED_BY_A_KERNEL):
                return replace(self._right(None), compared=COMPARED_ERRORS)
            if NO_CPU_KERNEL.search(str(expected)):
                return Outcome(CaseVerdict.REFERENCE_FAILED, message=one_line(expected))
            if refused.verdict is CaseVerdict.DTYPE_GAP:  # it refused before it could check what the CPU refuses
                raise
            raised = f"raises {actual.__name__}, the CPU {type(expected).__name__}: {one_line(expected)}"
            return self._wrong(Difference(raised), "forward")
        if NO_CPU_KERNEL.search(str(expected)):
            return Outcome(CaseVerdict.REFERENCE_FAILED, message=one_line(expected))
        returned = f"returns where the CPU raises {type(expected).__name__}: {one_line(expected)}"
        return self._wrong(Difference(returned), "forward")

    def _right(self, max_error: float | None) -> Outcome:
        verdict = CaseVerdict.FALLBACK if self.fallbacks else CaseVerdict.PASSED
        return Outcome(verdict, "forward", ", ".join(self._notes), tuple(self.fallbacks), self._compared(), max_error)

    def _wrong(self, difference: Difference, stage: str) -> Outcome:
        self.differs_in_values = difference.wrong is not None
        self.differs_in_form = difference.of_form
        fallbacks = tuple(self.fallbacks)
        return Outcome(CaseVerdict.WRONG, stage, difference.text, fallbacks, self._compared(), difference.max_error)

    def _compared(self) -> str:
        if self._random:
            return "distribution" if self._case.distribution else "random"
        return self._case.uninitialised or "values"

    # ---- running

    def _run_on_cpu(self) -> Execution:
        inputs = move(self._case.args, self._case.kwargs, "cpu")
        self._seed_cpu()
        draws = Draws(torch.default_generator.get_state)
        execution = execute(self._case, inputs)
        self._cpu_draws = draws.after(execution.leaves)
        self._random = any(self._cpu_draws)
        return execution

    def _run_on_device(self) -> Execution:
        case = self._case
        self._on_device()
        inputs = self._guarded("inputs", lambda: move(case.args, case.kwargs, DEVICE, case.on_host))
        if self._random:
            torch.mps.manual_seed(self._seed)
        draws = Draws(torch.mps.get_rng_state)
        with torch.device(DEVICE) if case.default_device else nullcontext():
            execution = self._guarded("forward", lambda: execute(case, inputs))
        self._device_draws = draws.after(execution.leaves)
        return execution

    def _compare_draws(self) -> Difference | None:
        if self.fallbacks:
            return None  # what runs on the CPU draws there
        return compare_draws_from(self._case, self._device_draws, self._cpu_draws)

    def _gradients_on_device(self, mps: Execution, given: list[Tensor] | None = None) -> list[Tensor | None]:
        wanted = self._cotangents if given is None else given
        cotangents = self._guarded("backward", lambda: [move((c,), {}, DEVICE)[0][0] for c in wanted])
        return self._guarded("backward", lambda: gradients(mps, cotangents))

    def _gradients_in_its_order(self, mps: Execution, cpu: Execution) -> list[Tensor | None]:
        """Gradients on the device, with cotangents in the order of the device's eigenvalues."""
        order = order_of_outputs(self._case, mps.outputs, cpu.outputs)
        if order is None or not all(map(order.fits, self._cotangents)):
            return self._gradients_on_device(mps)
        device_gradients = self._gradients_on_device(
            mps, [order.to_device_order(cotangent) for cotangent in self._cotangents]
        )
        mps.cotangents = [order.to_cpu_order(cotangent) for cotangent in mps.cotangents]
        return device_gradients

    def _guarded(self, stage: str, run: Callable[[], Result]) -> Result:
        """Run on the device: record fallbacks and overloads, and turn an exception into its verdict."""
        tracer = None if stage == "inputs" else self._tracer
        tracing = nullcontext() if tracer is None else tracer.tracing(stage == "forward")
        try:
            with self._recorder.recording() as fallbacks, tracing:
                result = run()
                if stage != "inputs":
                    torch.mps.synchronize()  # errors of the kernels belong to this case, not to the next one
        except Exception as error:
            self._note_fallbacks(stage, fallbacks)
            raise classify(error, stage) from error
        self._note_fallbacks(stage, fallbacks)
        return result

    def _note_fallbacks(self, stage: str, fallbacks: list[str]) -> None:
        # The auditor copies the inputs to the device, not the operator.
        if stage != "inputs":
            silent = [] if self._tracer is None else self._tracer.sent_to_cpu
            self.fallbacks.extend(name for name in dict.fromkeys([*fallbacks, *silent]) if name not in self.fallbacks)

    def _make_cotangents(self, outputs: list[Tensor]) -> list[Tensor]:
        generator = torch.Generator().manual_seed(self._seed)
        made = [torch.randn(t.shape, dtype=t.dtype, generator=generator) for t in outputs]
        layout = self._case.cotangent_layout
        return made if layout is None else [_changed_or_original(layout(t), t) for t in made]


def _memory_in_use(generation: int) -> int:
    """Bytes of device memory in use, after garbage collection and synchronization."""
    gc.collect(generation)
    torch.mps.synchronize()
    return torch.mps.current_allocated_memory()


def _changed_or_original(changed: Tensor | None, original: Tensor) -> Tensor:
    return original if changed is None else changed
