"""The functions that a Dask worker runs, by their names, with texts for arguments.

Each thread of a Dask worker answers one message at a time, through a session: a process that stays from one batch to
the next. The functions raise nothing, so that no exception of ours travels pickled.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence

from ....errors import MpsmithError, one_line
from .messages import AuditOptions, ClusterError, WorkerProblem, as_text, is_problem, read_message

# The command of a session; the folder for its rows follows.
COMMAND: Sequence[str] = ("-m", "mpsmith.audit.running.cluster.session")
SECONDS_TO_END = 10.0


class SessionProcess:
    """A session and the pipes to it.

    Args:
        options: of its audit.
        parent_folder: a folder of this worker, in which it gets a separate folder.
    """

    def __init__(self, options: AuditOptions, parent_folder: str | None) -> None:
        self.options = options
        self._folder = tempfile.TemporaryDirectory(prefix="mpsmith-", dir=parent_folder, ignore_cleanup_errors=True)
        self._process = subprocess.Popen(
            [sys.executable, *COMMAND, self._folder.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is for the Dask worker, which ends its sessions
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._outbox, self._inbox = self._process.stdin, self._process.stdout

    def ask(self, text: str) -> str:
        """The answer to a message. Raises ClusterError if the session has ended or ends now."""
        try:
            self._outbox.write(text + "\n")
            self._outbox.flush()
            answer = self._inbox.readline()
        except OSError as error:
            raise ClusterError(f"the session has ended: {error}") from error
        if not answer.endswith("\n"):
            raise ClusterError(f"the session has ended (exit code {self._process.wait()}): see the worker's log")
        return answer

    def close(self) -> None:
        """End the session and its processes."""
        with contextlib.suppress(OSError):  # the session ended before it read everything
            self._outbox.close()
        try:
            self._process.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self.kill()
        self._inbox.close()
        self._folder.cleanup()

    def kill(self) -> None:
        """End the session at once; `ask` then raises in the thread that waits for an answer."""
        self._process.kill()
        self._process.wait()


class _Sessions:
    """The sessions of this worker: idle ones, and busy ones that answer a message."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[SessionProcess] = []
        self._busy: set[SessionProcess] = set()

    def take(self, options: AuditOptions) -> SessionProcess:
        """A session for a message of this audit; idle sessions of other audits are ended."""
        with self._lock:
            others = [session for session in self._idle if session.options != options]
            self._idle = [session for session in self._idle if session.options == options]
            session = self._idle.pop() if self._idle else None
        for other in others:
            other.close()
        session = session or SessionProcess(options, _local_directory())
        with self._lock:
            self._busy.add(session)
        return session

    def release(self, session: SessionProcess) -> None:
        """Keep a session for the next message."""
        with self._lock:
            self._busy.discard(session)
            self._idle.append(session)

    def discard(self, session: SessionProcess) -> None:
        """End a session after a failed request."""
        with self._lock:
            self._busy.discard(session)
        session.close()

    def end(self, audit: str) -> None:
        """End all sessions of an audit."""
        with self._lock:
            idle = [session for session in self._idle if session.options.audit == audit]
            self._idle = [session for session in self._idle if session.options.audit != audit]
            busy = [session for session in self._busy if session.options.audit == audit]
        for session in busy:
            session.kill()
        for session in idle:
            session.close()


_sessions = _Sessions()


def perform(text: str) -> str:
    """Answer one message of a coordinator."""
    try:
        return _answer(text)
    except MpsmithError as error:
        return as_text(WorkerProblem(one_line(error)))
    except Exception as error:
        return as_text(WorkerProblem(f"{type(error).__name__}: {one_line(error)}"))


def _answer(text: str) -> str:
    session = _sessions.take(read_message(text).options)
    try:
        answer = session.ask(text)
    except BaseException:
        session.kill()
        _sessions.discard(session)
        raise
    if is_problem(answer):
        _sessions.discard(session)
    else:
        _sessions.release(session)
    return answer


async def end_sessions(audit: str) -> None:
    """End the sessions of an audit, in a thread: this coroutine runs in Dask's loop and must not wait."""
    threading.Thread(target=_sessions.end, args=(audit,), daemon=True).start()


def _local_directory() -> str | None:
    """The folder that the Dask worker has for its files; None outside a worker."""
    from distributed import get_worker

    try:
        return str(get_worker().local_directory)
    except ValueError:
        return None
