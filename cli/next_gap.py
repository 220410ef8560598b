"""`mpsmith next`: suggests a gap to work on."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Annotated

import typer

from .options import AsJson, Release
from .printing import print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..scaffold.suggestions import FinishedFamily, Suggestion

# Columns that are wrapped where the table is too wide: kind, effort and demand, and the note to what is left.
_AS_IT_IS = 10**6
_WRAPPED = [_AS_IT_IS, 16, 6, _AS_IT_IS, 6, _AS_IT_IS, _AS_IT_IS]
_NARROWEST_NOTE = 12


def next_gap(
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many to show.")] = 10,
    torch: Release = None,
    as_json: AsJson = False,
) -> None:
    """Suggest gaps to close, ranked by use and by effort, and finished kernels to send upstream.

    Use: requests in upstream's issues, networks that call the operator, functions that call it, and OpInfos.
    """
    from ..registry.files import load
    from ..scaffold.operators.source import source_of
    from ..scaffold.suggestions import finished_families, suggestions

    source = source_of(torch)
    registry = load(None)
    suggested, finished = suggestions(source, registry)[:count], finished_families(registry)
    if as_json:
        families = [_family_as_json(family) for family in finished[:count]]
        gaps = [_as_json(gap) for gap in suggested]
        print_json({"torch": source.release, "suggestions": gaps, "finished": families})
        return
    if suggested:
        print(_table(suggested, shutil.get_terminal_size((120, 40)).columns))
    else:
        print(f"torch {source.release}: every gap has a kernel or an owner")
    if finished:
        print(f"\nFinished kernels that no release has: {len(finished)} families whose patch can be sent upstream")
        print(_finished_table(finished[:count]))
    if suggested or finished:
        print(f"next: {f'mpsmith scaffold {suggested[0].operator}' if suggested else finished[0].command}")


def _as_json(gap: Suggestion) -> dict[str, object]:
    return {
        "operator": gap.operator,
        "kind": gap.kind.value,
        "overloads": list(gap.overloads),
        "effort": gap.estimate.effort,
        "opinfos": gap.estimate.opinfos,
        "demand": gap.estimate.demand,
        "networks": gap.estimate.networks,
        "score": round(gap.score, 2),
        "owner": gap.owner,
        "note": gap.estimate.note,
    }


def _family_as_json(family: FinishedFamily) -> dict[str, object]:
    estimate = family.estimate
    return {
        "family": family.family,
        "operators": list(family.operators),
        "demand": estimate.demand,
        "networks": estimate.networks,
        "callers": family.callers,
        "opinfos": estimate.opinfos,
        "command": family.command,
    }


def _finished_table(families: Sequence[FinishedFamily]) -> str:
    from tabulate import tabulate

    rows = []
    for family in families:
        more = f" and {len(family.operators) - 1} more" if len(family.operators) > 1 else ""
        estimate = family.estimate
        rows.append((f"{family.operators[0]}{more}", estimate.demand, estimate.networks, family.callers))
    return tabulate(rows, headers=("operator", "demand 0-3", "networks", "called by"), disable_numparse=True)


def _table(gaps: Sequence[Suggestion], width: int) -> str:
    """A row per gap; wrapped to `width`."""
    from tabulate import tabulate

    rows = [
        (
            gap.operator,
            gap.kind.words,
            gap.estimate.effort,
            gap.estimate.opinfos,
            gap.estimate.demand,
            f"{gap.score:.1f}",
            gap.owner or "",
            gap.estimate.note,
        )
        for gap in gaps
    ]
    headers = ("operator", "kind", "effort 1-4", "OpInfos", "demand 0-3", "score", "owner", "note")
    in_full = tabulate(rows, headers=headers, disable_numparse=True)
    if _widest(in_full) <= width:
        return in_full
    without_notes = tabulate(
        [row[:-1] for row in rows],
        headers=headers[:-1],
        disable_numparse=True,
        maxcolwidths=_WRAPPED,
        maxheadercolwidths=_WRAPPED,
    )
    note = max(_NARROWEST_NOTE, width - _widest(without_notes) - 2)
    widths = [*_WRAPPED, note]
    return tabulate(rows, headers=headers, disable_numparse=True, maxcolwidths=widths, maxheadercolwidths=widths)


def _widest(table: str) -> int:
    return max(map(len, table.splitlines()))
