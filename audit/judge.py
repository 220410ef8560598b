"""Runs one case on the CPU and on mps and says what it showed: forward first, then backward."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from .cases import Case, seed_generators
from .compare import Difference, NoReference, compare
from .execution import Execution, execute, gradients
from .fallbacks import missing_operator
from .reference import WideGradient, WideOutput, WideRuns
from .transfer import move
from .verdicts import CaseVerdict, Outcome
from .witness import Witness

DEVICE = "mps"
Result = TypeVar("Result")

OUT_OF_MEMORY = re.compile(r"out of memory|can't allocate memory|not enough memory", re.IGNORECASE)
# How PyTorch and MPS refuse a dtype; everything else that mps raises where the CPU returns is a wrong behaviour.
DTYPE_REFUSED = re.compile(
    r"doesn't support float64"
    r"|does not have support for that dtype"
    r"|not implemented for '?\w+'?"
    r"|(?:un|not )supported (?:data ?type|dtype|scalar ?type|type)"
    r"|(?:data ?type|dtype|type) \w* ?(?:is )?(?:un|not )supported"
    r"|only (?:floating|integral|integer|float|real)\w* (?:point )?(?:types?|dtypes?)"
    r"|do(?:es)?(?: not|n't) support (?:\w+ )?(?:complex|bool|bfloat16|half|float16|u?int\d+|types?|dtypes?)",
    re.IGNORECASE,
)


class Recorder(Protocol):
    """Collects the operators that fell back in a context; see `fallbacks`."""

    def recording(self) -> AbstractContextManager[list[str]]:
        """The context; its value is filled when it ends."""


class DeviceError(Exception):
    """The device raised where the CPU returned: carries the verdict that this is."""

    def __init__(self, verdict: CaseVerdict, stage: str, message: str, operator: str | None = None) -> None:
        super().__init__(message)
        self.verdict = verdict
        self.stage = stage
        self.operator = operator


def judge(case: Case, recorder: Recorder, seed: int, label: str, witness: Witness | None = None) -> Outcome:
    """Run `case` on both devices and compare. Raises nothing that an operator raises.

    Args:
        case: the case; its inputs stay as they are.
        recorder: attributes fallbacks to operators, for the kind of device that is audited.
        seed, label: make random operators repeatable.
        witness: where to record the overloads that the device executes, or None.
    """
    return Trial(case, recorder, seed, label, witness).outcome()


class Trial:
    """One judgement in progress."""

    def __init__(self, case: Case, recorder: Recorder, seed: int, label: str, witness: Witness | None) -> None:
        self._case = case
        self._recorder = recorder
        self._seed = seed
        self._label = label
        self._witness = witness
        self._random = False
        self._cotangents: list[Tensor] = []
        self._wide = WideRuns(case, self._cotangents, self._seed_cpu)
        self.fallbacks: list[str] = []
        self.cpu: Execution | None = None
        self.mps: Execution | None = None

    def outcome(self) -> Outcome:
        """The verdict over forward and backward; the executions are kept for whoever wants to look at them."""
        start = time.perf_counter()
        try:
            outcome = self._judge()
        except DeviceError as error:
            fallbacks = list(self.fallbacks)
            if error.operator is not None and error.operator not in fallbacks:
                fallbacks.append(error.operator)
            outcome = Outcome(error.verdict, error.stage, str(error), tuple(fallbacks))
        return replace(outcome, seconds=time.perf_counter() - start)

    def _judge(self) -> Outcome:
        if self._case.skipped:
            return Outcome(CaseVerdict.SKIPPED, message=self._case.skipped)
        try:
            cpu = self.cpu = self._run_on_cpu()
        except Exception as error:
            return Outcome(CaseVerdict.REFERENCE_FAILED, message=one_line(error))
        mps = self.mps = self._run_on_device()
        difference, forward_error = self._compare_outputs(mps, cpu)
        if difference is not None:
            return self._finish(difference, "forward", forward_error, backward=False)
        if not cpu.differentiable or not cpu.inputs:
            return self._finish(None, "forward", forward_error, backward=False)
        return self._judge_backward(cpu, mps, forward_error)

    def _judge_backward(self, cpu: Execution, mps: Execution, forward_error: float) -> Outcome:
        self._cotangents.extend(self._make_cotangents(cpu.differentiable))
        try:
            expected = cpu.gradients = gradients(cpu, self._cotangents)
        except Exception as error:
            outcome = self._finish(None, "forward", forward_error, backward=False)
            return replace(outcome, message=f"forward only, the CPU's backward raises: {one_line(error)}")
        actual = mps.gradients = self._gradients_on_device(mps)
        difference, backward_error = self._compare_gradients(actual, expected)
        stage = "forward" if difference is None else "backward"
        return self._finish(difference, stage, max(forward_error, backward_error), backward=True)

    # ---- running

    def _run_on_cpu(self) -> Execution:
        inputs = move(self._case.args, self._case.kwargs, "cpu")
        self._seed_cpu()
        before = torch.default_generator.get_state()
        execution = execute(self._case, inputs)
        self._random = not torch.equal(before, torch.default_generator.get_state())
        return execution

    def _seed_cpu(self) -> None:
        seed_generators(self._seed, self._label)

    def _run_on_device(self) -> Execution:
        case = self._case
        inputs = self._guarded("inputs", lambda: move(case.args, case.kwargs, DEVICE, case.on_host))
        if self._random:
            torch.mps.manual_seed(self._seed)
        if not case.default_device:
            return self._guarded("forward", lambda: execute(case, inputs))
        with torch.device(DEVICE):
            return self._guarded("forward", lambda: execute(case, inputs))

    def _gradients_on_device(self, mps: Execution) -> list[Tensor | None]:
        cotangents = self._guarded("backward", lambda: [move((c,), {}, DEVICE)[0][0] for c in self._cotangents])
        return self._guarded("backward", lambda: gradients(mps, cotangents))

    def _guarded(self, stage: str, run: Callable[[], Result]) -> Result:
        """Run on the device: record fallbacks and overloads, and turn an exception into its verdict."""
        watching = nullcontext() if self._witness is None else self._witness.watching(stage == "forward")
        try:
            with self._recorder.recording() as fallbacks, watching:
                result = run()
        except Exception as error:
            self._note_fallbacks(stage, fallbacks)
            raise classify(error, stage) from error
        self._note_fallbacks(stage, fallbacks)
        return result

    def _note_fallbacks(self, stage: str, fallbacks: list[str]) -> None:
        # A copy of the inputs to the device is the auditor's own doing, not the operator's.
        if stage != "inputs":
            self.fallbacks.extend(name for name in fallbacks if name not in self.fallbacks)

    def _make_cotangents(self, outputs: list[Tensor]) -> list[Tensor]:
        generator = torch.Generator().manual_seed(self._seed)
        return [torch.randn(t.shape, dtype=t.dtype, generator=generator) for t in outputs]

    # ---- comparing

    def _compare_outputs(self, mps: Execution, cpu: Execution) -> tuple[Difference | None, float]:
        if len(mps.outputs) != len(cpu.outputs):
            return Difference(f"returns {len(mps.outputs)} values, the CPU {len(cpu.outputs)}"), 0.0
        largest = 0.0
        for position, (actual, expected) in enumerate(zip(mps.outputs, cpu.outputs, strict=True)):
            found = self._compare_output(position, actual, expected)
            if isinstance(found, Difference):
                prefix = f"output {position}: " if len(cpu.outputs) > 1 else ""
                return Difference(prefix + found.text, found.max_error), found.max_error or 0.0
            largest = max(largest, found)
        return None, largest

    def _compare_output(self, position: int, actual: Any, expected: Any) -> Difference | float:
        if isinstance(expected, Tensor) and isinstance(actual, Tensor):
            values = not self._random and not self._case.uninitialised
            found = compare(actual, expected, WideOutput(self._wide, position), device=DEVICE, values=values)
            return found if isinstance(found, Difference) else found.max_error
        if type(actual) is not type(expected):
            return Difference(f"is {type(actual).__name__}, not {type(expected).__name__}")
        if isinstance(expected, (int, float, complex, str)) and not self._random and not self._case.uninitialised:
            return self._compare_number(position, actual, expected)
        return 0.0

    def _compare_number(self, position: int, actual: Any, expected: Any) -> Difference | float:
        if isinstance(expected, (float, complex)):
            found = compare(
                torch.as_tensor(actual, dtype=torch.complex64 if isinstance(expected, complex) else torch.float32),
                torch.as_tensor(expected, dtype=torch.complex64 if isinstance(expected, complex) else torch.float32),
                NoReference(),
                device="cpu",
            )
            return found if isinstance(found, Difference) else found.max_error
        return 0.0 if actual == expected else Difference(f"is {actual!r}, not {expected!r}")

    def _compare_gradients(
        self, actual: list[Tensor | None], expected: list[Tensor | None]
    ) -> tuple[Difference | None, float]:
        largest = 0.0
        for position, (device_gradient, cpu_gradient) in enumerate(zip(actual, expected, strict=True)):
            name = f"gradient {position}: "
            if device_gradient is None or cpu_gradient is None:
                if device_gradient is not cpu_gradient:
                    return Difference(
                        f"{name}is {_presence(device_gradient)}, the CPU's {_presence(cpu_gradient)}"
                    ), 0.0
                continue
            found = compare(
                device_gradient,
                cpu_gradient,
                WideGradient(self._wide, position),
                device=DEVICE,
                values=not self._random and not self._case.uninitialised,
            )
            if isinstance(found, Difference):
                return Difference(name + found.text, found.max_error), found.max_error or 0.0
            largest = max(largest, found.max_error)
        return None, largest

    def _finish(self, difference: Difference | None, stage: str, max_error: float, *, backward: bool) -> Outcome:
        if difference is not None:
            verdict = CaseVerdict.WRONG
        else:
            verdict = CaseVerdict.FALLBACK if self.fallbacks else CaseVerdict.PASSED
        message = "" if difference is None else difference.text
        compared = "random" if self._random else self._case.uninitialised or "values"
        return Outcome(verdict, stage, message, tuple(self.fallbacks), compared, max_error, backward)


def classify(error: Exception, stage: str) -> DeviceError:
    """The verdict that an exception on the device is, where the CPU raised none."""
    operator = missing_operator(error)
    text = one_line(error)
    if operator is not None:
        return DeviceError(CaseVerdict.MISSING, stage, f"{operator} has no kernel for mps", operator)
    if isinstance(error, MemoryError) or OUT_OF_MEMORY.search(text):
        return DeviceError(CaseVerdict.CRASH, stage, f"out of memory: {text}")
    raised = f"raises {type(error).__name__}: {text}"
    if DTYPE_REFUSED.search(text):
        return DeviceError(CaseVerdict.DTYPE_GAP, stage, raised)
    return DeviceError(CaseVerdict.WRONG, stage, raised)


def one_line(error: BaseException, limit: int = 400) -> str:
    """The first lines of an exception's text, on one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _presence(gradient: Tensor | None) -> str:
    return "absent" if gradient is None else "present"
