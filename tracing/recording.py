"""A recording as plain data: rows of calls, and facts about the processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class CallKind(str, Enum):
    """The kind of a call on mps."""

    fallback = "fallback"
    native = "native"
    to_mps = "copy to mps"
    from_mps = "copy from mps"
    synchronisation = "synchronisation"

    @property
    def waits(self) -> bool:
        """Whether the host waits in this call until the GPU has finished all its work."""
        return self in (CallKind.fallback, CallKind.from_mps, CallKind.synchronisation)


@dataclass(frozen=True)
class CallSite:
    """A call site in the source; for a backward call that of its forward.

    Attributes:
        file: the innermost file of the user: not of torch, Python or an installed package. Without one, the innermost
            file of a package; "" for a call without a Python stack.
        line: in that file, from 1; 0 without a file.
        module: the path of the innermost torch.nn.Module, such as `model.3`, or "".
        library: `file:line` in an installed package that the user's line called, or "".
        note: `printing` where torch was formatting a tensor, or "".
    """

    file: str = ""
    line: int = 0
    module: str = ""
    library: str = ""
    note: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.file else "unknown"


@dataclass(frozen=True)
class CallOperand:
    """One tensor argument: its dtype ("float32") and shape."""

    dtype: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class CallRow:
    """The calls of one overload from one call site with one set of operands, in one process.

    Attributes:
        overload: `aten::softshrink.out`.
        operands: the tensor arguments; None if a call site had too many different ones.
        calls: their number.
        refused: calls that raised because fallbacks are not allowed; not included in `calls`.
        bytes_to_cpu: copied from the device by all calls together; likewise the others.
        nanoseconds: host time inside the calls.
    """

    overload: str
    kind: CallKind
    backward: bool
    site: CallSite
    operands: tuple[CallOperand, ...] | None
    calls: int
    refused: int
    bytes_to_cpu: int
    bytes_to_mps: int
    nanoseconds: int
    process: int


@dataclass
class Recording:
    """Everything that was recorded.

    Attributes:
        rows: the calls, grouped.
        facts: device, versions and counters of each process.
        dropped_calls: calls without a row, because there were too many different ones.
        span: when the first call began and the last one ended, in nanoseconds of the monotonic clock; None without any.
    """

    rows: list[CallRow] = field(default_factory=list)
    facts: dict[int, dict[str, Any]] = field(default_factory=dict)
    dropped_calls: int = 0
    span: tuple[int, int] | None = None

    @property
    def fallbacks(self) -> list[CallRow]:
        """The rows of calls that ran on the CPU."""
        return [row for row in self.rows if row.kind is CallKind.fallback and row.calls]

    def fact(self, name: str) -> Any:
        """The fact of the first process that has it, or None."""
        return next((facts[name] for facts in self.facts.values() if name in facts), None)

    def unseen_fallbacks(self) -> dict[str, int]:
        """Fallbacks that the simulated device counted and that the recorder did not see, by overload.

        Only processes that ended normally have written their counters; a real device has none.
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
        """Add the recording of another process."""
        self.rows += other.rows
        self.facts |= other.facts
        self.dropped_calls += other.dropped_calls
        spans = [span for span in (self.span, other.span) if span]
        self.span = (min(start for start, _ in spans), max(end for _, end in spans)) if spans else None
