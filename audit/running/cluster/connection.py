"""The connection to a Dask scheduler: its workers, and messages to them. Only this module and `tasks` import Dask.

Each message goes to one worker that the coordinator chose, as a task that no other worker may take. Only texts count:
an exception that arrives pickled is shown, and nothing depends on it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import queue
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from ....errors import MpsmithError, one_line
from . import tasks
from .messages import Answer, ClusterError, StoppedError, WorkerProblem, read_answer

try:
    from distributed import Client, Future
    from distributed.comm.core import FatalCommClosedError
    from distributed.security import Security
except ModuleNotFoundError as missing:
    raise ClusterError("audits on a cluster need Dask distributed: pip install 'mpsmith[cluster]'") from missing

Result = TypeVar("Result")

# How long the scheduler may take to list its workers.
SCHEDULER_SECONDS = 30.0
SECONDS_TO_END_SESSIONS = 3.0
_NO_ANSWER = (TimeoutError, asyncio.TimeoutError, concurrent.futures.TimeoutError, concurrent.futures.CancelledError)


@dataclass(frozen=True)
class Reply:
    """The answer of a worker to a message with this number; None if the worker will not answer."""

    worker: str
    number: int
    answer: Answer | None


class Connection:
    """A connection to the scheduler at `address`, with the certificates that Dask's configuration names.

    Raises ClusterError if there is no scheduler, or if it refuses this machine.
    """

    def __init__(self, address: str, timeout: float = SCHEDULER_SECONDS) -> None:
        self.address = address
        self._timeout = timeout
        if address.startswith("tls"):
            _require_certificate(address)
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # `Members` reports lost workers
        try:
            self._client = Client(address, timeout=timeout, set_as_default=False, name="mpsmith")
        except FatalCommClosedError as error:
            raise ClusterError(
                f"{address}: {one_line(error)} (docs/cluster.md says how certificates are made)"
            ) from error
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            raise ClusterError(
                f"no Dask scheduler at {address}: {one_line(error)} (start one with `dask scheduler`)"
            ) from error
        self._loop: asyncio.AbstractEventLoop = self._client.loop.asyncio_loop
        self._sent: dict[int, Future] = {}
        self._replies: queue.SimpleQueue[tuple[str, int, str | None]] = queue.SimpleQueue()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._client.close(timeout=2)

    def workers(self) -> dict[str, int]:
        """The scheduler's workers and their threads. Raises StoppedError if the scheduler is gone."""
        if self._client.status != "running":
            raise StoppedError(f"the Dask scheduler at {self.address} is gone")
        try:
            return self._await(self._threads(), self._timeout)
        except (OSError, *_NO_ANSWER) as error:
            raise StoppedError(f"the Dask scheduler at {self.address} does not answer any more") from error

    async def _threads(self) -> dict[str, int]:
        threads: dict[str, int] = await self._client.nthreads()
        return threads

    def send(self, worker: str, number: int, text: str) -> None:
        """Send a message to a worker; `replies` returns the answer with this number."""
        asyncio.run_coroutine_threadsafe(self._deliver(worker, number, text), self._loop)

    async def _deliver(self, worker: str, number: int, text: str) -> None:
        answer: object = None
        try:
            future = self._client.submit(
                tasks.perform, text, workers=[worker], allow_other_workers=False, pure=False, retries=0
            )
            if number:
                self._sent[number] = future
            answer = await future
        except (Exception, asyncio.CancelledError):  # the worker is gone, or the message was cancelled
            answer = None
        finally:
            self._sent.pop(number, None)
            self._replies.put((worker, number, answer if isinstance(answer, str) else None))

    def replies(self, seconds: float) -> Iterator[Reply]:
        """All answers that have arrived; waits at most so long for the first."""
        with contextlib.suppress(queue.Empty):
            worker, number, text = self._replies.get(timeout=seconds)
            while True:
                yield Reply(worker, number, _answer(text))
                worker, number, text = self._replies.get_nowait()

    def cancel(self, number: int) -> None:
        """Drop a message; a worker that has not begun with it does not begin."""
        if (future := self._sent.get(number)) is not None:
            asyncio.run_coroutine_threadsafe(self._cancel(future), self._loop)

    async def _cancel(self, future: Future) -> None:
        await self._client.cancel([future], force=True)

    def end_sessions(self, audit: str) -> None:
        """End the sessions of an audit on every worker; those that cannot be reached end after a while."""
        with contextlib.suppress(OSError, *_NO_ANSWER):
            self._await(self._end_sessions(audit), SECONDS_TO_END_SESSIONS)

    async def _end_sessions(self, audit: str) -> None:
        await self._client.run(tasks.end_sessions, audit, wait=False, on_error="ignore")

    def _await(self, coroutine: Coroutine[Any, Any, Result], seconds: float) -> Result:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(seconds)


def _answer(text: str | None) -> Answer | None:
    try:
        return None if text is None else read_answer(text)
    except MpsmithError as error:
        return WorkerProblem(str(error))


def _require_certificate(address: str) -> None:
    """Raise ClusterError if Dask's configuration has no usable certificate for an encrypted address."""
    configured = Security()
    try:
        context = configured.get_connection_args("client")["ssl_context"]
    except OSError as error:  # ssl does not say which of the files it could not read or use
        named = (configured.tls_ca_file, configured.tls_client_cert, configured.tls_client_key)
        files = ", ".join(str(path) for path in named if path)
        raise ClusterError(
            f"{address}: a file of the certificate that Dask's configuration names cannot be used: {one_line(error)}"
            f" (of {files}; docs/cluster.md says how they are made)"
        ) from error
    if context is None:
        raise ClusterError(f"{address}: Dask's configuration names no certificate to show (docs/cluster.md says how)")
