"""Chooses the groups of the sample level `quick`: plain cases in every dtype, each kind of variation in one dtype.

Variations (layouts, values, sizes and the like) show a fault in most dtypes alike, so another dtype for each operator
and kind of variation sees more of them than float32 for all; float32, which most programs compute in, is every second.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from ...model.case import CaseSource, QuickShare
from ...model.group import GroupKey

MAIN_DTYPE = "float32"


def of_quick_level(groups: Sequence[GroupKey], sources: Mapping[str, CaseSource]) -> list[GroupKey]:
    """The groups that the level `quick` executes, in their order; the same ones on every machine."""
    dtypes: dict[tuple[str, str, str], list[str]] = {}
    for key in groups:
        dtypes.setdefault(_entry(key), []).append(key.dtype)
    chosen = {entry: _dtype_for(entry, offered) for entry, offered in dtypes.items()}

    def is_taken(key: GroupKey) -> bool:
        share = sources[key.source].quick
        return share is QuickShare.ALL or (share is QuickShare.ONE_DTYPE and key.dtype == chosen[_entry(key)])

    return [key for key in groups if is_taken(key)]


def _entry(key: GroupKey) -> tuple[str, str, str]:
    return key.source, key.operator, key.variant


def _dtype_for(entry: tuple[str, str, str], offered: Sequence[str]) -> str:
    draw = hashlib.blake2b("/".join(entry).encode(), digest_size=8).digest()
    if MAIN_DTYPE in offered and draw[0] % 2 == 0:
        return MAIN_DTYPE
    others = [dtype for dtype in offered if dtype != MAIN_DTYPE] or list(offered)
    return others[int.from_bytes(draw[1:], "big") % len(others)]
