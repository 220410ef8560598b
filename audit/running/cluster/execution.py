"""Executes the groups of an audit on the workers of a cluster; the coordinator's store is the only one that counts."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from threading import Event
from time import monotonic

from ...model.group import GroupKey
from ...store.records import ModuleRow, ModuleStatus, Run, StoredGroup
from ...store.store import Store
from ..progress import ProgressListener
from ..worker import AuditPlan
from .assignments import STRIKES, Assignments, Batch
from .errors import AnswerError, ClusterError, StoppedError
from .fleet import Fleet, Returned
from .messages import (
    Answer,
    ExecuteBatch,
    Executed,
    GroupWork,
    MakePlan,
    ModuleProbed,
    Planned,
    ProbeModule,
    Request,
    WorkerProblem,
)

# What a worker does not come back with for so long, another one with nothing to do is given too.
PATIENCE = 60.0
# An audit without any worker goes on waiting for one so long.
SECONDS_ALONE = 60.0
# How often a thing is looked at that nobody tells of: who is late, and who has gone.
SECONDS_BETWEEN_ROUNDS = 0.5
# A worker has a batch for each of its threads, and so many more, so that none waits for the way there and back.
AHEAD = 1


class ClusterExecution:
    """The execution of one run on the members of a fleet.

    Args:
        store: where the rows go, each group's at once.
        fleet: the workers.
        stopped: set where another run of the same audit was stopped.
        patience: as in `Assignments`.
    """

    def __init__(self, store: Store, fleet: Fleet, stopped: Event, patience: float = PATIENCE) -> None:
        self._store = store
        self._fleet = fleet
        self._stopped = stopped
        self._patience = patience
        self._deadly: dict[str, None] = {}
        self._numbers = 0

    def plan(self) -> AuditPlan:
        """What there is to execute, as one of the workers found it."""
        found: list[Planned] = []

        def planned(_: Batch, answer: Answer) -> Sequence[int]:
            if isinstance(answer, WorkerProblem):  # what was asked for cannot be: it would be the same anywhere else
                raise ClusterError(answer.reason)
            if not isinstance(answer, Planned):
                raise AnswerError(_reason(answer))
            found.append(answer)
            return (0,)

        self._share_out(self._shared(["the plan"], lambda _: MakePlan(), planned))
        return AuditPlan(list(found[0].groups), found[0].environment, found[0].kernels)

    def probe_module(self, run: Run) -> None:
        """Let one of the workers probe torch.mps itself."""
        recorded = tuple(row.name for row in self._store.module_rows(run.id))

        def probed(_: Batch, answer: Answer) -> Sequence[int]:
            if not isinstance(answer, ModuleProbed):
                raise AnswerError(_reason(answer))
            for name, status, detail in answer.rows:
                self._store.add_module_row(run.id, ModuleRow(name, ModuleStatus(status), detail))
            return (0,)

        self._share_out(self._shared(["torch.mps"], lambda _: ProbeModule(self._device, recorded), probed))

    def execute(
        self, groups: Sequence[StoredGroup], positions: Mapping[GroupKey, frozenset[int]], progress: ProgressListener
    ) -> None:
        """Execute groups on the workers; each is in the store, and done, as soon as its rows are here."""

        def request(batch: Batch) -> Request:
            keys = (groups[item].key for item in batch.items)
            work = tuple(GroupWork.of(key, positions.get(key)) for key in keys)
            return ExecuteBatch(work, self._device, tuple(self._deadly))

        def executed(batch: Batch, answer: Answer) -> Sequence[int]:
            if not isinstance(answer, Executed):
                raise AnswerError(_reason(answer))
            asked = [groups[item] for item in batch.items]
            if [rows.key for rows in answer.groups] != [group.key for group in asked]:
                raise AnswerError("it answered for other groups than it was asked for")
            self._deadly |= dict.fromkeys(answer.deadly)
            by_number = [(group.id, rows) for group, rows in zip(asked, answer.groups, strict=True)]
            added = set(self._store.add_rows(by_number))
            for number, rows in by_number:
                if number in added:
                    progress.advance(rows.cases)
            return batch.items

        self._share_out(self._shared([group.key.label for group in groups], request, executed))

    def _shared(
        self,
        labels: Sequence[str],
        request: Callable[[Batch], Request],
        take: Callable[[Batch, Answer], Sequence[int]],
    ) -> _Shared:
        return _Shared(self._fleet, labels, self._patience, request, take)

    @property
    def _device(self) -> dict[str, str]:
        assert self._fleet.device is not None
        return dict(self._fleet.device)

    def _share_out(self, shared: _Shared) -> None:
        """Get everything done, whatever becomes of single workers."""
        fleet = self._fleet
        alone_since = None
        while not shared.work.done:
            if self._stopped.is_set():
                raise KeyboardInterrupt
            if fleet.look():
                shared.give_up_all_but(fleet.members)
                for worker in fleet.members:
                    self._hand_out(shared, worker)
                alone_since = None if fleet.members or fleet.silent else alone_since or monotonic()
                if alone_since is not None and monotonic() - alone_since >= SECONDS_ALONE:
                    raise StoppedError("the cluster has no worker left that can take part (see above)")
            for returned in fleet.returned(SECONDS_BETWEEN_ROUNDS):
                shared.receive(returned)
                self._hand_out(shared, returned.worker)
        shared.give_up_all_but({})

    def _hand_out(self, shared: _Shared, worker: str) -> None:
        """Give a worker something to do, if it has room and there is something for it."""
        for _ in range(self._fleet.members.get(worker, -AHEAD) + AHEAD - shared.work.held_by(worker)):
            batch = shared.work.next_batch(worker, self._fleet.threads, monotonic())
            if batch is None:
                return
            self._numbers += 1
            shared.send(self._numbers, batch)


class _Shared:
    """Items that are shared out among the members of a fleet.

    Args:
        fleet: the workers.
        labels: of the items, for people.
        patience: as in `Assignments`.
        request: what is asked for a batch of items.
        take: records the answer to a batch, and returns the items that are done with it.
    """

    def __init__(
        self,
        fleet: Fleet,
        labels: Sequence[str],
        patience: float,
        request: Callable[[Batch], Request],
        take: Callable[[Batch, Answer], Sequence[int]],
    ) -> None:
        self.work = Assignments(range(len(labels)), patience)
        self._fleet = fleet
        self._labels = labels
        self._request = request
        self._take = take
        # By the number of the message: a late answer to an earlier phase must not be taken for one to this.
        self._sent: dict[int, Batch] = {}

    def send(self, number: int, batch: Batch) -> None:
        """Send a batch to its worker, in the message with this number."""
        self._sent[number] = batch
        self._fleet.send(batch.worker, number, self._request(batch))

    def receive(self, returned: Returned) -> None:
        """Take the answer to a message; where it is none, others get its batch."""
        batch = self._sent.get(returned.number)
        if batch is None:
            return  # it was given up, or belongs to an earlier phase
        answer = returned.answer
        if answer is not None:
            try:
                done = self._take(batch, answer)
            except AnswerError as error:
                self._fleet.dismiss(returned.worker, str(error))
            else:
                del self._sent[returned.number]
                self.work.answered(batch.number, done, answer.seconds if isinstance(answer, Executed) else 0.0)
                return
        self._give_up(returned.number)

    def give_up_all_but(self, workers: Container[str]) -> None:
        """What all other workers have will not come back, or is not wanted any more."""
        for number in [number for number, batch in self._sent.items() if batch.worker not in workers]:
            self._give_up(number)

    def _give_up(self, number: int) -> None:
        """A batch will not come back. Raises ClusterError where the same was given up too often."""
        batch = self._sent.pop(number)
        self._fleet.take_back(batch.worker, number)
        if hopeless := self.work.failed(batch.number):
            label = self._labels[hopeless[0]]
            raise StoppedError(f"{label}: {STRIKES} workers ended or gave up with it, so it is not tried again")


def _reason(answer: Answer) -> str:
    return answer.reason if isinstance(answer, WorkerProblem) else "it answered something else than it was asked for"
