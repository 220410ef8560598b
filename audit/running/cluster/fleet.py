"""The workers of a cluster that take part in a run: who is let in, who has gone, who cannot go on."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from time import monotonic

from ....errors import MpsmithError
from . import devices, messages
from .connection import Connection, Delivery, Inbox
from .messages import Answer, AuditOptions, Introduce, Introduction, Request, WorkerMessage, WorkerProblem

# How often the scheduler is asked who is there.
SECONDS_BETWEEN_LOOKS = 1.0
# Introductions are no batches: they have numbers of their own, below zero.
_INTRODUCTION = -1


@dataclass(frozen=True)
class Returned:
    """What came back for a batch: an answer, or None where there will be none."""

    number: int
    worker: str
    answer: Answer | None


class Fleet:
    """The workers that share one run.

    Args:
        connection: to the scheduler.
        options: of the audit.
        device: of the kind that takes part; None for none yet, where all that introduce themselves are to be seen.
        say: told of whoever is refused or has gone.
        introduced: workers that have said before what they are; all of them take part from the first batch on.
        others_take_part: whether other kinds of device have runs of their own, so that nothing is to be said of them.
    """

    def __init__(
        self,
        connection: Connection,
        options: AuditOptions,
        device: Mapping[str, str] | None,
        say: Callable[[str], None],
        *,
        introduced: Mapping[str, Introduction] | None = None,
        others_take_part: bool = False,
    ) -> None:
        self.options = options
        self.device = device
        self.introduced: dict[str, Introduction] = {}
        self._connection = connection
        self._say = say
        self._others_take_part = others_take_part
        self._inbox: Inbox = queue.SimpleQueue()
        self._threads: dict[str, int] = {}
        self._asked: set[str] = set()
        self._out_of_it: set[str] = set()
        self._looked = float("-inf")
        self._members: dict[str, int] | None = None  # until somebody comes or goes
        for worker, introduction in (introduced or {}).items():
            self._asked.add(worker)
            self._let_in(worker, introduction)

    @property
    def members(self) -> dict[str, int]:
        """The workers that take part, and how many threads each has."""
        if self._members is None:
            self._members = {
                worker: self._threads[worker]
                for worker in self.introduced
                if worker in self._threads and worker not in self._out_of_it
            }
        return self._members

    @property
    def silent(self) -> list[str]:
        """The workers that have not said yet what they are."""
        return sorted(self._asked & set(self._threads) - set(self.introduced) - self._out_of_it)

    @property
    def threads(self) -> int:
        """The threads of all members together."""
        return sum(self.members.values())

    def look(self) -> bool:
        """See who is there, unless that was just done; returns whether it did.

        Raises ClusterError where the scheduler is there no more.
        """
        if monotonic() - self._looked < SECONDS_BETWEEN_LOOKS:
            return False
        before = set(self.members)
        self._threads = self._connection.workers()
        self._looked = monotonic()
        for worker in sorted(set(self._threads) - self._asked):
            self._asked.add(worker)
            self.send(worker, _INTRODUCTION, Introduce())
        self._asked &= set(self._threads)
        self._out_of_it &= set(self._threads)
        for worker in sorted(before - set(self._threads)):
            self._say(f"worker {worker} has gone; what it was at goes to others")
        self.introduced = {worker: it for worker, it in self.introduced.items() if worker in self._threads}
        self._members = None
        return True

    def send(self, worker: str, number: int, request: Request) -> None:
        """Send a request to a worker; the answer is returned with this number, some time."""
        text = messages.as_text(WorkerMessage(self.options, request))
        self._connection.send(worker, number, text, self._inbox)

    def take_back(self, worker: str, number: int) -> None:
        """What a worker says to this is not wanted any more."""
        self._connection.take_back(worker, number)

    def returned(self, seconds: float) -> Iterator[Returned]:
        """What has come back, after waiting for the first of it for at most so long."""
        wait = True
        while True:
            try:
                delivery = self._inbox.get(timeout=seconds) if wait else self._inbox.get_nowait()
            except queue.Empty:
                return
            wait = False
            answer = self._opened(delivery)
            if delivery.number != _INTRODUCTION:
                yield Returned(delivery.number, delivery.worker, answer)
            elif isinstance(answer, Introduction):
                self._let_in(delivery.worker, answer)
            elif isinstance(answer, WorkerProblem):
                self.dismiss(delivery.worker, answer.reason)
            else:
                self._asked.discard(delivery.worker)  # it is asked again

    def dismiss(self, worker: str, reason: str) -> None:
        """A worker cannot take part, or not any more."""
        self._members = None
        if worker not in self._out_of_it:
            self._out_of_it.add(worker)
            self._say(f"worker {worker} is left out: {reason}")

    def _opened(self, delivery: Delivery) -> Answer | None:
        """The answer in a delivery; None where there is none. What is no answer is a problem."""
        if delivery.answer is None:
            return None
        try:
            answer: Answer = messages.answer_in(messages.unpacked(delivery.answer))
        except MpsmithError as error:
            return WorkerProblem(str(error))
        return answer

    def _let_in(self, worker: str, introduction: Introduction) -> None:
        self._members = None
        if introduction.code != devices.code():
            self.dismiss(worker, "its mpsmith is not the one of this machine (install the same everywhere)")
            return
        differs = devices.difference(devices.device_of(introduction.environment), self.device) if self.device else ""
        if not differs:
            self.introduced[worker] = introduction
        elif self._others_take_part:
            self._out_of_it.add(worker)
        else:
            self.dismiss(worker, f"it has {differs} (--per-device gives each kind of device its own run)")
