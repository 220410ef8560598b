"""A three-way merge of lines: what two sides made of one text, where they did not change the same lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher


def merged_three_ways(base: str, mine: str, theirs: str) -> str | None:
    """The text with the changes of both sides; None where both changed the same lines, each in its own way."""
    sides = [text.splitlines(keepends=True) for text in (base, mine, theirs)]
    lines: list[str] = []
    for in_base, in_mine, in_theirs in _between_common_lines(*sides):
        if in_mine in (in_base, in_theirs):
            lines += in_theirs
        elif in_theirs == in_base:
            lines += in_mine
        else:
            return None
    return "".join(lines)


_Lines = Sequence[str]


def _between_common_lines(base: _Lines, mine: _Lines, theirs: _Lines) -> Iterator[tuple[_Lines, _Lines, _Lines]]:
    """The stretches of the three texts in order: those that all have in common, and those in between."""
    in_mine, in_theirs = _places(base, mine), _places(base, theirs)
    position = my_position = their_position = 0
    for place in [*sorted(in_mine.keys() & in_theirs.keys()), len(base)]:
        my_place, their_place = in_mine.get(place, len(mine)), in_theirs.get(place, len(theirs))
        yield base[position:place], mine[my_position:my_place], theirs[their_position:their_place]
        common = base[place : place + 1]
        yield common, common, common
        position, my_position, their_position = place + 1, my_place + 1, their_place + 1


def _places(base: _Lines, side: _Lines) -> dict[int, int]:
    """Where a line of the base stands in a side that kept it."""
    blocks = SequenceMatcher(None, base, side, autojunk=False).get_matching_blocks()
    return {block.a + step: block.b + step for block in blocks for step in range(block.size)}
