"""Audits on 1 to 8 Dask workers of this machine, measured, beside what `audit.running.cluster.scale` simulates.

    python -m benchmarks._cluster_growth STORE

The scheduler, the workers, their sessions, the messages and the coordinator are real; the cases are those of the run in
STORE and take the time that they took there with two workers, in which a session waits. So the cores of this machine
are left to what is measured. In the last line cases take half as long, so that as many come as from twice the workers.
"""

import json
import resource
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from tabulate import tabulate

from benchmarks._dask import dask_cluster
from benchmarks._replayed_machine import VARIABLE
from mpsmith.audit.model.selection import Settings
from mpsmith.audit.running.cluster import scale
from mpsmith.audit.running.cluster.auditing import audit_on_cluster
from mpsmith.audit.running.cluster.scale import CoordinatorCost, RunWorkload
from mpsmith.audit.store.records import StoredGroup
from mpsmith.audit.store.store import Store
from mpsmith.simulator.opening import DeviceKind

# Of cases in all: with one worker it takes so long.
SECONDS = 40.0
PLANS = ((1, 1.0), (2, 1.0), (4, 1.0), (8, 1.0), (8, 2.0))
# Names of operators keep an audit from probing torch.mps.
SETTINGS = Settings(ops=("replayed",), device=DeviceKind.SIMULATED)


@dataclass(frozen=True)
class Replay:
    """Groups of a recorded run with the seconds and cases of each."""

    store: Path
    groups: list[StoredGroup]
    work: RunWorkload

    def faster(self, factor: float) -> "Replay":
        """The same groups in less time."""
        work = self.work
        return Replay(self.store, self.groups, RunWorkload([s / factor for s in work.seconds], work.cases, 0))

    def write(self, path: Path) -> None:
        """For the machines that replay it."""
        groups = [
            (group.id, (k.source, k.operator, k.variant, k.dtype, k.mode), seconds)
            for group, seconds in zip(self.groups, self.work.seconds, strict=True)
            for k in [group.key]
        ]
        path.write_text(json.dumps({"store": str(self.store.resolve()), "groups": groups}))


@dataclass(frozen=True)
class Measured:
    """One audit: its time and the coordinator's own processor time, both without the start."""

    seconds: float
    own_seconds: float
    cases: int


def main() -> None:
    replay, cost = replay_of(Path(sys.argv[1]))
    rows = []
    for workers, factor in PLANS:
        faster = replay.faster(factor)
        measured = measure(faster, workers)
        simulated = scale.simulate(faster.work, workers, cost)
        rate = measured.cases / measured.seconds
        rows.append(
            (
                workers if factor == 1 else f"{workers}, twice as fast",
                f"{measured.seconds:.1f} s",
                f"{simulated.seconds - scale.SECONDS_TO_START:.1f} s",
                f"{rate:,.0f}",
                f"{measured.own_seconds / measured.seconds:.1%}",
                f"{measured.own_seconds / measured.cases * 1e6:.1f} µs",
            )
        )
    head = ("workers", "measured", "simulated", "cases a second", "of a core for the coordinator", "a case")
    print(tabulate(rows, headers=head, tablefmt="github", disable_numparse=True))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << (10 if sys.platform == "linux" else 20))
    spent = f"{cost.batch * 1e3:.2f} ms a batch, {cost.group * 1e6:.0f} µs a group, {cost.case * 1e6:.1f} µs a case"
    print(f"of that, answers alone: {spent}")
    print(f"{sum(replay.work.cases):,} cases in {len(replay.groups):,} groups; peak of the coordinator {peak:.0f} MB")


def replay_of(path: Path) -> tuple[Replay, CoordinatorCost]:
    """Groups from all over the run that take SECONDS together, and what the coordinator is measured to spend."""
    with Store.open(path) as store:
        run = store.latest_run()
        work = scale.workload_of(store, run, 2)
        cost = scale.coordinator_cost(store, run)
        groups = store.groups(run.id)
    every = max(1, int(sum(work.seconds) / SECONDS))
    chosen = [number for number, group in enumerate(groups) if group.key.mode == "fallback"][::every]
    ends = accumulate(work.seconds[number] for number in chosen)
    chosen = [number for number, end in zip(chosen, ends, strict=True) if end <= SECONDS]
    strict = {group.key.label: number for number, group in enumerate(groups) if group.key.mode == "strict"}
    chosen += [strict[label] for number in chosen if (label := f"{groups[number].key.label}") in strict]
    return Replay(
        path,
        [groups[number] for number in chosen],
        RunWorkload([work.seconds[number] for number in chosen], [work.cases[number] for number in chosen], 0),
    ), cost


def measure(replay: Replay, workers: int) -> Measured:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "replay.json"
        options = ("--preload", "benchmarks._replayed_machine")
        with dask_cluster(folder, workers, *options, variables={VARIABLE: str(file)}) as address:
            nothing = Replay(replay.store, replay.groups[:1], RunWorkload([0.0], [0], 0))
            start, own_start = audited(nothing, file, address)
            seconds, own = audited(replay, file, address)
    return Measured(seconds - start, own - own_start, sum(replay.work.cases))


def audited(replay: Replay, file: Path, address: str) -> tuple[float, float]:
    """Seconds of an audit of this, and of processor time of this process in it."""
    replay.write(file)
    began, own_began = time.perf_counter(), time.process_time()
    path = file.with_name(f"{len(replay.groups)}.sqlite")
    audit_on_cluster(SETTINGS, path, address, resume=False, per_device=False, say=_say)
    with Store.open(path) as store:
        assert all(group.done for group in store.groups(1))
    return time.perf_counter() - began, time.process_time() - own_began


def _say(text: str) -> None:
    """The table goes to the standard output alone."""
    print(text, file=sys.stderr)


if __name__ == "__main__":
    main()
