"""The tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

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
            f"without a fallback since release:\n{_table(since_which_release(standings))}",
            _lacking(lacking_operators(standings, chosen), chosen),
        ]
        if len(standings) == 1:
            parts.append(f"what was called:\n{_table(runs(observations))}")
    return "\n\n".join([*parts, *(["\n".join(lines)] if (lines := not_run(observations)) else [])])


def _lacking(table: Table, release: str) -> str:
    if not table.rows:
        return f"torch {release} has a kernel for every overload that was called"
    kept = [place for place, title in enumerate(table.titles) if title != "without a kernel in"]
    rows = tuple(tuple(row[place] for place in kept) for row in table.rows)
    return f"without a kernel in torch {release}:\n" + _table(Table(tuple(table.titles[place] for place in kept), rows))


def _table(table: Table) -> str:
    return tabulate(table.rows, headers=table.titles, disable_numparse=True)
