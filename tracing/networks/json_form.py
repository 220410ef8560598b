"""What was found as JSON data, with the tables that a page shows of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ...reports.table import Table
from .observation import Observation
from .standing import NetworkStanding, Since, Standing, since
from .tables import METHOD, all_tables, in_brief


def to_json(standings: Sequence[NetworkStanding], observations: Sequence[Observation]) -> dict[str, Any]:
    """All networks on all releases, each run, and the tables of `mpsmith report --site DIR --networks FILE`."""
    return {
        "about": [in_brief(standings, observations), METHOD],
        "tables": [_plain(table) for table in all_tables(standings, observations)],
        "simulated": any(observation.simulated for observation in observations),
        "releases": list(standings[0].together) if standings else [],
        "networks": [_network(standing) for standing in standings],
        "runs": [observation.to_json() for observation in observations],
    }


def _plain(table: Table) -> dict[str, Any]:
    return {**asdict(table), "code": sorted(table.code)}


def _network(standing: NetworkStanding) -> dict[str, Any]:
    return {
        "network": standing.network,
        "recorded_with": standing.recorded,
        "without_fallback_since": {mode.value: _since(since(on)) for mode, on in standing.by_mode.items()},
        "with_kernels_since": {
            mode.value: _since(since(on, with_kernels=True)) for mode, on in standing.by_mode.items()
        },
        "releases": {
            mode.value: {release: _standing(found) for release, found in on.items()}
            for mode, on in standing.by_mode.items()
        },
    }


def _since(found: Since) -> dict[str, Any]:
    return {"release": found.release, "at_latest": found.at_latest}


def _standing(found: Standing) -> dict[str, Any]:
    return {
        "native": len(found.native),
        "composite": len(found.composite),
        "fallback": sorted(found.fallback),
        "missing": sorted(found.missing),
        "unknown": sorted(found.unknown),
        "replaced_by_kernels": sorted(found.replaced),
    }
