"""What a Dask worker runs: functions of this module alone, by their names, with texts for arguments.

Each thread of a Dask worker has one message at a time, and a session for it: a process of this machine that stays from
one batch to the next. The functions raise nothing, so that no exception of ours travels pickled.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence

from ....errors import MpsmithError, one_line
from ..release_environment import python_with
from . import messages
from .errors import ClusterError
from .messages import AuditOptions, WorkerProblem

# What a session is started as; the folder for its rows follows.
COMMAND: Sequence[str] = ("-m", "mpsmith.audit.running.cluster.session")
# What a session may take to end when it is asked to.
SECONDS_TO_END = 10.0


class SessionProcess:
    """A session and the pipes to it.

    Args:
        options: of the audit it belongs to.
        place: a folder of this worker, in which it gets a folder of its own.
        python: the interpreter, and with it the torch.
    """

    def __init__(self, options: AuditOptions, place: str | None, python: str = sys.executable) -> None:
        self.options = options
        self._folder = tempfile.TemporaryDirectory(prefix="mpsmith-", dir=place, ignore_cleanup_errors=True)
        self._process = subprocess.Popen(
            [python, *COMMAND, self._folder.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is for the Dask worker, with which its sessions end
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._outbox, self._inbox = self._process.stdin, self._process.stdout

    def ask(self, text: str) -> str:
        """The answer to a message. Raises ClusterError when the session has ended, or ends of it."""
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
        """End the session and what it has started."""
        with contextlib.suppress(OSError):  # it has gone without reading all
            self._outbox.close()
        try:
            self._process.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self.kill()
        self._inbox.close()
        self._folder.cleanup()

    def kill(self) -> None:
        """End the session at once; who waits for its answer is told that it has ended."""
        self._process.kill()
        self._process.wait()


class _Sessions:
    """The sessions of this worker: those that wait for a message, and those that have one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[SessionProcess] = []
        self._busy: set[SessionProcess] = set()

    def take(self, options: AuditOptions, place: str | None) -> SessionProcess:
        """A session for a message of this audit; those of other audits that wait are ended."""
        with self._lock:
            others = [session for session in self._idle if session.options != options]
            self._idle = [session for session in self._idle if session.options == options]
            session = self._idle.pop() if self._idle else None
        for other in others:
            other.close()
        session = session or SessionProcess(options, place, _python(options))
        with self._lock:
            self._busy.add(session)
        return session

    def give_back(self, session: SessionProcess) -> None:
        """It waits for the next message."""
        with self._lock:
            self._busy.discard(session)
            self._idle.append(session)

    def discard(self, session: SessionProcess) -> None:
        """It answered with a problem, or not at all."""
        with self._lock:
            self._busy.discard(session)
        session.close()

    def end(self, audit: str) -> None:
        """End what belongs to an audit that is over."""
        with self._lock:
            idle = [session for session in self._idle if session.options.audit == audit]
            self._idle = [session for session in self._idle if session.options.audit != audit]
            busy = [session for session in self._busy if session.options.audit == audit]
        for session in busy:
            session.kill()
        for session in idle:
            session.close()


_sessions = _Sessions()


def perform(text: str) -> bytes:
    """Answer one message of a coordinator."""
    try:
        return messages.packed(_answer(text))
    except MpsmithError as error:
        problem = WorkerProblem(one_line(error))
    except Exception as error:
        problem = WorkerProblem(f"{type(error).__name__}: {one_line(error)}")
    return messages.packed(messages.as_text(problem))


def _answer(text: str) -> str:
    options = messages.message_in(text).options
    session = _sessions.take(options, _local_directory())
    try:
        answer = session.ask(text)
    except BaseException:
        session.kill()
        _sessions.discard(session)
        raise
    if messages.is_problem(answer):
        _sessions.discard(session)
    else:
        _sessions.give_back(session)
    return answer


def _python(options: AuditOptions) -> str:
    """The interpreter with the torch that an audit wants; an environment for it is made where there is none."""
    if options.release is None:
        return sys.executable
    return str(python_with(options.release, lambda text: print(text, file=sys.stderr, flush=True)))


async def end_sessions(audit: str) -> None:
    """The audit is over here: end its sessions, whatever they are at. It runs in Dask's loop, where nobody may wait."""
    threading.Thread(target=_sessions.end, args=(audit,), daemon=True).start()


def _local_directory() -> str | None:
    """The folder that the Dask worker was given for its files; None outside of one."""
    from distributed import get_worker

    try:
        return str(get_worker().local_directory)
    except ValueError:
        return None
