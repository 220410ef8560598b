"""Our kernels beside those that a release of torch ships for the same operators: exactness and time.

The simulated device lacks either the operators that we have kernels for, or none that the release has: so theirs run in
a separate process. A case counts for them where nothing but shipped kernels computed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeVar

from ...errors import MpsmithError
from .accuracy import Accuracy, accuracy_of, accuracy_where
from .source import calls_of
from .timing import milliseconds_on_mps, workload_of

if TYPE_CHECKING:
    from ...simulator.nvidia.air_compiler import AirCode
    from ...simulator.nvidia.recording import RecordedLaunch

    ShippedLaunch = tuple[RecordedLaunch, AirCode]

Result = TypeVar("Result")
# The most memory of a launch that is recorded.
_LARGEST_LAUNCH = 1 << 30


@dataclass(frozen=True)
class Beside:
    """One call in one dtype, by our kernel and by the shipped one."""

    ours: Accuracy
    theirs: Accuracy


def beside(families: Sequence[str], release: str) -> list[Beside]:
    """The calls of these families that the release's kernels answer, too.

    Raises MpsmithError where the release's kernels cannot be had.
    """
    theirs = {(each.call, each.dtype): each for each in _in_a_process(_theirs, families, release)}
    answered = {call for call, _ in theirs}
    with_answers = [name for name in families if any(call.label in answered for call in calls_of(name))]
    found = [each for name in with_answers for each in accuracy_of(name)]
    return [Beside(each, theirs[each.call, each.dtype]) for each in found if (each.call, each.dtype) in theirs]


def shipped_milliseconds(families: Sequence[str], release: str, elements: int) -> dict[str, float]:
    """By family, the median time of its workload where the release's kernels alone compute it."""
    return dict(_in_a_process(_times, families, release, elements))


def shipped_launches(families: Sequence[str], release: str, elements: int) -> dict[str, list[ShippedLaunch]]:
    """By family, the launches of its workload where the release's kernels alone compute it, for an NVIDIA GPU.

    Raises MpsmithError where the release's kernels cannot be had, or one does not become PTX.
    """
    return dict(_in_a_process(_launches, families, release, elements))


def _in_a_process(work: Callable[..., list[Result]], families: Sequence[str], release: str, *more: int) -> list[Result]:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(work, tuple(families), release, *more).result()


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


def _times(families: Sequence[str], release: str, elements: int) -> list[tuple[str, float]]:
    from ...audit.shipped.case_launches import launches

    with TemporaryDirectory(prefix="mpsmith-") as scratch:
        _open(release, Path(scratch))
        timed = []
        for family in families:
            work = workload_of(family)
            launches()
            milliseconds = milliseconds_on_mps(work, elements)
            calls = launches()
            if any(each.calls for each in calls.values()) and not any(each.stood_in for each in calls.values()):
                timed.append((family, milliseconds))
        return timed


def _launches(families: Sequence[str], release: str, elements: int) -> list[tuple[str, list[ShippedLaunch]]]:
    from ...simulator.air.library import AirKernel
    from ...simulator.clang import installed
    from ...simulator.nvidia.air_compiler import AirPtxCompiler
    from ...simulator.nvidia.compiler import PtxCompiler
    from ...simulator.nvidia.program import default_cache
    from ...simulator.nvidia.recording import recorded

    compiler = AirPtxCompiler(PtxCompiler(installed()), default_cache())
    with TemporaryDirectory(prefix="mpsmith-") as scratch:
        _open(release, Path(scratch))
        found = []
        for family in families:
            kept: list[ShippedLaunch] = []

            def keep(recording: RecordedLaunch, kernel: AirKernel, kept: list[ShippedLaunch] = kept) -> None:
                kept.append((recording, compiler.code(kernel._bitcode, recording.kernel)))

            with recorded(keep, lambda name: True, _LARGEST_LAUNCH):
                answered = _is_answered(family, elements)
            if answered and kept:
                found.append((family, kept))
        return found


def _is_answered(family: str, elements: int) -> bool:
    """Call a family's workload on mps; whether shipped kernels alone computed it."""
    import torch

    from ...audit.model.nested import map_leaves
    from ...audit.shipped.case_launches import launches

    torch.manual_seed(0)
    work = workload_of(family)
    launches()
    try:
        arguments = work.arguments(elements)
        work.call(*map_leaves(lambda leaf: leaf.to("mps") if isinstance(leaf, torch.Tensor) else leaf, arguments))
    except (AttributeError, NotImplementedError, RuntimeError):  # older torch lacks the operator
        return False
    calls = launches()
    return any(each.calls for each in calls.values()) and not any(each.stood_in for each in calls.values())


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
