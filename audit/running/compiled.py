"""Executes the cases of a group under torch.compile in a worker process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from ..compiled.verdicts import CompiledOutcome, CompiledVerdict
from ..model.group import COMPILED, DYNAMIC, GroupKey
from ..model.selection import Settings, Shapes
from ..model.verdicts import CaseVerdict, Outcome

if TYPE_CHECKING:
    from ...simulator.opening import MpsDevice
    from ..model.case import Case, CaseSource


# The default sources: calls as programs write them, and situations that their samples lack.
SOURCES = ("opinfo", "modules", "schema", "compiled situations")


def with_own_sources(settings: Settings) -> Settings:
    """The settings with the default sources of a run under torch.compile, unless the user names some."""
    return settings if settings.sources else replace(settings, sources=SOURCES)


def compiled_sources() -> dict[str, CaseSource]:
    """The sources that only a run under torch.compile has, by name."""
    from ..compiled.scenarios import ScenarioSource

    return {ScenarioSource.name: ScenarioSource()}


def require_compiler(device: MpsDevice) -> None:
    """Raise CompilerMissingError if generated Metal cannot be compiled, because every case would fail."""
    if device.simulated:
        from ...simulator.clang import installed

        installed()


def compiled_groups(keys: Iterable[GroupKey], shapes: Shapes) -> list[GroupKey]:
    """The groups in the modes that `shapes` selects, one mode after the other."""
    modes = {Shapes.STATIC: (COMPILED,), Shapes.DYNAMIC: (DYNAMIC,), Shapes.BOTH: (COMPILED, DYNAMIC)}[shapes]
    groups = list(keys)
    return [replace(key, mode=mode) for mode in modes for key in groups]


class SameVerdict:
    """Judges smaller forms of a case for `reproduction.shrinking`; rejects forms with a different compiled verdict.

    Attributes:
        source: the Metal that was generated for the last form with the same verdict.
    """

    def __init__(self, judge: Callable[[Case], CompiledOutcome]) -> None:
        self._judge = judge
        self._first: CompiledVerdict | None = None
        self.source = ""

    def __call__(self, case: Case) -> Outcome:
        """The outcome of the case, with the message of the compiled verdict."""
        compiled = self._judge(case)
        first = self._first = self._first or compiled.verdict
        if compiled.verdict is not first or compiled.verdict.is_right or not compiled.verdict.executed:
            return Outcome(CaseVerdict.REFERENCE_FAILED, message=f"{compiled.verdict.value} here")
        self.source = compiled.source
        return replace(
            compiled.outcome, verdict=CaseVerdict.WRONG, message=f"{compiled.verdict.value}, {compiled.reason}"
        )


def judged_compiled(
    device: MpsDevice, key: GroupKey, position: int, case: Case, seed: int, on_device: Callable[[], None]
) -> CompiledOutcome:
    """The verdict on one case of a group; a case beyond a limit of the simulator is skipped. Never raises."""
    from ...errors import one_line
    from ..compiled.judging import compiled_call
    from ..model.nested import leaves

    case.skipped = case.skipped or device.cannot_run(leaves((case.args, case.kwargs)))
    label = f"{key.label}:{position}"
    try:
        compiled = compiled_call(
            case,
            device.recorder,
            seed,
            label,
            dynamic=key.mode == DYNAMIC,
            checked=device.simulated,  # only the simulator can check every access
            on_device=on_device,
        )
    except Exception as error:  # an auditor bug fails one case and is reported
        message = f"not judged, {type(error).__name__}: {one_line(error)}"
        outcome = Outcome(CaseVerdict.REFERENCE_FAILED, "judge", message)
        return CompiledOutcome(CompiledVerdict.REFERENCE_FAILED, outcome, reason=message)
    limit = device.simulator_limit(compiled.outcome.message)
    if limit and compiled.outcome.verdict is CaseVerdict.WRONG:
        outcome = Outcome(CaseVerdict.SKIPPED, compiled.outcome.stage, limit)
        return CompiledOutcome(CompiledVerdict.SKIPPED, outcome, reason=limit)
    return compiled
