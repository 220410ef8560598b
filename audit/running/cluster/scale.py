"""How an audit grows with workers, cases and releases: simulated with the measured times of a real run's groups.

    python -m mpsmith.audit.running.cluster.scale STORE [--workers 2]

What is simulated are the workers and the time. Which worker gets what is decided by the coordinator's own rules
(assignments.py), a group takes what it took in the run of STORE, and what the coordinator spends on a batch is
measured here, with that run's rows. Dask's scheduler and the network are a constant delay: at the largest numbers of
workers that is an assumption, not a measurement.
"""

from __future__ import annotations

import argparse
import heapq
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from time import process_time

from tabulate import tabulate

from ...store.records import Run, StoredGroup
from ...store.store import Store
from . import messages
from .assignments import BATCH_SECONDS, Assignments
from .messages import Executed

WORKERS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)
# From a coordinator to a worker and back, beside what both do: Dask's scheduler, the network.
SECONDS_THERE_AND_BACK = 0.02
# A process that loads torch, the device and the test samples.
SECONDS_TO_START = 10.0
PATIENCE = 60.0
SAMPLED_GROUPS = 2000
AHEAD = 1
YEAR = 365
RELEASES, MACS = 5, 10


@dataclass(frozen=True)
class RunWorkload:
    """The groups of one run: how long each takes in a process, how many cases each has; and bytes of its store."""

    seconds: Sequence[float]
    cases: Sequence[int]
    bytes_stored: int

    def times(self, releases: int) -> RunWorkload:
        """The same for so many releases, or for an audit that is so many times as large."""
        return RunWorkload(list(self.seconds) * releases, list(self.cases) * releases, self.bytes_stored * releases)


@dataclass(frozen=True)
class CoordinatorCost:
    """Seconds of processor time that the coordinator spends on a batch, on a group and on a case."""

    batch: float
    group: float
    case: float


@dataclass(frozen=True)
class Simulated:
    """One simulated audit."""

    workers: int
    seconds: float
    coordinator_seconds: float
    batches: int
    cases: int

    @property
    def cases_per_second(self) -> float:
        """The throughput of the whole cluster."""
        return self.cases / self.seconds

    @property
    def coordinator_share(self) -> float:
        """How much of a core the coordinator is busy."""
        return self.coordinator_seconds / self.seconds


def workload_of(store: Store, run: Run, workers: int) -> RunWorkload:
    """What the groups of a finished run took.

    The seconds of cases are those of their calls alone. What the run took beside them, making samples and writing rows,
    is shared out by group.
    """
    seconds: dict[object, float] = {group.key: 0.0 for group in store.groups(run.id)}
    cases = dict.fromkeys(seconds, 0)
    for count in store.case_counts(run.id):
        seconds[count.group] += count.seconds
        cases[count.group] += count.cases
    assert run.finished is not None
    wall = (datetime.fromisoformat(run.finished) - datetime.fromisoformat(run.started)).total_seconds()
    beside = max(0.0, wall * workers - sum(seconds.values())) / len(seconds)
    return RunWorkload([each + beside for each in seconds.values()], list(cases.values()), store.path.stat().st_size)


def coordinator_cost(store: Store, run: Run) -> CoordinatorCost:
    """Measured: taking answers with rows of this run apart and storing them, in batches of one and of many groups."""
    groups = store.groups(run.id)
    sample = groups[:: max(1, len(groups) // SAMPLED_GROUPS)]
    single, many = _seconds_to_take(store, sample, 1), _seconds_to_take(store, sample, 100)
    rows = sum(store_rows.cases for store_rows in store.rows_of(sample))
    batches = len(sample) - len(sample) / 100
    batch = max(0.0, (single - many) / batches)
    rest = max(0.0, many - batch * len(sample) / 100)
    # A group's own rows (called_overloads, what it covers) cost about as much as two cases.
    case = rest / (rows + 2 * len(sample))
    return CoordinatorCost(batch, 2 * case, case)


def _seconds_to_take(store: Store, groups: Sequence[StoredGroup], size: int) -> float:
    with tempfile.TemporaryDirectory() as folder, Store.create(Path(folder) / "taken.sqlite") as taken:
        run = taken.begin_run({}, {"simulated": True})
        taken.plan(run.id, [group.key for group in groups])
        numbers = {group.key: group.id for group in taken.groups(run.id)}
        answers = [
            messages.packed(messages.as_text(Executed(tuple(store.rows_of(groups[at : at + size])), 1.0)))
            for at in range(0, len(groups), size)
        ]
        begun = process_time()
        for packed in answers:
            answer = messages.answer_in(messages.unpacked(packed))
            assert isinstance(answer, Executed)
            taken.add_rows([(numbers[rows.key], rows) for rows in answer.groups])
        return process_time() - begun


def simulate(work: RunWorkload, workers: int, cost: CoordinatorCost) -> Simulated:
    """One audit on so many workers of a thread each, in simulated time."""
    shared = Assignments(range(len(work.seconds)), PATIENCE)
    names = [f"w{number}" for number in range(workers)]
    free = dict.fromkeys(names, SECONDS_TO_START)  # when a worker has nothing to do any more
    coordinator = busy = SECONDS_TO_START
    spent, batches = 0.0, 0
    back: list[tuple[float, int, str, tuple[int, ...], float]] = []

    def hand_out(worker: str, now: float) -> None:
        nonlocal batches
        while shared.held_by(worker) <= AHEAD:
            batch = shared.next_batch(worker, workers, now)
            if batch is None:
                return
            batches += 1
            took = sum(work.seconds[item] for item in batch.items)
            begun = max(free[worker], now + SECONDS_THERE_AND_BACK / 2)
            free[worker] = begun + took
            heapq.heappush(back, (free[worker] + SECONDS_THERE_AND_BACK / 2, batch.number, worker, batch.items, took))

    for name in names:
        hand_out(name, SECONDS_TO_START)
    while not shared.done:
        arrived, number, worker, items, took = heapq.heappop(back)
        needed = cost.batch + cost.group * len(items) + cost.case * sum(work.cases[item] for item in items)
        coordinator = max(coordinator, arrived) + needed  # one answer after the other
        spent += needed
        shared.answered(number, items, took)
        hand_out(worker, coordinator)
        busy = coordinator
    return Simulated(workers, busy, spent, batches, sum(work.cases))


def table(simulated: Sequence[Simulated]) -> str:
    """The simulated audits as a table of Markdown."""
    first = simulated[0]
    rows = [
        (
            each.workers,
            _duration(each.seconds),
            f"{each.cases_per_second:,.0f}",
            f"{first.seconds / each.seconds / each.workers * first.workers:.0%}",
            f"{each.coordinator_share:.1%}",
            each.batches,
        )
        for each in simulated
    ]
    head = ("threads", "one audit takes", "cases a second", "of linear", "of a core for the coordinator", "batches")
    return tabulate(rows, headers=head, tablefmt="github", disable_numparse=True, colalign=("right",) * len(head))


def yearly(work: RunWorkload, night: Simulated) -> str:
    """What nightly audits of some releases on some Macs come to in a year."""
    audits = YEAR * RELEASES * MACS
    hours = sum(work.seconds) * audits / 3600
    stored = work.bytes_stored * audits / 1e9
    return (
        f"A year of nightly audits of {RELEASES} releases on {MACS} machines, each release on each machine:"
        f" {audits:,} audits, {hours:,.0f} hours of one thread ({hours / YEAR / MACS:.1f} a night and machine),"
        f" {stored:,.0f} GB of stores."
        f" Where the {MACS} machines are alike and share each release's audit: {YEAR * RELEASES:,} audits,"
        f" {night.seconds / 60 * RELEASES:,.0f} minutes a night with 8 threads in all, {stored / MACS:,.0f} GB."
    )


def saturation(cost: CoordinatorCost, work: RunWorkload) -> float:
    """How many cases a second keep the coordinator busy all the time, in batches of the usual size."""
    cases = sum(work.cases)
    batches = sum(work.seconds) / BATCH_SECONDS
    return cases / (cost.batch * batches + cost.group * len(work.cases) + cost.case * cases)


def _duration(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 7200 else f"{seconds / 60:.1f} min"


def report(path: Path, workers: int, times: int = 1) -> str:
    """All that this module finds out, as Markdown; of an audit that has the groups of the store so many times."""
    with Store.open(path) as store:
        run = store.latest_run()
        work = workload_of(store, run, workers).times(times)
        cost = coordinator_cost(store, run)
    audits = [simulate(work, number, cost) for number in WORKERS]
    large = work.times(RELEASES)
    many = [simulate(large, number, cost) for number in WORKERS[-3:]]
    night = next(each for each in audits if each.workers == 8)
    return "\n".join(
        (
            f"The run: {sum(work.cases):,} cases in {len(work.cases):,} groups, {sum(work.seconds) / 3600:.2f} hours"
            f" of one thread, {work.bytes_stored / 1e6:.0f} MB. The coordinator was measured to take"
            f" {cost.batch * 1e3:.2f} ms for a batch, {cost.group * 1e6:.0f} µs for a group and"
            f" {cost.case * 1e6:.0f} µs for a case.",
            "",
            table(audits),
            "",
            f"{RELEASES} releases at once:",
            "",
            table(many),
            "",
            f"The coordinator is busy all the time at {saturation(cost, work):,.0f} cases a second: more workers do not"
            " help then.",
            "",
            yearly(work, night),
            "",
        )
    )


def main() -> None:
    """Print the report, or write it."""
    parser = argparse.ArgumentParser(
        prog="python -m mpsmith.audit.running.cluster.scale", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("store", type=Path, help="a store with a finished run of all groups")
    parser.add_argument("--workers", type=int, default=2, help="the worker processes that this run had")
    parser.add_argument("--times", type=int, default=1, help="simulate an audit that is so many times as large")
    chosen = parser.parse_args()
    print(report(chosen.store, chosen.workers, chosen.times))


if __name__ == "__main__":
    main()
