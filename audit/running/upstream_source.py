"""Upstream's own host code under the simulated device: loaded in a worker, and which cases it computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import MpsmithError
from ..model.verdicts import Grade, Outcome

if TYPE_CHECKING:
    from ...simulator.opening import MpsDevice


@dataclass
class UpstreamKernels:
    """The kernels of a build, loaded into this process.

    Attributes:
        overloads: those that they implement.
        graphs_run: tells how many graphs of the stand-in for MPSGraph ran in this process.
        launched_before, graphs_before: the kernels launched, and the graphs run, in this process when the case began.
    """

    overloads: frozenset[str]
    graphs_run: Callable[[], int] = int
    launched_before: int = 0
    graphs_before: int = 0

    def begin_case(self) -> None:
        """Before the execution of a case."""
        from ...simulator.objc.bridge import launches

        self.launched_before = launches()
        self.graphs_before = self.graphs_run()

    def grade(self, outcome: Outcome) -> Grade | None:
        """The grade of the case: upstream's code ran in it, and nothing fell back; None for that of the device.

        It ran where it launched a kernel or ran a graph. MPSGraph itself is a stand-in.
        """
        from ...simulator.objc.bridge import launches

        ran = launches() > self.launched_before or self.graphs_run() > self.graphs_before
        return Grade.HOST_CODE if ran and not outcome.fallbacks else None


def put_upstream(folder: str, device: MpsDevice) -> UpstreamKernels:
    """Load what `mpsmith upstream build` noted in a folder.

    Raises MpsmithError on a real device, where nothing was built there, and where a library cannot be loaded.
    """
    if not device.simulated:
        raise MpsmithError("--upstream is for the simulated device; a real one has its own kernels")
    from ...simulator.mpsgraph.library import graphs_run
    from ...simulator.objc.loading import load_extension
    from ...simulator.upstream.building import load_files, read_manifest

    return UpstreamKernels(frozenset(load_files(read_manifest(Path(folder)), load_extension)), graphs_run)
