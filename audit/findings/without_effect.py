"""Counts, for each input of an entry, the groups of cases of which no result depends on it."""

from __future__ import annotations

from collections import Counter

from .pairs_seen import entry_name
from .results import InputWithoutEffect
from .run_data import RunData


def without_effect(data: RunData) -> tuple[InputWithoutEffect, ...]:
    """For each entry and input: the number of groups in which no result depends on the input."""
    groups = Counter(entry_name(group.key) for group in data.groups if group.done)
    noted = Counter((entry_name(key), name) for key, names in data.without_effect.items() for name in names)
    return tuple(
        InputWithoutEffect(entry, name, count, groups[entry]) for (entry, name), count in sorted(noted.items())
    )
