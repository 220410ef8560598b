"""Groups faults into rounds so that each case of a round can show only one of its faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .planted import PlantedFault
from .reach import Reach

# A larger round would only delay the first result.
LARGEST_ROUND = 60


@dataclass(frozen=True)
class Round:
    """Faults that are injected together, each with the entries that are audited for it."""

    entries: dict[PlantedFault, tuple[str, ...]]

    @property
    def faults(self) -> tuple[PlantedFault, ...]:
        """The faults in the order of their numbers."""
        return tuple(sorted(self.entries, key=lambda planted: planted.number))

    @property
    def audited(self) -> tuple[str, ...]:
        """All entries of the round."""
        return tuple(sorted({name for names in self.entries.values() for name in names}))


def rounds_of(planted: Sequence[PlantedFault], reach: Reach) -> list[Round]:
    """Put each fault into the first round in which no fault's entries call the overload of another fault."""
    rounds: list[Round] = []
    for fault in planted:
        entries = reach.entries(fault)
        chosen = next((r for r in rounds if len(r.entries) < LARGEST_ROUND and _fits(fault, entries, r, reach)), None)
        if chosen is None:
            chosen = Round({})
            rounds.append(chosen)
        chosen.entries[fault] = entries
    return rounds


def _fits(planted: PlantedFault, entries: tuple[str, ...], chosen: Round, reach: Reach) -> bool:
    for other, audited in chosen.entries.items():
        if other.packet == planted.packet or not set(audited).isdisjoint(entries):
            return False
        if _reaches(entries, other, reach) or _reaches(audited, planted, reach):
            return False
    return True


def _reaches(entries: tuple[str, ...], planted: PlantedFault, reach: Reach) -> bool:
    return any(planted.fault.overload in reach.calls[name] for name in entries)
