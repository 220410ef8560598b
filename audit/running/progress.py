"""Progress of long work: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

SECONDS_BETWEEN_LINES = 10.0
# Before this share of the groups is done, the time that is left cannot be said: workers start, and kernels compile.
FORESEEABLE = 0.1


class ProgressListener(Protocol):
    """Counts what has been executed."""

    def advance(self, cases: int, *, group_done: bool = True, crashed: bool = False) -> None:
        """Count executed cases, and a group when it is done."""


class AuditProgress:
    """Shows how many groups of cases are done, the rate of cases, and the time left.

    On a terminal it draws a bar, unless told that others print there too; elsewhere it prints a line now and then, so
    that a log stays readable.
    """

    def __init__(self, title: str, groups: int, stream: TextIO | None = None, *, alone: bool = True) -> None:
        self._title = title
        self._groups = groups
        self._done = 0
        self._cases = 0
        self._findings = 0
        self._printed = -1
        self._start = time.monotonic()
        self._last_line = self._start
        self._stream = stream or sys.stderr
        self._bar = _bar(self._stream) if alone and self._stream.isatty() else None
        self._task = None if self._bar is None else self._bar.add_task(title, total=groups, status="")

    def __enter__(self) -> AuditProgress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self._groups and self._printed != self._done:
            self._print_line()

    def advance(self, cases: int, *, group_done: bool = True, crashed: bool = False) -> None:
        """Count executed cases, and a group when it is done."""
        self._cases += cases
        self._done += int(group_done)
        self._findings += int(crashed)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done, status=self._status())
        elif time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._print_line()

    def _status(self) -> str:
        rate = self._cases / max(time.monotonic() - self._start, 1e-9)
        crashes = f", {self._findings} crashes" if self._findings else ""
        return f"{self._cases:,} cases, {rate:,.0f}/s{crashes}"

    def found(self, text: str) -> None:
        """Print a line about findings."""
        if self._bar is not None:
            self._bar.console.print(text, highlight=False)
        else:
            print(text, file=self._stream, flush=True)

    def _print_line(self) -> None:
        now = time.monotonic()
        foreseeable = FORESEEABLE * self._groups <= self._done < self._groups
        left = (now - self._start) / self._done * (self._groups - self._done) if foreseeable and self._done else None
        rest = "" if left is None else f", about {left:.0f} s left"
        line = f"{self._title}: {self._done}/{self._groups} groups, {self._status()}{rest}"
        print(line, file=self._stream, flush=True)
        self._last_line = now
        self._printed = self._done


def _bar(stream: TextIO) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[status]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(file=stream),
    )
