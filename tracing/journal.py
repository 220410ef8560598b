"""The journal of a recorded process: nothing is lost when the process is killed, and memory stays bounded.

Counts are a memory-mapped file of a fixed size, so they outlive the process. The meaning of a row is a line
of JSON, written when the row begins. Without a folder everything stays in memory.
"""

from __future__ import annotations

import json
import mmap
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

from .recording import CallKind, CallOperand, CallRow, CallSite, Recording

ROWS = 1 << 15

# The columns of a row of counts.
CALLS, REFUSED, TO_CPU, TO_MPS, NANOSECONDS = range(5)
COLUMNS = 5
# Row 0 holds the calls of rows beyond the limit, and when the first call began and the last one ended.
OVERFLOW = 0
DROPPED_CALLS, FIRST_START, LAST_END = range(3)

_INTEGER = 8


class Journal:
    """The rows and facts of one process.

    Not thread-safe: the recorder holds its lock around `new_row` and `count`.
    """

    def __init__(self, folder: Path | None = None, *, rows: int = ROWS) -> None:
        self.process = os.getpid()
        self._most_rows = rows
        stem = folder / f"{self.process}-{time.monotonic_ns()}" if folder else None
        self._counts = _map(stem and stem.with_suffix(".counts"), rows * COLUMNS * _INTEGER)
        self.counts = memoryview(self._counts).cast("q")
        self._lines: list[dict[str, Any]] = []
        self._file: BinaryIO | None = None
        if stem:
            self._file = stem.with_suffix(".jsonl").open("ab", buffering=0)
        self._next_row = 1

    def new_row(self, overload: str, kind: CallKind, backward: bool, site: CallSite, operands: object) -> int:
        """Begin a row; `operands` is a list of (dtype, shape) or None. OVERFLOW when the journal is full."""
        if self._next_row >= self._most_rows:
            return OVERFLOW
        row, self._next_row = self._next_row, self._next_row + 1
        location = [site.file, site.line, site.module, site.library, site.note]
        self._write(
            {"row": row, "overload": overload, "kind": kind, "backward": backward, "at": location, "operands": operands}
        )
        return row

    def count(self, row: int, start: int, nanoseconds: int, to_cpu: int, to_mps: int) -> None:
        """Count a call of a row that began at `start` of the monotonic clock."""
        counts = self.counts
        first = counts[FIRST_START]
        counts[FIRST_START] = min(first, start) if first else start  # a call around others is counted after them
        counts[LAST_END] = max(counts[LAST_END], start + nanoseconds)
        if row == OVERFLOW:
            counts[DROPPED_CALLS] += 1
            return
        at = row * COLUMNS
        counts[at] += 1
        counts[at + NANOSECONDS] += nanoseconds
        if to_cpu:
            counts[at + TO_CPU] += to_cpu
        if to_mps:
            counts[at + TO_MPS] += to_mps

    def refuse(self, row: int) -> None:
        """Count a call of a row that raised because fallbacks are not allowed."""
        if row != OVERFLOW:
            self.counts[row * COLUMNS + REFUSED] += 1

    def add_facts(self, facts: dict[str, Any]) -> None:
        """Add facts about this process."""
        self._write({"facts": facts})

    def recording(self) -> Recording:
        """Everything written so far."""
        return _recording(self.process, self._lines, self.counts)

    def _write(self, line: dict[str, Any]) -> None:
        if self._file is None:
            self._lines.append(line)
        else:
            self._file.write(json.dumps(line).encode() + b"\n")  # one write: a killed process leaves whole lines


def read_folder(folder: Path) -> Recording:
    """Read and join the recordings of all processes that wrote into a folder, in order."""
    whole = Recording()
    for path in sorted(folder.glob("*.jsonl"), key=lambda path: path.stat().st_mtime_ns):
        lines = list(_lines(path.read_bytes().splitlines()))
        counts = memoryview(path.with_suffix(".counts").read_bytes()).cast("q")
        whole.add(_recording(int(path.stem.split("-")[0]), lines, counts))
    return whole


def _lines(texts: Iterable[bytes]) -> Iterable[dict[str, Any]]:
    for text in texts:
        try:
            yield json.loads(text)
        except ValueError:  # the last line of a process that was killed while it wrote
            return


def _recording(process: int, lines: Iterable[dict[str, Any]], counts: memoryview) -> Recording:
    recording = Recording(facts={process: {}}, dropped_calls=counts[DROPPED_CALLS])
    if counts[LAST_END]:
        recording.span = (counts[FIRST_START], counts[LAST_END])
    for line in lines:
        if "facts" in line:
            recording.facts[process] |= line["facts"]
        else:
            recording.rows.append(_calls(process, line, counts))
    return recording


def _calls(process: int, line: dict[str, Any], counts: memoryview) -> CallRow:
    at = line["row"] * COLUMNS
    operands = line["operands"]
    return CallRow(
        overload=line["overload"],
        kind=CallKind(line["kind"]),
        backward=line["backward"],
        site=CallSite(*line["at"]),
        operands=None if operands is None else tuple(CallOperand(dtype, tuple(shape)) for dtype, shape in operands),
        calls=counts[at + CALLS],
        refused=counts[at + REFUSED],
        bytes_to_cpu=counts[at + TO_CPU],
        bytes_to_mps=counts[at + TO_MPS],
        nanoseconds=counts[at + NANOSECONDS],
        process=process,
    )


def _map(path: Path | None, size: int) -> mmap.mmap:
    """A zeroed mapping of memory or of a fully allocated file, so that no write into it can fail."""
    if path is None:
        return mmap.mmap(-1, size)
    path.write_bytes(bytes(size))
    with path.open("r+b") as file:
        return mmap.mmap(file.fileno(), size)
