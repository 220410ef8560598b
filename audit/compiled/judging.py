"""Judges one call under torch.compile: compares its result, and records how it was computed."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...simulator.fallback_recorders import FallbackRecorder
from ..judging.judge import Trial
from ..model.case import Case
from ..model.verdicts import CaseVerdict, Outcome
from .attribution import faulty_stage_of
from .call import CompiledCall
from .lowering import Lowering, recorded_compilation
from .refusals import fault_of_this_machine, reason_of, refused_line, verdict_of_exception
from .verdicts import CompiledOutcome, CompiledVerdict, of_uncompiled

if TYPE_CHECKING:
    from collections.abc import Iterator

# The verdicts of the simulator's checks, by a word of their message.
_OF_CHECKS = {"data race": CompiledVerdict.RACE, "UndefinedLanesError": CompiledVerdict.UNDEFINED_LANES}


def compiled_call(
    case: Case,
    recorder: FallbackRecorder,
    seed: int,
    label: str,
    *,
    dynamic: bool = False,
    checked: bool = True,
    on_device: Callable[[], None] = lambda: None,
    on_graph: Callable[[Lowering], None] = lambda lowering: None,
) -> CompiledOutcome:
    """Run a case eagerly on the CPU and compiled on mps, and judge it.

    Args:
        case: the case; its inputs stay as they are.
        recorder: records which operators fall back on this kind of device.
        seed, label: make random operators reproducible.
        dynamic: whether all sizes are symbols.
        checked: run a right result again with every access checked, if threads of its kernels communicate. A real
            device cannot: its second run would show nothing, or noise.
        on_device: called after the CPU run and before the compiled call.
        on_graph: called when the code of a graph is complete; an error that it raises ends the call.

    Raises errors that are not about the call: OSError where the disk is full, MpsmithError where the compiler fails.
    """
    if case.skipped:
        return CompiledOutcome(CompiledVerdict.SKIPPED, Outcome(CaseVerdict.SKIPPED, message=case.skipped))
    call = CompiledCall(case, dynamic=dynamic)
    with recorded_compilation(on_graph) as lowering, ready_to_compile():
        outcome = _outcome(call.case, recorder, seed, label, on_device)
        if call.raised is not None and (fault := fault_of_this_machine(call.raised)):
            raise fault
        compiled = _first_outcome(lowering, call, outcome)
        if checked and compiled.verdict.lowered and lowering.threads_share_memory:
            compiled = _checked(compiled, call.case, recorder, seed, label)
    compiled = replace(compiled, breaks=lowering.breaks, recompilations=lowering.recompilations)
    if compiled.verdict.is_right and lowering.graphs == 0 and lowering.breaks:
        return replace(compiled, verdict=CompiledVerdict.CANNOT_TRACE, reason="; ".join(lowering.breaks))
    if compiled.verdict is CompiledVerdict.WRONG:
        return replace(compiled, faulty_stage=faulty_stage_of(case, recorder, seed, label, compiled))
    return compiled


def _outcome(
    case: Case, recorder: FallbackRecorder, seed: int, label: str, on_device: Callable[[], None] = lambda: None
) -> Outcome:
    return Trial(case, recorder, seed, label, on_device=on_device).outcome()


def _first_outcome(lowering: Lowering, call: CompiledCall, outcome: Outcome) -> CompiledOutcome:
    """The outcome of the first run."""
    verdict, reason, line = _verdict(lowering, call.raised, outcome)
    return CompiledOutcome(
        verdict,
        outcome,
        aten=tuple(sorted(lowering.aten)),
        kernels=lowering.kernels,
        graphs=lowering.graphs,
        reason=reason,
        line=line,
        source=lowering.source,
    )


def _verdict(lowering: Lowering, raised: Exception | None, outcome: Outcome) -> tuple[CompiledVerdict, str, str]:
    """The verdict, its reason, and the refused line of the generated source."""
    if outcome.verdict in (CaseVerdict.PASSED, CaseVerdict.FALLBACK):
        return _how_computed(lowering), "", ""
    if outcome.verdict is not CaseVerdict.WRONG:
        return of_uncompiled(outcome), outcome.message, ""
    if raised is not None:
        return verdict_of_exception(raised), reason_of(raised), refused_line(raised)
    verdict = CompiledVerdict.ERROR if outcome.message.startswith("raises ") else CompiledVerdict.WRONG
    return verdict, f"{outcome.stage}: {outcome.message}", ""


def _how_computed(lowering: Lowering) -> CompiledVerdict:
    if lowering.kernels:
        return CompiledVerdict.METAL_AND_ATEN if lowering.aten else CompiledVerdict.METAL
    return CompiledVerdict.ATEN if lowering.aten else CompiledVerdict.NO_KERNEL


def _checked(
    compiled: CompiledOutcome, case: Case, recorder: FallbackRecorder, seed: int, label: str
) -> CompiledOutcome:
    """Run the call again on the simulated device with every access checked and undefined values in inactive lanes."""
    from ...simulator import metal

    with metal.checking("checked"):
        outcome = _outcome(case, recorder, seed, label)
    if outcome.verdict in (CaseVerdict.PASSED, CaseVerdict.FALLBACK):
        return compiled
    if outcome.message.startswith("raises "):
        verdict = next((v for word, v in _OF_CHECKS.items() if word in outcome.message), CompiledVerdict.ERROR)
    else:
        verdict = CompiledVerdict.UNDEFINED_LANES
    return replace(compiled, verdict=verdict, reason=f"{outcome.stage}, checked: {outcome.message}")


@contextmanager
def ready_to_compile() -> Iterator[None]:
    """Turn off Inductor's caches, which would hide the generated code, and its worker processes."""
    import torch._inductor.config as inductor

    quiet, plain = warnings.catch_warnings(), inductor.patch(force_disable_caches=True, compile_threads=1)
    with quiet, plain, _without_timing_guards():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _without_timing_guards() -> Iterator[None]:
    """Turn off Dynamo's timing of its guards, which flushes the processor's caches: 25 ms for each graph."""
    guards: Any = importlib.import_module("torch._dynamo.guards")
    measuring = getattr(guards, "profile_guard_manager", None)
    if measuring is None:
        yield
        return
    guards.profile_guard_manager = lambda *_: 0.0
    try:
        yield
    finally:
        guards.profile_guard_manager = measuring
