"""The tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tabulate import tabulate

from ...reports.table import Table
from .observation import Observation
from .standing import NetworkStanding
from .tables import lacking_operators, not_run, runs, since_which_release


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
    failed = "\n".join(": ".join(map(str, row)) for row in not_run(observations).rows)
    return "\n\n".join([*parts, *([failed] if failed else [])])


def _lacking(table: Table, release: str) -> str:
    if not table.rows:
        return f"torch {release} has a kernel for every overload that was called"
    shown = [at for at, column in enumerate(table.columns) if column != "without a kernel in"]
    rows = tuple(tuple(row[at] for at in shown) for row in table.rows)
    narrower = replace(table, columns=tuple(table.columns[at] for at in shown), rows=rows)
    return _section(f"without a kernel in torch {release}", narrower)


def _section(heading: str, table: Table) -> str:
    return f"{heading}:\n{tabulate(table.rows, headers=table.columns, disable_numparse=True)}"
