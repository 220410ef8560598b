"""PyTorch's own host code under the simulated device: built before an audit, loaded and graded in its workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import MpsmithError
from ..model.verdicts import Grade, Outcome

if TYPE_CHECKING:
    from ...simulator.opening import MpsDevice
    from ...simulator.upstream.host_work import HostWork
    from ...simulator.upstream.manifest import TreeBuild

NEWEST_MACOS = "26"


def build_host_code(asked: str, say: Callable[[str], None]) -> tuple[Path, TreeBuild]:
    """Build the host code of a release such as `2.6.0`, or of a folder with PyTorch's source; the folder that notes it.

    A release launches the kernels of its macOS wheel where that can be had, and a folder those of its Metal sources.
    `say` gets a line for each file.

    Raises MpsmithError if it is neither, cannot be fetched, or lacks what every file needs.
    """
    from ...registry.torch_release import public_version
    from ...simulator.upstream.kept_builds import kept_build
    from ...simulator.upstream.sources import is_release, source_of_release
    from ..releases.surface.native_functions import installed_release

    release = public_version(asked) if is_release(asked) else ""
    if not asked or (not release and not Path(asked).is_dir()):
        raise MpsmithError(f"{asked!r} is neither a release of PyTorch such as 2.6.0 nor a folder with its source")
    root = source_of_release(release) if release else Path(asked).resolve()
    kernels = _kernels_of(release, say) if release else ""
    return kept_build(root, release or str(root), kernels, installed_release(), say)


def _kernels_of(release: str, say: Callable[[str], None]) -> str:
    """The release if its compiled kernels can be had; "" where its Metal sources are to be compiled."""
    from ..releases.wheel.shipped import cached_library, shipped_library

    try:
        if cached_library(release) is None:
            say(f"taking the Metal kernels of torch {release} out of its macOS wheel, once (up to 250 MB)")
            shipped_library(release)
    except MpsmithError as error:
        say(f"the kernels are compiled from source: {error}")
        return ""
    return release


@dataclass
class HostCode:
    """The host code that is loaded into this process.

    Attributes:
        built: what was built of the tree.
        macos: the version of macOS that it sees.
        drain_work: gives what its kernels did besides encoding commands since the last time.
        graphs_run: tells how many graphs of the stand-in for MPSGraph ran in this process.
        launched_before, graphs_before: the kernels launched, and the graphs run, in this process when the case began.
    """

    built: TreeBuild
    macos: str = NEWEST_MACOS
    drain_work: Callable[[], dict[str, HostWork]] = dict
    graphs_run: Callable[[], int] = int
    launched_before: int = 0
    graphs_before: int = 0

    @property
    def facts(self) -> dict[str, Any]:
        """What the environment of a run records of it."""
        return {
            "source": self.built.source,
            "kernels": self.built.kernels,
            "macos": self.macos,
            "overloads": sorted(self.built.overloads),
        }

    def begin_case(self) -> None:
        """Before the execution of a case."""
        from ...simulator.objc.bridge import launches

        self.launched_before = launches()
        self.graphs_before = self.graphs_run()

    def grade(self, outcome: Outcome) -> Grade | None:
        """The grade of the case: host code ran in it, and nothing fell back; None for that of the device.

        It ran where it launched a kernel or ran a graph. MPSGraph itself is a stand-in.
        """
        from ...simulator.objc.bridge import launches

        ran = launches() > self.launched_before or self.graphs_run() > self.graphs_before
        return Grade.HOST_CODE if ran and not outcome.fallbacks else None


def load_host_code(folder: str, macos: str | None, device: MpsDevice) -> HostCode:
    """Load what `build_host_code` noted in a folder, as on a version of macOS.

    Raises MpsmithError on a real device, where the build is gone, and where a library cannot be loaded.
    """
    if not device.simulated:
        raise MpsmithError("--host-code is for the simulated device; a real one has its own")
    from ...simulator.air.library import AirLibrary
    from ...simulator.mpsgraph.library import graphs_run
    from ...simulator.objc.bridge import answer_with
    from ...simulator.objc.loading import load_extension, set_macos
    from ...simulator.upstream.host_work import observe
    from ...simulator.upstream.manifest import read_manifest
    from ..releases.wheel.shipped import shipped_library

    built = read_manifest(Path(folder))
    if built is None:
        raise MpsmithError(f"the build of host code in {folder} is gone: run the audit again without --resume")
    set_macos(macos or NEWEST_MACOS)
    if built.kernels:
        answer_with(AirLibrary(shipped_library(built.kernels), built.kernels))
    built.load(load_extension)
    library = next(Path(file.library) for file in built.files if file.built)
    return HostCode(built, macos or NEWEST_MACOS, observe(library, built.overloads), graphs_run)
