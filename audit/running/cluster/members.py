"""The workers that take part in an audit: they have the coordinator's code and one kind of device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

from ....cache import fingerprint_of_code
from .connection import Connection
from .messages import AuditOptions, ClusterError, Introduce, Introduction, WorkerMessage, WorkerProblem, as_text

# The workers that are connected have so long to introduce themselves: each loads torch first.
SECONDS_TO_INTRODUCE = 300.0
SECONDS_BETWEEN_REFRESHES = 1.0
# The number of the message that asks a worker to introduce itself; batches have numbers from 1.
INTRODUCTION = 0

# The parts of a run's environment that decide its results; on a Mac also the system, which has many of the kernels.
DECISIVE = ("torch", "chip", "cpu", "simulated", "profile", "shipped", "variables")
# Their sources and data decide cases and verdicts.
CODE = ("audit", "kernels", "simulator")

Device = Mapping[str, str]


def code_fingerprint() -> str:
    """A fingerprint of the code that makes and judges cases on this machine."""
    return fingerprint_of_code(*CODE)


def device_of(environment: Mapping[str, Any]) -> dict[str, str]:
    """The kind of device of an environment: machines with equal ones may share a run."""
    names = DECISIVE if environment.get("simulated") else (*DECISIVE, "os")
    return {name: _text(environment.get(name)) for name in names}


def difference(device: Device, other: Device) -> str:
    """How the first kind of device differs from the other; "" if they are equal."""
    return "; ".join(
        f"{name} {device.get(name, 'none')}, not {other.get(name, 'none')}"
        for name in (*DECISIVE, "os")
        if device.get(name) != other.get(name)
    )


def _text(value: object) -> str:
    if not value and value is not False:
        return "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={part}" for name, part in sorted(value.items()))
    return str(value)


class Members:
    """The workers of a scheduler, and which of them take part in the audit.

    Args:
        connection: to the scheduler.
        options: of the audit.
        say: prints a line about a worker that is refused or has gone.
        device: the kind of device that takes part; None until `choose_device`.
    """

    def __init__(
        self, connection: Connection, options: AuditOptions, say: Callable[[str], None], device: Device | None = None
    ) -> None:
        self._connection = connection
        self._options = options
        self._say = say
        self._device = device
        self._threads: dict[str, int] = {}
        self._introduced: dict[str, dict[str, str] | None] = {}  # None: asked, but no answer yet
        self._refused: set[str] = set()
        self._refreshed = float("-inf")

    @property
    def threads(self) -> dict[str, int]:
        """The number of threads of each worker that takes part."""
        return {
            worker: self._threads[worker]
            for worker, device in self._introduced.items()
            if device is not None and device == self._device and worker not in self._refused
        }

    @property
    def silent(self) -> list[str]:
        """The workers that have not introduced themselves yet."""
        return sorted(set(self._silent()) - self._refused)

    def _silent(self) -> list[str]:
        return [worker for worker, device in self._introduced.items() if device is None]

    def refresh(self) -> None:
        """Ask the scheduler for its workers, at most once a second. Raises StoppedError if it does not answer."""
        if monotonic() - self._refreshed < SECONDS_BETWEEN_REFRESHES:
            return
        before = set(self.threads)
        self._threads = self._connection.workers()
        self._refreshed = monotonic()
        for worker in sorted(before - set(self._threads)):
            self._say(f"worker {worker} has gone; its groups go to other workers")
        self._refused &= set(self._threads)
        self._introduced = {worker: device for worker, device in self._introduced.items() if worker in self._threads}
        for worker in sorted(set(self._threads) - set(self._introduced)):
            self._introduced[worker] = None
            self._connection.send(worker, INTRODUCTION, as_text(WorkerMessage(self._options, Introduce())))

    def receive_introduction(self, worker: str, answer: object) -> None:
        """Accept or refuse a worker that introduced itself."""
        if isinstance(answer, WorkerProblem):
            self.refuse(worker, answer.reason)
        elif not isinstance(answer, Introduction):
            self._introduced.pop(worker, None)  # it is asked again
        elif answer.code != code_fingerprint():
            self.refuse(worker, "its mpsmith is not the one of this machine (install the same everywhere)")
        elif worker in self._introduced:
            device = self._introduced[worker] = device_of(answer.environment)
            self._refuse_other_device(worker, device)

    def refuse(self, worker: str, reason: str) -> None:
        """Give a worker nothing more to do."""
        if worker not in self._refused:
            self._refused.add(worker)
            self._say(f"worker {worker} is left out: {reason}")

    def choose_device(self) -> None:
        """Wait for the workers to introduce themselves and choose the kind of device that most of them have.

        Raises ClusterError if no worker can take part or if two kinds are equally common.
        """
        begin = monotonic()
        self.refresh()
        if not self._threads:
            address = self._connection.address
            raise ClusterError(f"the Dask scheduler at {address} has no worker (start one: dask worker {address})")
        while self.silent and monotonic() - begin < SECONDS_TO_INTRODUCE:
            for reply in self._connection.replies(0.5):
                self.receive_introduction(reply.worker, reply.answer)
            self.refresh()
        for worker in self.silent:
            self._say(f"worker {worker} does not introduce itself; it takes part when it does")
        introduced = [device for worker, device in self._introduced.items() if device and worker not in self._refused]
        if not introduced:
            raise ClusterError(f"no worker of {self._connection.address} can take part (see above)")
        if self._device is None:
            self._device = _most_common(introduced)
        for worker, device in self._introduced.items():
            if device is not None:
                self._refuse_other_device(worker, device)

    def _refuse_other_device(self, worker: str, device: Device) -> None:
        if self._device is not None and (differs := difference(device, self._device)):
            self.refuse(worker, f"it has {differs}")


def _most_common(devices: list[dict[str, str]]) -> Device:
    ranked = Counter(tuple(device.items()) for device in devices).most_common(2)
    if len(ranked) > 1 and ranked[0][1] == ranked[1][1]:
        differs = difference(dict(ranked[1][0]), dict(ranked[0][0]))
        raise ClusterError(f"the workers differ: some have {differs} (connect workers of one kind)")
    return dict(ranked[0][0])
