"""The tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tabulate import tabulate

from .observation import Observation
from .standing import NetworkStanding
from .tables import Table, lacking_operators, not_run, runs, since_which_release


def as_text(standings: Sequence[NetworkStanding], observations: Sequence[Observation], release: str | None) -> str:
    """From which release on the networks run without a fallback, and what is lacking on one release.

    `release`: by default the one that the recording's torch is judged as.
    """
    parts = []
    if standings:
        chosen = release or standings[0].recorded
        simulated = any(observation.simulated for observation in observations)
        device = "SIMULATED mps device; not evidence about a Mac" if simulated else "mps device of this machine"
        coverage = "the coverage of " if simulated else ""
        parts += [
            f"recorded with {coverage}torch {standings[0].recorded} on the {device}",
            _section("without a fallback since release", since_which_release(standings)),
            _lacking(lacking_operators(standings, chosen), chosen),
        ]
        if len(standings) == 1:
            parts.append(_section("what was called", runs(observations)))
    return "\n\n".join([*parts, *(["\n".join(map(": ".join, rows))] if (rows := not_run(observations).rows) else [])])


def _lacking(table: Table, release: str) -> str:
    if not table.rows:
        return f"torch {release} has a kernel for every overload that was called"
    kept = [place for place, title in enumerate(table.titles) if title != "without a kernel in"]
    titles, *rows = (tuple(row[place] for place in kept) for row in (table.titles, *table.rows))
    return _section(f"without a kernel in torch {release}", replace(table, titles=titles, rows=tuple(rows)))


def _section(heading: str, table: Table) -> str:
    return f"{heading}:\n{tabulate(table.rows, headers=table.titles, disable_numparse=True)}"
