"""PyTorch's own host code under the simulated device: builds it before an audit, loads and grades it in workers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import MpsmithError
from ..model.verdicts import Grade, Outcome

if TYPE_CHECKING:
    from ...simulator.macho import HostProcess
    from ...simulator.macho.device_kernels import WheelKernels
    from ...simulator.opening import MpsDevice
    from ...simulator.upstream.host_work import HostWork
    from ...simulator.upstream.manifest import TreeBuild

NEWEST_MACOS = "26"


def require_buildable(asked: str) -> None:
    """Raise MpsmithError for what cannot be built here, before minutes of fetching and compiling."""
    from ...simulator.objc.compiler import host_compiler
    from ...simulator.upstream.operations import require_tree
    from ...simulator.upstream.sources import is_release

    if not is_release(asked):
        if not asked or not Path(asked).is_dir():
            raise MpsmithError(f"{asked!r} is neither a release of PyTorch such as 2.6.0 nor a folder with its source")
        require_tree(Path(asked).resolve())
    host_compiler(torch=False)


def build_host_code(asked: str, say: Callable[[str], None]) -> tuple[Path, TreeBuild]:
    """Build the host code of a release such as `2.6.0`, or of a folder with PyTorch's source; the manifest's folder.

    A release launches the kernels of its macOS wheel if that is available; a folder launches those of its Metal
    sources. `say` gets a line for each file.

    Raises MpsmithError if it is neither, cannot be fetched, or lacks what every file needs.
    """
    from ...registry.torch_release import public_version
    from ...simulator.upstream.kept_builds import kept_build
    from ...simulator.upstream.sources import is_release, source_of_release
    from ..releases.surface.native_functions import installed_release

    require_buildable(asked)
    release = public_version(asked) if is_release(asked) else ""
    root = source_of_release(release) if release else Path(asked).resolve()
    kernels = _kernels_of(release, say) if release else ""
    return kept_build(root, release or str(root), kernels, installed_release(), say)


def prepare_host_code(asked: str, say: Callable[[str], None]) -> tuple[Path, TreeBuild]:
    """The host code for an audit: of a release's macOS wheel if this machine can run it, else as `build_host_code`.

    Raises MpsmithError as `build_host_code`.
    """
    from ...registry.torch_release import public_version
    from ...simulator.upstream.sources import is_release

    release = public_version(asked) if is_release(asked) else ""
    if release:
        try:
            return _of_wheel(release, say)
        except MpsmithError as error:
            say(f"the wheel of torch {release} cannot be run here, so its source is compiled: {error}")
    return build_host_code(asked, say)


def installed_host_code(say: Callable[[str], None], set_up: Callable[[], None]) -> tuple[Path, TreeBuild] | None:
    """The host code of the installed torch's macOS wheel; None if this machine cannot run it, and on a Mac.

    `say` receives the reason, and messages on downloads. `set_up` fetches what is compiled with; it may raise
    MpsmithError.
    """
    from ...registry.torch_release import public_version
    from ...simulator.macho import arm64_command
    from ..releases.surface.native_functions import installed_release

    if sys.platform == "darwin":
        return None
    release = public_version(installed_release())
    try:
        arm64_command()
        set_up()
        return _of_wheel(release, say)
    except MpsmithError as error:
        say(f"without the host code of torch {release}: {error}")
        return None


def _of_wheel(release: str, say: Callable[[str], None]) -> tuple[Path, TreeBuild]:
    from ...cache import cache_folder
    from ...simulator.macho import arm64_command
    from ...simulator.macho.process import LIBRARIES
    from ...simulator.upstream.manifest import BuiltFile, TreeBuild, read_manifest, write_manifest
    from ..releases.wheel.libraries import cached_host_files, host_files
    from ..releases.wheel.shipped import shipped_library

    arm64_command()
    if cached_host_files(release) is None:
        say(f"taking libraries and kernels of torch {release} out of its macOS wheel, once (up to 400 MB)")
    shipped_library(release)
    folder = host_files(release)
    noted = cache_folder() / "wheel-files" / f"{release} host code"
    with start_wheel(release, NEWEST_MACOS) as process:  # builds what is not built yet
        if (manifest := read_manifest(noted)) is not None:
            return noted, manifest
        native = tuple(name.removeprefix("aten::") for name, operator in process.operators().items() if operator.mps)
    file = BuiltFile("macOS wheel", native, str(folder / "lib" / LIBRARIES[-1]))
    built = TreeBuild(release, release, (file,), wheel=True)
    write_manifest(noted, built)
    return noted, built


def start_wheel(release: str, macos: str) -> HostProcess:
    """Start the process that runs a release's wheel, as on a version of macOS. Raises MpsmithError."""
    from ...simulator.air.library import AirLibrary
    from ...simulator.macho import HostProcess
    from ..releases.wheel.libraries import host_files
    from ..releases.wheel.shipped import shipped_library

    major, _, minor = macos.partition(".")
    library = AirLibrary(shipped_library(release), release)
    return HostProcess(host_files(release), (int(major), int(minor or 0)), library=library)


def _kernels_of(release: str, say: Callable[[str], None]) -> str:
    """The release if its compiled kernels are available; "" if its Metal sources are to be compiled."""
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
        built: what was built from the source.
        macos: the version of macOS that it sees.
        drain_work: returns what its kernels did besides encoding commands since the last call.
        work: the sum of these over the executed cases, without calls that only explain a case.
        count_completed: returns how many graphs of the stand-in for MPSGraph ran here; for a wheel, how many calls its
            process completed, which run graphs, launch kernels, raise, or have nothing to compute.
        stood_in: returns how many calls the simulated device's stand-ins answered instead.
        before: the counts of launched kernels, of `count_completed` and of `stood_in` when the case began.
    """

    built: TreeBuild
    macos: str = NEWEST_MACOS
    drain_work: Callable[[], dict[str, HostWork]] = dict
    count_completed: Callable[[], int] = int
    stood_in: Callable[[], int] = int
    empty_cache: Callable[[], None] = lambda: None
    before: tuple[int, int, int] = (0, 0, 0)
    work: dict[str, HostWork] = field(default_factory=dict)

    @property
    def facts(self) -> dict[str, Any]:
        """The facts about it that are recorded in the environment of a run."""
        return {
            "source": self.built.source,
            "kernels": self.built.kernels,
            "macos": self.macos,
            "overloads": sorted(self.built.overloads),
        }

    def kernel_names(self) -> tuple[str, ...]:
        """The names of all kernels of a wheel; () for a tree, whose launches are not counted by overload."""
        from ...simulator.air.library import AirLibrary
        from ..releases.wheel.shipped import shipped_library

        release = self.built.kernels
        return tuple(AirLibrary(shipped_library(release), release).names) if self.built.wheel else ()

    def begin_group(self) -> None:
        """To be called before the cases of a group, so that they do not depend on groups before it in this worker.

        Graphs that earlier calls left are used again for calls with the same key, and memory holds what they wrote.
        """
        self.empty_cache()

    def begin_case(self) -> None:
        """To be called before each case: reset the counts."""
        self.drain_work()
        self.before = self._now()

    def take_work(self) -> dict[str, HostWork]:
        """The kernels' waits and CPU work in the cases since the last call."""
        work, self.work = self.work, {}
        return work

    def end_case(self, outcome: Outcome) -> Grade | None:
        """The grade *host code* if host code ran and nothing else answered; None for the grade of the device.

        Host code ran if it launched a kernel, ran a graph or answered a call in its process. Stand-ins and fallbacks
        must not have answered any call.
        """
        from ...simulator.upstream.host_work import joined

        self.work = joined(self.work, self.drain_work())
        launched, completed, stood_in = (now - before for now, before in zip(self._now(), self.before, strict=True))
        return Grade.HOST_CODE if (launched or completed) and not stood_in and not outcome.fallbacks else None

    def _now(self) -> tuple[int, int, int]:
        from ...simulator.objc.bridge import launches

        return launches(), self.count_completed(), self.stood_in()


def load_host_code(folder: str, macos: str | None, device: MpsDevice) -> HostCode:
    """Load the build whose manifest is in a folder, as on a version of macOS.

    Raises MpsmithError on a real device, if the build no longer exists, and if a library cannot be loaded.
    """
    if not device.simulated:
        raise MpsmithError("--host-code is for the simulated device; a real one has its own")
    from ...simulator.air.library import AirLibrary
    from ...simulator.objc.bridge import answer_with
    from ...simulator.objc.graphs import check_caches, graphs_run
    from ...simulator.objc.loading import load_extension, set_macos
    from ...simulator.upstream.host_work import observe
    from ...simulator.upstream.manifest import read_manifest
    from ..releases.wheel.shipped import shipped_library

    built = read_manifest(Path(folder))
    if built is None:
        raise MpsmithError(f"the build of host code in {folder} is gone: run the audit again without --resume")
    if built.wheel:
        return _load_wheel(built, macos or NEWEST_MACOS)
    set_macos(macos or NEWEST_MACOS)
    check_caches()
    if built.kernels:
        answer_with(AirLibrary(shipped_library(built.kernels), built.kernels))
    built.load(load_extension)
    library = next(Path(file.library) for file in built.files if file.built)
    return HostCode(built, macos or NEWEST_MACOS, observe(library, built.overloads), graphs_run)


def _load_wheel(built: TreeBuild, macos: str) -> HostCode:
    from ...simulator.macho.device_kernels import WheelKernels
    from ..model import time_limit

    def start() -> HostProcess:
        with time_limit.suspended():
            return start_wheel(built.source, macos)

    kernels = WheelKernels(start, [name.removeprefix("aten::") for name in built.overloads])
    kernels.install()
    require_answers(kernels, built.source)
    completed, stood_in = (lambda: kernels.completed_calls), (lambda: kernels.stood_in.total())
    return HostCode(built, macos, kernels.drain_work, completed, stood_in, kernels.empty_cache)


def require_answers(kernels: WheelKernels, release: str) -> None:
    """Raise MpsmithError if the simulated device's stand-ins answer an addition: they would answer every call.

    Args:
        kernels: installed.
        release: whose host code it is.
    """
    import torch

    torch.ones(2, device="mps").add(1).cpu()
    if kernels.stood_in:
        overload, reason = next(iter(kernels.stood_in))
        raise MpsmithError(f"the host code of torch {release} answers no calls here: aten::{overload}: {reason}")
