"""A state for each release, encoded as the releases at which it changes.

`missing@1.12.1 native@2.15.0` is such a text in a line of a committed table. A new release changes only the lines
whose state changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

NOTHING = "-"


def encode(states: Iterable[str], releases: Sequence[str], quiet: str) -> str:
    """Each state with its first release; the `quiet` state is omitted until a different state precedes it."""
    parts, previous = [], quiet
    for release, state in zip(releases, states, strict=True):
        if state != previous:
            parts.append(f"{state.replace(' ', '-')}@{release}")
        previous = state
    return " ".join(parts) or NOTHING


def decode(text: str, releases: Sequence[str], quiet: str) -> tuple[str, ...]:
    """The state in each release. Raises ValueError for a part that names no known release."""
    starts: dict[str, str] = {}
    for part in text.split() if text != NOTHING else []:
        state, at, release = part.rpartition("@")
        if not at or release not in releases:
            raise ValueError(f"`{part}` names no known release")
        starts[release] = state
    states, current = [], quiet
    for release in releases:
        current = starts.get(release, current)
        states.append(current)
    return tuple(states)
