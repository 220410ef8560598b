"""Our kernels beside those that a release of torch ships for the same operators: exactness.

The simulated device lacks either the operators that we have kernels for, or none that the release has: so theirs run in
a separate process. A case counts for them where nothing but shipped kernels computed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from ...errors import MpsmithError
from .accuracy import Accuracy, accuracy_of, accuracy_where
from .source import calls_of


@dataclass(frozen=True)
class Beside:
    """One call in one dtype, by our kernel and by the shipped one."""

    ours: Accuracy
    theirs: Accuracy


def beside(families: Sequence[str], release: str) -> list[Beside]:
    """The calls of these families that the release's kernels answer, too.

    Raises MpsmithError where the release's kernels cannot be had.
    """
    theirs = {(each.call, each.dtype): each for each in _in_a_process(families, release)}
    answered = {call for call, _ in theirs}
    with_answers = [name for name in families if any(call.label in answered for call in calls_of(name))]
    found = [each for name in with_answers for each in accuracy_of(name)]
    return [Beside(each, theirs[each.call, each.dtype]) for each in found if (each.call, each.dtype) in theirs]


def _in_a_process(families: Sequence[str], release: str) -> list[Accuracy]:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(_theirs, tuple(families), release).result()


def _theirs(families: Sequence[str], release: str) -> list[Accuracy]:
    from ...audit.model.launches import grade_of_case
    from ...audit.model.verdicts import Grade, Outcome
    from ...audit.shipped.case_launches import launches

    def by_shipped_kernels(outcome: Outcome) -> bool:
        return grade_of_case(launches(), outcome) is Grade.SHIPPED_KERNEL

    with TemporaryDirectory(prefix="mpsmith-") as scratch:
        _open(release, Path(scratch))
        launches()
        found = [each for family in families for each in accuracy_where(family, by_shipped_kernels)]
        return [each for each in found if each.cases or each.wrong]


def _open(release: str, scratch: Path) -> None:
    """The simulated device with the release's coverage and kernels, and none of ours, in this process."""
    os.environ["MPSMITH_KERNELS"] = "off"
    os.environ["PYTORCH_ENABLE_MPS_FALLBACK"] = "1"
    from ...audit.releases.surface.profiles import coverage_profile
    from ...audit.releases.wheel.shipped import shipped_library
    from ...audit.shipped.case_launches import put_under_device
    from ...simulator.opening import DeviceKind, open_device

    if not open_device(DeviceKind.SIMULATED, coverage_profile, release).simulated:
        raise MpsmithError("--shipped is for the simulated device; a Mac has its own kernels")
    put_under_device(shipped_library(release), release, scratch)
