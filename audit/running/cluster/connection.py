"""The line to a Dask scheduler: who is there, and messages to them. Nothing else here knows Dask.

Each message goes to one worker that the coordinator chose, as a task that no other worker may take. What is decided
by text and text alone: an exception or an object that travelled pickled is not looked at.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import queue
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from ....errors import one_line
from . import tasks
from .errors import ClusterError, StoppedError

try:
    from distributed import Client, Future
    from distributed.comm.core import FatalCommClosedError
    from distributed.security import Security
except ModuleNotFoundError as missing:
    raise ClusterError("audits on a cluster need Dask distributed: pip install 'mpsmith[cluster]'") from missing

Result = TypeVar("Result")

# How long the scheduler may take to say who is there.
SCHEDULER_SECONDS = 30.0
SECONDS_TO_SAY_GOODBYE = 3.0
_NO_ANSWER = (TimeoutError, asyncio.TimeoutError, concurrent.futures.TimeoutError, concurrent.futures.CancelledError)


@dataclass(frozen=True)
class Delivery:
    """What came back from a worker for a message with this number: its packed answer, or why there is none."""

    worker: str
    number: int
    answer: bytes | None
    lost: str = ""


Inbox = queue.SimpleQueue[Delivery]


class Connection:
    """A connection to the scheduler at `address`, with the certificates and keys that Dask's configuration names.

    Raises ClusterError where there is none, or where it does not let this machine in.
    """

    def __init__(self, address: str, timeout: float = SCHEDULER_SECONDS) -> None:
        self.address = address
        self._timeout = timeout
        if address.startswith("tls"):
            _require_certificate(address)
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what is lost is told by this room
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
        self._sent: dict[tuple[str, int], Future] = {}

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._client.close(timeout=2)

    def workers(self) -> dict[str, int]:
        """The workers that the scheduler has, and their threads. Raises ClusterError where it is there no more."""
        if self._client.status != "running":
            raise StoppedError(f"the Dask scheduler at {self.address} is gone")
        try:
            return self._awaited(self._threads(), self._timeout)
        except (OSError, *_NO_ANSWER) as error:
            raise StoppedError(f"the Dask scheduler at {self.address} does not answer any more") from error

    async def _threads(self) -> dict[str, int]:
        threads: dict[str, int] = await self._client.nthreads()
        return threads

    def send(self, worker: str, number: int, text: str, inbox: Inbox) -> None:
        """Let a worker answer a message; what comes back goes to `inbox`, with this number."""
        asyncio.run_coroutine_threadsafe(self._deliver(worker, number, text, inbox), self._loop)

    async def _deliver(self, worker: str, number: int, text: str, inbox: Inbox) -> None:
        try:
            future = self._client.submit(
                tasks.perform, text, workers=[worker], allow_other_workers=False, pure=False, retries=0
            )
            self._sent[worker, number] = future
            answer = await future
        except (Exception, asyncio.CancelledError) as error:
            inbox.put(Delivery(worker, number, None, one_line(error)))
        else:
            inbox.put(Delivery(worker, number, answer if isinstance(answer, bytes) else b""))
        finally:
            self._sent.pop((worker, number), None)

    def take_back(self, worker: str, number: int) -> None:
        """Nobody waits for this answer any more; a worker that has not begun does not begin."""
        if (future := self._sent.get((worker, number))) is not None:
            asyncio.run_coroutine_threadsafe(self._cancel(future), self._loop)

    async def _cancel(self, future: Future) -> None:
        await self._client.cancel([future], force=True)

    def end_sessions(self, audit: str) -> None:
        """Let every worker end what belongs to an audit; those that do not hear it end it by themselves."""
        with contextlib.suppress(OSError, *_NO_ANSWER):
            self._awaited(self._end_sessions(audit), SECONDS_TO_SAY_GOODBYE)

    async def _end_sessions(self, audit: str) -> None:
        await self._client.run(tasks.end_sessions, audit, wait=False, on_error="ignore")

    def _awaited(self, coroutine: Coroutine[Any, Any, Result], seconds: float) -> Result:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(seconds)


def _require_certificate(address: str) -> None:
    """Raise ClusterError where Dask's configuration has no certificate to show at an encrypted address."""
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
