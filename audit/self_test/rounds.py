"""Which faults are armed together: those that do not meet, so that each case tells of one fault alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .planted import PlantedFault
from .reach import Reach

# More together would only make the groups of a round many before the first result.
LARGEST_ROUND = 60


@dataclass(frozen=True)
class Round:
    """Faults that are armed together, each with the entries that are audited for it."""

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
    """Every fault in the first round in which no entry of it calls another's overload, nor the other way round."""
    rounds: list[Round] = []
    for each in planted:
        entries = reach.entries(each)
        there = next((r for r in rounds if len(r.entries) < LARGEST_ROUND and _fits(each, entries, r, reach)), None)
        if there is None:
            there = Round({})
            rounds.append(there)
        there.entries[each] = entries
    return rounds


def _fits(planted: PlantedFault, entries: tuple[str, ...], there: Round, reach: Reach) -> bool:
    for other, audited in there.entries.items():
        if other.packet == planted.packet or not set(audited).isdisjoint(entries):
            return False
        if _reaches(entries, other, reach) or _reaches(audited, planted, reach):
            return False
    return True


def _reaches(entries: tuple[str, ...], planted: PlantedFault, reach: Reach) -> bool:
    return any(planted.fault.overload in reach.calls[name] for name in entries)
