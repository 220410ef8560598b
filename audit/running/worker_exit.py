"""The cause of the exit of a worker process, as text without pids, addresses and times: equal causes compare equal.

A worker's output goes to a log that is emptied when a case begins, so the last line is from that case.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pebble import ProcessExpired

from ..model import time_limit

LONGEST_OUTPUT = 300
# The exit code of a worker that ended itself because its real device computes no more.
DEVICE_LOST = 86

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
# Lines that never name the cause: from the dynamic linker's probes and torch's warnings.
_UNRELATED = re.compile(r"USDT:|\[?[IW]\d{4,8} \d\d:|(?:.*: )?\w*Warning: ")


@dataclass(frozen=True)
class WorkerExit:
    """The exit of a worker process: its signal or exit code and its last output in one line, or the time limit.

    `words`: only the last output.
    """

    cause: str
    timed_out: bool = False
    words: str = field(default="", compare=False)

    def __str__(self) -> str:
        return self.cause


def exit_of(expired: ProcessExpired, scratch: Path) -> WorkerExit:
    """The exit of a worker whose log is in `scratch`."""
    if time_limit.exceeded(expired.exitcode):
        return WorkerExit("time-out", timed_out=True)
    cause = signal.Signals(-expired.exitcode).name if expired.exitcode < 0 else f"exit code {expired.exitcode}"
    if expired.exitcode == DEVICE_LOST:
        cause = "the device computes nothing afterwards"
    words = last_output(log_path(scratch, expired.pid))
    return WorkerExit(f"{cause}: {words}" if words else cause, words=words)


def last_output(log: Path) -> str:
    """The last line that a worker printed in its case: often the assertion that ended it."""
    lines = log.read_text(errors="replace").split("\n") if log.exists() else []
    for line in reversed(lines):
        if not _UNRELATED.match(line.strip()) and (words := _without_varying_parts(line)):
            return words[:LONGEST_OUTPUT]
    return ""


def _without_varying_parts(line: str) -> str:
    for varying, stand_in in _VARYING:
        line = varying.sub(stand_in, line)
    return line.strip()


# ---- in the worker


def log_path(scratch: Path, pid: int | None) -> Path:
    """The log of the worker with this process id."""
    return scratch / f"{pid}.log"


def capture_output(scratch: Path) -> None:
    """Redirect the output of this process to its log, above all that of a crash."""
    global _has_log
    descriptor = os.open(log_path(scratch, os.getpid()), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
    _has_log = True


@contextmanager
def at_risk(seconds: float) -> Iterator[None]:
    """For code that may end this process: empty its log and limit its processor time."""
    begin(seconds)
    try:
        yield
    finally:
        time_limit.stop()


def begin(seconds: float) -> None:
    """As `at_risk`, for a case without a context: the next `begin` or `time_limit.stop` ends it."""
    _clear_output()
    time_limit.start(seconds)


def _clear_output() -> None:
    """Empty the log of this process. A process without a log keeps its output."""
    if _has_log:
        sys.stdout.flush()
        _C.fflush(None)
        os.ftruncate(1, 0)


_has_log = False
_C = ctypes.CDLL(None)
