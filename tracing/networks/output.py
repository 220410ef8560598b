"""The results for networks as JSON data and as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from tabulate import tabulate

from ...reports.table import Table
from .observation import NetworkObservation
from .release_support import NetworkSupport, OverloadSupport, Since, since
from .tables import METHOD, all_tables, in_brief, lacking_operators, not_run, runs, since_which_release


def to_json(network_support: Sequence[NetworkSupport], observations: Sequence[NetworkObservation]) -> dict[str, Any]:
    """All networks on all releases, each run, and the tables of `mpsmith report --site DIR --networks FILE`."""
    return {
        "about": [in_brief(network_support, observations), METHOD],
        "tables": [_plain(table) for table in all_tables(network_support, observations)],
        "simulated": any(observation.simulated for observation in observations),
        "releases": list(network_support[0].together) if network_support else [],
        "networks": [_network(support) for support in network_support],
        "runs": [observation.to_json() for observation in observations],
    }


def _plain(table: Table) -> dict[str, Any]:
    return {**asdict(table), "code": sorted(table.code)}


def _network(support: NetworkSupport) -> dict[str, Any]:
    return {
        "network": support.network,
        "recorded_with": support.recorded,
        "without_fallback_since": {mode.value: _since(since(on)) for mode, on in support.by_mode.items()},
        "with_kernels_since": {
            mode.value: _since(since(on, with_kernels=True)) for mode, on in support.by_mode.items()
        },
        "releases": {
            mode.value: {release: _support(on_release) for release, on_release in on.items()}
            for mode, on in support.by_mode.items()
        },
    }


def _since(since: Since) -> dict[str, Any]:
    return {"release": since.release, "at_latest": since.at_latest}


def _support(support: OverloadSupport) -> dict[str, Any]:
    return {
        "native": len(support.native),
        "composite": len(support.composite),
        "fallback": sorted(support.fallback),
        "missing": sorted(support.missing),
        "unknown": sorted(support.unknown),
        "replaced_by_kernels": sorted(support.replaced),
    }


def as_text(
    network_support: Sequence[NetworkSupport], observations: Sequence[NetworkObservation], release: str | None
) -> str:
    """Since which release the networks run without a fallback, and the missing operators of one release.

    `release`: by default that of the recording.
    """
    parts = []
    if network_support:
        chosen = release or network_support[0].recorded
        simulated = any(observation.simulated for observation in observations)
        device = "SIMULATED mps device; not evidence about a Mac" if simulated else "mps device of this machine"
        coverage = "the coverage of " if simulated else ""
        parts += [
            f"recorded with {coverage}torch {network_support[0].recorded} on the {device}",
            _text_section("without a fallback since release", since_which_release(network_support)),
            _lacking(lacking_operators(network_support, chosen), chosen),
        ]
        if len(network_support) == 1:
            parts.append(_text_section("what was called", runs(observations)))
    failed = "\n".join(": ".join(map(str, row)) for row in not_run(observations).rows)
    return "\n\n".join([*parts, *([failed] if failed else [])])


def _lacking(table: Table, release: str) -> str:
    if not table.rows:
        return f"torch {release} has a kernel for every overload that was called"
    shown = [at for at, column in enumerate(table.columns) if column != "without a kernel in"]
    rows = tuple(tuple(row[at] for at in shown) for row in table.rows)
    narrower = replace(table, columns=tuple(table.columns[at] for at in shown), rows=rows)
    return _text_section(f"without a kernel in torch {release}", narrower)


def _text_section(heading: str, table: Table) -> str:
    return f"{heading}:\n{tabulate(table.rows, headers=table.columns, disable_numparse=True)}"
