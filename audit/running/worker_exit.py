"""How a worker process died, in words that are the same whenever it dies of the same: no pids, addresses or times.

A worker's output goes to a log that is emptied when a case begins, so that the last words are those of the case.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pebble import ProcessExpired

from ..model import time_limit

LONGEST_WORDS = 300

# Parts that vary from run to run, and their replacements. The order matters: prefixes first.
_VARYING: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\x1b\[[0-9;]*[A-Za-z]"), ""),  # colours
    (re.compile(r"\[?\b[IWEF]\d{4,8} \d\d:\d\d:\d\d[.,\d]*(?: +\d+)?(?: [\w./+-]+:\d+\]?)?\]? *"), ""),  # glog, c10
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,\d]*(?:Z|[+-]\d\d:?\d\d)? *"), ""),  # timestamps
    (
        re.compile(r"==\d+== *|(?<=\w)\[\d+:\w+\](?= )|(?<=\w)\[\d{3,}\](?=: )"),
        "",
    ),  # pids as prefixes: sanitizers, NSLog
    (re.compile(r"\b0x[0-9a-fA-F]{5,}\b"), "0x…"),
    (re.compile(r"(?i)\b(pid|tid|process|thread)([ =:#]{1,2})\d+\b"), r"\1\2…"),
    (re.compile(r"\b(tmp|mpsmith-)[a-z0-9_]{8}\b"), r"\1…"),  # names of temporary files
)
# Lines that never tell of the end: what the dynamic linker's probes and torch's warnings say.
_IDLE_TALK = re.compile(r"USDT:|\[?[IW]\d{4,8} \d\d:|(?:.*: )?\w*Warning: ")


@dataclass(frozen=True)
class WorkerExit:
    """The end of a worker process: its signal or exit code and its last words in one line, or the time limit."""

    cause: str
    timed_out: bool = False

    def __str__(self) -> str:
        return self.cause


def exit_of(expired: ProcessExpired, scratch: Path) -> WorkerExit:
    """What ended a worker whose log is in `scratch`."""
    if time_limit.exceeded(expired.exitcode):
        return WorkerExit("time-out", timed_out=True)
    cause = signal.Signals(-expired.exitcode).name if expired.exitcode < 0 else f"exit code {expired.exitcode}"
    words = last_output(log_path(scratch, expired.pid))
    return WorkerExit(f"{cause}: {words}" if words else cause)


def last_output(log: Path) -> str:
    """What a dead worker printed last since its case began: often the assertion that ended it."""
    lines = log.read_text(errors="replace").split("\n") if log.exists() else []
    for line in reversed(lines):
        if not _IDLE_TALK.match(line.strip()) and (words := _unvarying(line)):
            return words[:LONGEST_WORDS]
    return ""


def _unvarying(line: str) -> str:
    for varying, stand_in in _VARYING:
        line = varying.sub(stand_in, line)
    return line.strip()


# ---- in the worker


def log_path(scratch: Path, pid: int | None) -> Path:
    """Where the worker with this process id puts what it prints."""
    return scratch / f"{pid}.log"


def capture_output(scratch: Path) -> None:
    """Let what this process prints, above all on its way down, go to its log."""
    global _listening
    descriptor = os.open(log_path(scratch, os.getpid()), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
    _listening = True


@contextmanager
def at_risk(seconds: float) -> Iterator[None]:
    """Around what may end this process: its last words count from here, and so does its limit of processor time."""
    begin(seconds)
    try:
        yield
    finally:
        time_limit.stop()


def begin(seconds: float) -> None:
    """The same without an end: the next one, or `time_limit.stop`, ends it."""
    _clear_output()
    time_limit.start(seconds)


def _clear_output() -> None:
    """Drop what was printed before this case. A process without a log keeps everything."""
    if _listening:
        sys.stdout.flush()
        _C.fflush(None)
        os.ftruncate(1, 0)


_listening = False
_C = ctypes.CDLL(None)
