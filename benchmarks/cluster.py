"""A cluster of two workers on this machine against the audit of this machine with two workers: the same cases.

Start-up (processes, torch, the plan) is measured with one small operator and taken off, because it does not grow with
the number of cases. The coordinator's processor time is that of its process, Dask's client and what waits included.
"""

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tabulate import tabulate

from benchmarks._dask import dask_cluster
from mpsmith.audit.model.selection import Settings
from mpsmith.audit.running.cluster.auditing import audit_on_cluster
from mpsmith.audit.running.runner import run_audit
from mpsmith.audit.store.store import Store
from mpsmith.simulator.opening import DeviceKind

WORKERS = 2
ONE_OPERATOR = Settings(ops=("signbit",), dtypes=("float32",), sources=("opinfo",), device=DeviceKind.SIMULATED)
# About a third of what OpInfo has in one dtype, so that both ways end in four minutes.
MANY = Settings(ops=("[a-l]*",), dtypes=("float32",), sources=("opinfo",), workers=WORKERS, device=DeviceKind.SIMULATED)
RATE = 3000  # cases a second, at which the coordinator is to take less than 5 % of a core

Way = Callable[[Settings, Path], object]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, dask_cluster(Path(folder), WORKERS) as address:
        here, rows_here, _ = _measured(_here, Path(folder) / "here")
        there, rows_there, spent = _measured(
            lambda settings, path: _on_cluster(settings, path, address), Path(folder) / "there"
        )
    table = [("this machine, 2 workers", f"{here:,.0f}"), ("cluster of 2 workers here", f"{there:,.0f}")]
    print(tabulate(table, headers=("way", "cases/s")))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << (10 if sys.platform == "linux" else 20))
    alike = "the same rows but for times" if rows_here == rows_there else "OTHER ROWS"
    print(f"the cluster reaches {there / here:.2f} of the throughput; {alike}")
    share = f"{spent * RATE:.1%} of a core at {RATE:,} cases/s"
    print(f"coordinator: {spent * 1e6:.0f} µs a case, {share}, peak {peak:.0f} MB")


def _here(settings: Settings, path: Path) -> object:
    return run_audit(settings, path, resume=False, say=lambda _: None)


def _on_cluster(settings: Settings, path: Path, address: str) -> object:
    return audit_on_cluster(settings, path, address, resume=False, say=print)


def _measured(way: Way, folder: Path) -> tuple[float, dict[object, object], float]:
    """Cases a second, the rows by case, and this process' own seconds a case; each without the start-up."""
    folder.mkdir()
    seconds, own, rows = [], [], {}
    for settings in (ONE_OPERATOR, MANY):
        path = folder / f"{len(seconds)}.sqlite"
        began, own_began = time.perf_counter(), time.process_time()
        way(settings, path)
        seconds.append(time.perf_counter() - began)
        own.append(time.process_time() - own_began)
        with Store.open(path) as store:
            cases = list(store.cases(store.latest_run().id))
        rows = {case.label: (case.outcome.verdict, case.outcome.message, case.inputs) for case in cases}
    return len(rows) / (seconds[1] - seconds[0]), dict(rows), (own[1] - own[0]) / len(rows)


if __name__ == "__main__":
    main()
