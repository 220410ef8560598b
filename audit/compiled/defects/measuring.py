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
    """What the program of a defect showed with one code generator.

    Attributes:
        defect: the defect.
        outcome: what became of the program; its verdict is right where the defect is not there.
    """

    defect: Defect
    outcome: CompiledOutcome

    @property
    def is_there(self) -> bool:
        """Whether the program showed anything but a right result."""
        return not self.outcome.verdict.is_right

    @property
    def as_expected(self) -> bool:
        """Whether the verdict is the one that was written down."""
        return self.outcome.verdict is self.defect.verdict


@dataclass(frozen=True)
class MeasuredRelease:
    """What all programs showed with the code generator of one release.

    Attributes:
        release: the release whose code generator it was.
        overlay: whether it was laid over the installed Inductor.
        shown: one for each defect; nothing where the generator cannot be laid over.
        cannot: why it cannot be laid over, or "".
    """

    release: str
    overlay: bool
    shown: tuple[Shown, ...] = ()
    cannot: str = ""


def show(defect: Defect, recorder: FallbackRecorder) -> Shown:
    """Run the program of a defect on the CPU and compiled on mps, with the code generator that is in place."""
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
        say: told of each release, for people who wait.

    Raises:
        WheelError: the code generator of the release cannot be had.
    """
    say(f"torch {release}: {len(defects)} programs")
    overlay = release != installed
    try:
        with overlaid(generator_of(release)) if overlay else nullcontext():
            return MeasuredRelease(release, overlay, tuple(show(defect, recorder) for defect in defects))
    except OverlayError as error:
        return MeasuredRelease(release, overlay, cannot=str(error))
