"""Launches the kernels of a release for known wrong results; a call may end its worker process."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pebble import ProcessExpired

from ...registry.found_wrong import FoundWrong
from ...simulator.opening import DeviceKind
from ..model.selection import Settings
from ..model.verdicts import CaseVerdict, Grade
from ..shipped.finding_result import FindingResult
from ..shipped.kernels import kernel_that_ran
from ..shipped.requested_releases import coverage_of
from ..store.store import Store
from . import worker
from .isolated import scratch_folder, worker_pool
from .worker_exit import exit_of


def launch_findings(
    release: str, findings: Sequence[FoundWrong], on_result: Callable[[FindingResult], None] = lambda result: None
) -> list[FindingResult]:
    """Launch the kernels of a release for each finding. The release's library must be in the cache.

    Args:
        release: the release of torch.
        findings: the findings to launch, in this order.
        on_result: called with each result as it arrives.

    Raises MpsmithError if no worker can start.
    """
    settings = Settings(device=DeviceKind.SIMULATED, profile=coverage_of(release), shipped=release, workers=1)
    results = []
    with scratch_folder() as scratch:
        path = scratch / "found.sqlite"
        Store.create(path).close()  # a worker needs a store
        with worker_pool(settings, "fallback", path, scratch) as pool:
            for finding in findings:
                try:
                    result: FindingResult = pool.schedule(worker.launch_findings, args=(finding.name,)).result()
                except ProcessExpired as expired:
                    kernel = kernel_that_ran(scratch, expired.pid)
                    result = FindingResult(
                        finding.name,
                        CaseVerdict.CRASH,
                        Grade.SHIPPED_KERNEL if kernel else Grade.DISPATCH_ONLY,
                        f"the call ends its process: {exit_of(expired, scratch)}",
                        (kernel,) if kernel else (),
                        (),
                        "",
                    )
                results.append(result)
                on_result(result)
    return results
