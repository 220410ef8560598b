"""What the coordinator of a cluster costs at 3,000 cases a second: processor time, and memory.

Scheduler, workers, messages, coordinator and store are real. The workers' cases are pretended: they take their time in
sixteen threads and have rows like those of real ones, so that this machine's cores are left to what is measured. The
processor time is that of the coordinator's whole process, Dask's client included; what an audit of one group takes is
taken off.
"""

import resource
import sys
import tempfile
import time
from pathlib import Path

from benchmarks._dask import dask_cluster
from benchmarks._pretended_workers import CASES, VARIABLE
from mpsmith.audit.model.selection import Settings
from mpsmith.audit.running.cluster.auditing import audit_on_cluster
from mpsmith.audit.store.store import Store
from mpsmith.simulator.opening import DeviceKind

RATE, SECONDS = 3000, 60
WORKERS, THREADS = 2, 8
# Names of operators keep an audit from probing torch.mps.
SETTINGS = Settings(ops=("operator*",), device=DeviceKind.SIMULATED)


def main() -> None:
    nothing, took_nothing, _ = audited(1)
    own, took, cases = audited(RATE * SECONDS // CASES)
    own, took = own - nothing, took - took_nothing
    rate = cases / took
    print(
        f"  {cases:,} cases in {took:.0f} s, {rate:,.0f} a second: {own / took:.1%} of a core (at most 5 % at {RATE:,})"
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << (10 if sys.platform == "linux" else 20))
    print(f"  {own / cases * 1e6:.1f} µs a case; peak {peak:.0f} MB (at most 400)")


def audited(groups: int) -> tuple[float, float, int]:
    """This process' seconds in an audit of so many groups, those on the clock, and its cases."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        options = ("--nthreads", str(THREADS), "--preload", "benchmarks._pretended_workers")
        variables = {VARIABLE: f"{groups} {WORKERS * THREADS / RATE}"}
        with dask_cluster(folder, WORKERS, *options, variables=variables) as address:
            began, own = time.monotonic(), time.process_time()
            path = folder / "audit.sqlite"
            audit_on_cluster(SETTINGS, path, address, resume=False, per_device=False, say=lambda text: None)
            took, own = time.monotonic() - began, time.process_time() - own
        with Store.open(path) as store:
            cases = sum(count.cases for count in store.case_counts(1))
    return own, took, cases


if __name__ == "__main__":
    main()
