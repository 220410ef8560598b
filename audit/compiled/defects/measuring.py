"""Runs the programs of the defects under torch.compile on the simulated device, with one code generator or several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from ....simulator.fallback_recorders import FallbackRecorder
from ...model.case import Case
from ..judging import compiled_call
from ..overlay import OverlayError, generator_of, overlaid
from ..verdicts import CompiledOutcome
from .defect import Defect

SEED = 0


@dataclass(frozen=True)
class Shown:
    """The outcome of a defect's program with one code generator.

    Attributes:
        defect: the defect.
        outcome: its verdict is right where the defect is absent.
    """

    defect: Defect
    outcome: CompiledOutcome

    @property
    def has_defect(self) -> bool:
        """Whether the defect shows: the result is not right."""
        return not self.outcome.verdict.is_right

    @property
    def as_expected(self) -> bool:
        """Whether the verdict is the documented one."""
        return self.outcome.verdict is self.defect.verdict


@dataclass(frozen=True)
class MeasuredRelease:
    """The outcomes of all programs with the code generator of one release.

    Attributes:
        release: whose code generator was used.
        overlay: whether it replaced the installed generator.
        shown: one for each defect; empty if the generator does not work with the installed Inductor.
        error: why it does not work, or "".
    """

    release: str
    overlay: bool
    shown: tuple[Shown, ...] = ()
    error: str = ""


def show(defect: Defect, recorder: FallbackRecorder) -> Shown:
    """Run the program of a defect on the CPU and compiled on mps, with the current code generator."""
    program, inputs = defect.program()
    case = Case(program, args=tuple(inputs))
    return Shown(defect, compiled_call(case, recorder, SEED, defect.number))


def measure(
    release: str, installed: str, defects: Sequence[Defect], recorder: FallbackRecorder, say: Callable[[str], None]
) -> MeasuredRelease:
    """Run the programs with the code generator of a release.

    Args:
        release: whose code generator.
        installed: the release of the installed torch, whose own generator is used as it is.
        defects: which programs.
        recorder: attributes fallbacks to operators.
        say: receives progress messages.

    Raises:
        WheelError: the code generator of the release is not available.
    """
    say(f"torch {release}: {len(defects)} programs")
    overlay = release != installed
    try:
        with overlaid(generator_of(release)) if overlay else nullcontext():
            return MeasuredRelease(release, overlay, tuple(show(defect, recorder) for defect in defects))
    except OverlayError as error:
        return MeasuredRelease(release, overlay, error=str(error))
