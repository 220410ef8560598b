"""Progress of long work: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from itertools import accumulate
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

SECONDS_BETWEEN_LINES = 10.0
# Before this share of the work is done, the time that is left cannot be said: workers start, and kernels compile.
FORESEEABLE = 0.1
# The time of strict mode, and of registry and report after it, as shares of the time of the cases before: measured in
# two whole audits.
STRICT_SHARE, REPORT_SHARE = 0.024, 0.031


# What a group of a source takes on average, in ms of one core, in an audit of all operators with shipped kernels:
# midway between the time of its cases and a fit to the logs of four. Sources run one after the other: by the number of
# groups alone the time left would be wrong by half.
_COSTS = {
    "cancellation": 20,
    "forms": 28,
    "gradients": 28,
    "kernel sizes": 101,
    "known wrong": 59,
    "layouts": 43,
    "mixed dtypes": 8,
    "modules": 49,
    "opinfo": 34,
    "pairs": 36,
    "planned pairs": 26,
    "schema": 6,
    "schema element-wise kernels": 33,
    "schema forms": 20,
    "schema mixed dtypes": 5,
    "schema random": 88,
    "schema repetition": 121,
    "schema special values": 5,
    "schema targets": 20,
    "sizes": 27,
    "special values": 9,
    "targets": 18,
    "tensor layouts": 30,
}
_USUAL_COST = 13


def cost_of(source: str) -> float:
    """The time of a group of this source, relative to other sources."""
    return _COSTS.get(source, _USUAL_COST)


class ProgressListener(Protocol):
    """Counts what has been executed."""

    def advance(self, cases: int, *, group_done: bool = True, crashed: bool = False) -> None:
        """Count executed cases, and a group when it is done."""


class AuditProgress:
    """Shows how many groups of cases are done, the rate of cases, and the time left.

    On a terminal it draws a bar, unless others print there, too; elsewhere it prints a line from time to time, which
    keeps a log readable.
    """

    def __init__(
        self,
        title: str,
        costs: Sequence[float],
        stream: TextIO | None = None,
        *,
        alone: bool = True,
        share_after: float = 0.0,
        seconds_after: float = 0.0,
    ) -> None:
        """`costs`: the relative cost of each group, in the order of execution.

        `share_after`, `seconds_after`: the time of later work, as a share of these groups' time, and in seconds.
        """
        self._title = title
        self._share_after = share_after
        self._seconds_after = seconds_after
        self._groups = len(costs)
        self._cost_until = list(accumulate(costs, initial=0.0))
        self._done = 0
        self._cases = 0
        self._crashed = 0
        self._printed = -1
        self._start = time.monotonic()
        # When the first group was done: workers start before, which says nothing about the other groups.
        self._first_done: float | None = None
        self._last_line = self._start
        self._stream = stream or sys.stderr
        self._bar = _bar(self._stream) if alone and self._stream.isatty() else None
        self._task = None if self._bar is None else self._bar.add_task(title, total=self._groups, status="")

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
        if self._first_done is None and group_done:
            self._first_done = time.monotonic()
        self._crashed += int(crashed)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done, status=self._status())
        elif time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._print_line()

    def _status(self) -> str:
        rate = self._cases / max(time.monotonic() - self._start, 1e-9)
        crashes = f", {self._crashed} crashed or timed out" if self._crashed else ""
        left = self.seconds_left()
        rest = "" if left is None else f", about {left:.0f} s left"
        return f"{self._cases:,} cases, {rate:,.0f}/s{crashes}{rest}"

    def seconds_left(self) -> float | None:
        """The estimated time to the end of the audit, from the time and costs of finished groups; None at first."""
        done, all_costs = self._cost_until[min(self._done, self._groups)], self._cost_until[-1]
        since = done - self._cost_until[min(1, self._groups)]  # since the first group
        if self._first_done is None or since <= 0 or not FORESEEABLE * all_costs <= done < all_costs:
            return None
        now = time.monotonic()
        left = (now - self._first_done) / since * (all_costs - done)
        return left + self._share_after * (now - self._start + left) + self._seconds_after

    def print_findings(self, text: str) -> None:
        """Print a line about findings."""
        if self._bar is not None:
            self._bar.console.print(text, highlight=False)
        else:
            print(text, file=self._stream, flush=True)

    def _print_line(self) -> None:
        print(f"{self._title}: {self._done}/{self._groups} groups, {self._status()}", file=self._stream, flush=True)
        self._last_line = time.monotonic()
        self._printed = self._done


def _bar(stream: TextIO) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[status]}"),
        TimeElapsedColumn(),
        console=Console(file=stream),
    )
