"""What a recording says: the fallbacks one by one, where the host waits, and which of them a kernel replaces."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from .recording import Calls, Kind, Place, Recording


@dataclass
class At:
    """The calls of one overload at one place, forward or backward, whatever their operands."""

    overload: str
    kind: Kind
    place: Place
    backward: bool
    rows: list[Calls] = field(default_factory=list)

    @property
    def calls(self) -> int:
        """How often it was called there."""
        return sum(row.calls for row in self.rows)

    @property
    def bytes_to_cpu(self) -> int:
        """What was copied to the CPU, for all calls together."""
        return sum(row.bytes_to_cpu for row in self.rows)

    @property
    def bytes_to_mps(self) -> int:
        """What was copied to the device, for all calls together."""
        return sum(row.bytes_to_mps for row in self.rows)

    @property
    def nanoseconds(self) -> int:
        """The host's time in all calls together."""
        return sum(row.nanoseconds for row in self.rows)

    @property
    def operands(self) -> list[str]:
        """The different operands, the most frequent first; "others" where there were too many to tell apart."""
        rows = sorted(self.rows, key=lambda row: -row.calls)
        return ["others" if row.operands is None else " ".join(map(str, row.operands)) for row in rows]


def by_place(rows: Iterable[Calls]) -> list[At]:
    """The rows of one overload and place together: the longest first."""
    found: dict[tuple[str, Kind, Place, bool], At] = {}
    for row in rows:
        key = (row.overload, row.kind, row.place, row.backward)
        found.setdefault(key, At(*key)).rows.append(row)
    return sorted(found.values(), key=lambda at: (-at.nanoseconds, at.overload, at.place.file, at.place.line))


@dataclass(frozen=True)
class Summary:
    """What is told of a recording.

    Attributes:
        fallbacks: by overload and place. `waits`: likewise copies to the CPU and synchronisations.
        unseen: fallbacks without a place, from the simulated device's counters.
        replaced: the operators among the fallbacks that `import mpsmith.kernels` has a kernel for; `lacking`: the rest.
        forbidden: the fallbacks that are not allowed.
        elapsed: from the start of the first call on mps to the end of the last one, in nanoseconds.
    """

    recording: Recording
    fallbacks: Sequence[At]
    waits: Sequence[At]
    unseen: dict[str, int]
    replaced: tuple[str, ...]
    lacking: tuple[str, ...]
    forbidden: tuple[str, ...]
    elapsed: int

    def calls(self, kind: Kind) -> int:
        """How many calls of a kind there were."""
        return sum(row.calls for row in self.recording.rows if row.kind is kind)

    @property
    def share(self) -> float:
        """The part of the time between the first and the last call that was spent in fallbacks."""
        return sum(map(self.share_of, self.fallbacks))

    def share_of(self, at: At) -> float:
        """The part of that time that was spent in these calls; of several threads it may be more than all."""
        return at.nanoseconds / self.elapsed if self.elapsed else 0.0


def summarize(recording: Recording, *, kernels: Collection[str] = (), allowed: Collection[str] = ()) -> Summary:
    """Put a recording into order.

    `kernels`: the operators that have a finished kernel. `allowed`: operators or overloads that may fall back.
    """
    unseen = recording.unseen_fallbacks()
    overloads = sorted({row.overload for row in recording.fallbacks} | set(unseen))
    operators = sorted({operator_of(overload) for overload in overloads})
    waiting = (Kind.from_mps, Kind.synchronisation)
    starts = [event.start for event in recording.events]
    ends = [event.start + event.duration for event in recording.events]
    return Summary(
        recording=recording,
        fallbacks=by_place(recording.fallbacks),
        waits=by_place(row for row in recording.rows if row.kind in waiting and row.calls),
        unseen=unseen,
        replaced=tuple(name for name in operators if name in kernels),
        lacking=tuple(name for name in operators if name not in kernels),
        forbidden=tuple(name for name in overloads if not is_allowed(name, allowed)),
        elapsed=max(ends) - min(starts) if starts else 0,
    )


def operator_of(overload: str) -> str:
    """`aten::softshrink` of `aten::softshrink.out`."""
    return overload.split(".")[0]


def is_allowed(overload: str, allowed: Collection[str]) -> bool:
    """Whether the overload or its operator is named, with or without `aten::`."""
    names = {name if "::" in name else f"aten::{name}" for name in allowed}
    return overload in names or operator_of(overload) in names


def advice(summary: Summary) -> str:
    """The sentence that helps, "" where nothing fell back."""
    replaced, lacking = summary.replaced, summary.lacking
    total = len(replaced) + len(lacking)
    if not total:
        return ""
    scaffolds = ", ".join(f"`mpsmith scaffold {name}`" for name in lacking)
    if not lacking:
        which = "The operator that falls back is" if total == 1 else f"All {total} operators that fall back are"
        return f"{which} replaced by `import mpsmith.kernels`."
    if not replaced:
        return f"mpsmith has no kernel for {', '.join(lacking)} yet; start one: {scaffolds}"
    are, are_not = "are" if len(replaced) > 1 else "is", "are not" if len(lacking) > 1 else "is not"
    return (
        f"{len(replaced)} of {total} operators that fall back {are} replaced by `import mpsmith.kernels`; "
        f"{', '.join(lacking)} {are_not}: {scaffolds}"
    )


def finished_kernels() -> frozenset[str]:
    """The operators that `import mpsmith.kernels` has a kernel for, by the registry. It needs no torch."""
    from ..registry.kernel_index import kernel_entries

    return frozenset(name for name, entry in kernel_entries().items() if entry.status in _FINISHED)


_FINISHED = ("implemented", "verified", "upstreamed")
