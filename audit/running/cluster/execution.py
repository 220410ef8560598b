"""Executes the groups of an audit on the workers of a cluster. Only the coordinator's store counts."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import TypeVar

from ...model.group import GroupKey
from ...store.records import ModuleRow, ModuleStatus, Run, StoredGroup
from ...store.store import Store
from ..isolated import size_of_batch
from ..progress import ProgressListener
from ..worker_tasks import AuditPlan
from .connection import Connection
from .members import INTRODUCTION, Members
from .messages import (
    AuditOptions,
    ClusterError,
    ExecuteBatch,
    Executed,
    GroupWork,
    MakePlan,
    ModuleProbed,
    Planned,
    ProbeModule,
    Request,
    StoppedError,
    WorkerMessage,
    WorkerProblem,
    as_text,
)

LARGEST_BATCH = 64
# A group whose worker ended so often is given up.
STRIKES = 3
# Batches that a worker has beyond its threads, so that no thread waits for the network.
AHEAD = 1
# An audit without any worker waits so long for one.
SECONDS_WITHOUT_WORKER = 60.0
SECONDS_BETWEEN_ROUNDS = 0.5

Batch = tuple[int, ...]
_Answer = TypeVar("_Answer")


class AnswerError(ClusterError):
    """A worker cannot do what it was asked for: it is left out, and other workers continue."""


class ClusterExecution:
    """The execution of one run on the workers of a scheduler.

    Args:
        store: receives the rows of each group at once.
        connection: to the scheduler.
        options: of the audit.
        members: the workers that take part.
    """

    def __init__(self, store: Store, connection: Connection, options: AuditOptions, members: Members) -> None:
        self._store = store
        self._connection = connection
        self._options = options
        self._members = members
        self._crashing: dict[str, None] = {}
        self._number = INTRODUCTION

    def plan(self) -> AuditPlan:
        """What there is to execute, as one of the workers found it."""
        plans: list[Planned] = []

        def take(_: Batch, answer: object) -> None:
            if isinstance(answer, WorkerProblem):  # every other worker would refuse the settings too
                raise ClusterError(answer.reason)
            plans.append(_expect(answer, Planned))

        self._distribute(["the plan"], lambda _: MakePlan(), take)
        (plan,) = plans
        return AuditPlan(list(plan.groups), plan.environment, plan.kernels)

    def probe_module(self, run: Run) -> None:
        """Probe torch.mps itself on one of the workers."""
        recorded = tuple(row.name for row in self._store.module_rows(run.id))

        def take(_: Batch, answer: object) -> None:
            for name, status, detail in _expect(answer, ModuleProbed).rows:
                self._store.add_module_row(run.id, ModuleRow(name, ModuleStatus(status), detail))

        self._distribute(["torch.mps"], lambda _: ProbeModule(recorded), take)

    def execute(
        self, groups: Sequence[StoredGroup], positions: Mapping[GroupKey, frozenset[int]], progress: ProgressListener
    ) -> None:
        """Execute groups on the workers. Each is done as soon as its rows are in the store."""

        def request(batch: Batch) -> Request:
            work = (GroupWork(groups[item].key, _sorted(positions.get(groups[item].key))) for item in batch)
            return ExecuteBatch(tuple(work), tuple(self._crashing))

        def take(batch: Batch, answer: object) -> None:
            executed = _expect(answer, Executed)
            requested = [groups[item] for item in batch]
            if [rows.key for rows in executed.groups] != [group.key for group in requested]:
                raise AnswerError("it answered for other groups than it was asked for")
            self._crashing |= dict.fromkeys(executed.crashing)
            rows_by_group = {group.id: rows for group, rows in zip(requested, executed.groups, strict=True)}
            for added in self._store.add_rows(list(rows_by_group.items())):
                progress.advance(rows_by_group[added].cases)

        self._distribute([group.key.label for group in groups], request, take)

    def _distribute(
        self, labels: Sequence[str], request: Callable[[Batch], Request], take: Callable[[Batch, object], None]
    ) -> None:
        """Let the workers answer requests for all items, whatever happens to single workers."""
        items = _Items(labels)
        alone_since: float | None = None
        while not items.done:
            self._members.refresh()
            threads = self._members.threads
            for number in items.held_by_others(threads):
                self._connection.cancel(number)
                items.failed(number)
            for worker, count in threads.items():
                while items.held(worker) < count + AHEAD and (batch := items.next_batch(sum(threads.values()))):
                    self._number += 1
                    items.sent[self._number] = (worker, batch)
                    message = WorkerMessage(self._options, request(batch))
                    self._connection.send(worker, self._number, as_text(message))
            alone_since = None if threads or self._members.silent else alone_since or monotonic()
            if alone_since is not None and monotonic() - alone_since >= SECONDS_WITHOUT_WORKER:
                raise StoppedError("the cluster has no worker left that can take part (see above)")
            self._receive(items, take)

    def _receive(self, items: _Items, take: Callable[[Batch, object], None]) -> None:
        for reply in self._connection.replies(SECONDS_BETWEEN_ROUNDS):
            if reply.number == INTRODUCTION:
                self._members.receive_introduction(reply.worker, reply.answer)
            elif reply.number in items.sent:  # else it was cancelled
                if reply.answer is None:
                    items.failed(reply.number)
                    continue
                try:
                    take(items.sent[reply.number][1], reply.answer)
                except AnswerError as error:
                    self._members.refuse(reply.worker, str(error))
                    items.failed(reply.number)
                else:
                    del items.sent[reply.number]


class _Items:
    """The items of one phase: those that wait, and those that a worker has.

    Attributes:
        sent: by the number of the message, the worker and its items.
    """

    def __init__(self, labels: Sequence[str]) -> None:
        self.sent: dict[int, tuple[str, Batch]] = {}
        self._labels = labels
        self._waiting = deque(range(len(labels)))
        self._strikes: Counter[int] = Counter()

    @property
    def done(self) -> bool:
        return not self._waiting and not self.sent

    def held(self, worker: str) -> int:
        """How many batches a worker has."""
        return sum(holder == worker for holder, _ in self.sent.values())

    def held_by_others(self, workers: Mapping[str, int]) -> list[int]:
        """The messages to workers that do not take part any more."""
        return [number for number, (worker, _) in self.sent.items() if worker not in workers]

    def next_batch(self, threads: int) -> Batch:
        """The next items for one of so many threads; a single one if its worker ended before."""
        if not self._waiting:
            return ()
        size = size_of_batch(len(self._waiting), threads, LARGEST_BATCH)
        count = 1 if self._strikes[self._waiting[0]] else size
        return tuple(self._waiting.popleft() for _ in range(count))

    def failed(self, number: int) -> None:
        """Let the items of a message wait again. Raises StoppedError if one of them failed too often."""
        _, batch = self.sent.pop(number)
        self._strikes.update(batch)
        for item in batch:
            if self._strikes[item] >= STRIKES:
                raise StoppedError(
                    f"{self._labels[item]}: {STRIKES} workers ended or gave up with it, so it is not tried again"
                )
        self._waiting.extendleft(reversed(batch))


def _expect(answer: object, kind: type[_Answer]) -> _Answer:
    if isinstance(answer, kind):
        return answer
    raise AnswerError(answer.reason if isinstance(answer, WorkerProblem) else "it answered another request")


def _sorted(positions: frozenset[int] | None) -> tuple[int, ...] | None:
    return None if positions is None else tuple(sorted(positions))
