"""`mpsmith next`: what to work on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def next_gap(
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many to show.")] = 10,
    kind: Annotated[str | None, typer.Option(help="Only gaps of this kind, such as reduction.")] = None,
    torch: Annotated[
        str | None, typer.Option("--torch", metavar="RELEASE", help="The release of torch; default: as installed.")
    ] = None,
    registry: Annotated[
        Path | None,
        typer.Option("--registry", metavar="DIR", envvar="MPSMITH_REGISTRY", help="The registry's folder."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
) -> None:
    """Suggest gaps to close: what users ask for, how far it reaches, how much work it is, as people estimate it."""
    from tabulate import tabulate

    from ..registry.files import load
    from ..scaffold.generation.generate import chosen_kind, source_of
    from ..scaffold.suggestions import suggestions

    source = source_of(torch)
    found = suggestions(source, load(registry), chosen_kind(kind))[:count]
    if as_json:
        rows = [
            {
                "operator": one.operator,
                "kind": one.kind.value,
                "overloads": list(one.overloads),
                "effort": one.estimate.effort,
                "opinfos": one.estimate.opinfos,
                "demand": one.estimate.demand,
                "score": round(one.score, 2),
                "owner": one.owner,
                "note": one.estimate.note,
            }
            for one in found
        ]
        typer.echo(json.dumps({"torch": source.release, "suggestions": rows}, indent=1))
        return
    if not found:
        typer.echo(f"torch {source.release}: no gap is left that nobody works on")
        return
    table = [
        (
            one.operator,
            one.kind.words,
            one.estimate.effort,
            one.estimate.opinfos,
            one.estimate.demand,
            f"{one.score:.1f}",
            one.owner or "",
            one.estimate.note,
        )
        for one in found
    ]
    headers = ("operator", "kind", "effort 1-4", "OpInfos", "demand 0-3", "score", "owner", "note")
    typer.echo(tabulate(table, headers=headers, disable_numparse=True))
    typer.echo(f"next: mpsmith scaffold {found[0].operator}")
