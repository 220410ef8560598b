"""What a trace saw, as plain data: rows of calls, events in time, and what is known of the processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Kind(str, Enum):
    """What a call on mps was."""

    fallback = "fallback"
    native = "native"
    to_mps = "copy to mps"
    from_mps = "copy from mps"
    synchronisation = "synchronisation"

    @property
    def waits(self) -> bool:
        """Whether the host waits in it until the GPU has done all its work."""
        return self in (Kind.fallback, Kind.from_mps, Kind.synchronisation)


@dataclass(frozen=True)
class Place:
    """Where in the source a call was made; of a backward call, where its forward was.

    Attributes:
        file: the innermost file that is the user's: neither torch's, nor Python's, nor an installed package's.
            Where there is none, the innermost file of a package; "" where no Python led there.
        line: in that file, from 1; 0 where there is no file.
        module: the path of the innermost torch.nn.Module, such as `model.3`, or "".
        library: `file:line` in an installed package that the user's line called, or "".
        note: `printing` where torch was making a tensor's text, or "".
    """

    file: str = ""
    line: int = 0
    module: str = ""
    library: str = ""
    note: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.file else "unknown"


@dataclass(frozen=True)
class Operand:
    """One tensor argument: its dtype ("float32") and shape."""

    dtype: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Calls:
    """The calls of one overload at one place with one set of operands, in one process.

    Attributes:
        overload: `aten::softshrink.out`.
        operands: the tensors among its arguments; None where a place has had too many different ones to tell apart.
        calls: how many.
        refused: how many of them raised, because falling back is switched off. They are no part of `calls`.
        bytes_to_cpu: what was copied from the device, for all calls together; likewise the others.
        nanoseconds: host time inside the calls.
    """

    overload: str
    kind: Kind
    backward: bool
    place: Place
    operands: tuple[Operand, ...] | None
    calls: int
    refused: int
    bytes_to_cpu: int
    bytes_to_mps: int
    nanoseconds: int
    process: int


@dataclass(frozen=True)
class Event:
    """One call in time: the row it belongs to, start on the system's monotonic clock, both in nanoseconds."""

    row: int
    start: int
    duration: int
    thread: int


@dataclass
class Recording:
    """All that was seen.

    Attributes:
        rows: the calls, grouped.
        events: single calls in time, the first ones of each process.
        threads: the name of each thread, by process and number.
        facts: what each process said of itself, by process: device, versions, counters.
        dropped_calls: calls that are in no row, because there were too many different ones.
        dropped_events: calls that are in a row, but not among the events.
    """

    rows: list[Calls] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    threads: dict[tuple[int, int], str] = field(default_factory=dict)
    facts: dict[int, dict[str, Any]] = field(default_factory=dict)
    dropped_calls: int = 0
    dropped_events: int = 0

    @property
    def fallbacks(self) -> list[Calls]:
        """The rows of calls that ran on the CPU."""
        return [row for row in self.rows if row.kind is Kind.fallback and row.calls]

    def fact(self, name: str) -> Any:
        """What the first process that knows says, or None."""
        return next((facts[name] for facts in self.facts.values() if name in facts), None)

    def unseen_fallbacks(self) -> dict[str, int]:
        """Fallbacks that the simulated device counted and that no thread's recorder saw, by overload.

        Only processes that ended in order have told their counters; on a real device there are none.
        """
        seen: dict[tuple[int, str], int] = {}
        for row in self.fallbacks:
            seen[row.process, row.overload] = seen.get((row.process, row.overload), 0) + row.calls
        unseen: dict[str, int] = {}
        for process, facts in self.facts.items():
            for overload, calls in facts.get("counted_fallbacks", {}).items():
                if missing := calls - seen.get((process, overload), 0):
                    unseen[overload] = unseen.get(overload, 0) + missing
        return unseen

    def add(self, other: Recording) -> None:
        """Take over what another process saw."""
        shift = len(self.rows)
        self.rows += other.rows
        self.events += [Event(event.row + shift, event.start, event.duration, event.thread) for event in other.events]
        self.threads |= other.threads
        self.facts |= other.facts
        self.dropped_calls += other.dropped_calls
        self.dropped_events += other.dropped_events
