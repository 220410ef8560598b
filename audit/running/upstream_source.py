"""Upstream's own host code under the simulated device: loaded in a worker, and which cases it computed."""

from __future__ import annotations

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
        launched_before: the number of launches in this process when the case began.
    """

    overloads: frozenset[str]
    launched_before: int = 0

    def begin_case(self) -> None:
        """Before the execution of a case."""
        from ...simulator.objc.bridge import launches

        self.launched_before = launches()

    def grade(self, outcome: Outcome) -> Grade | None:
        """The grade of the case: upstream's code ran in it, and nothing fell back; None for that of the device."""
        from ...simulator.objc.bridge import launches

        return Grade.UPSTREAM_SOURCE if launches() > self.launched_before and not outcome.fallbacks else None


def put_upstream(folder: str, device: MpsDevice) -> UpstreamKernels:
    """Load what `mpsmith upstream build` noted in a folder.

    Raises MpsmithError on a real device, where nothing was built there, and where a library cannot be loaded.
    """
    if not device.simulated:
        raise MpsmithError("--upstream is for the simulated device; a real one has its own kernels")
    from ...simulator.objc.loading import load_extension
    from ...simulator.upstream.building import load_files, read_manifest

    return UpstreamKernels(frozenset(load_files(read_manifest(Path(folder)), load_extension)))
