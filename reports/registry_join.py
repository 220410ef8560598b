"""Registry data about each operator, as reports show it beside the verdicts."""

from __future__ import annotations

from pathlib import Path

from ..audit.findings.results import RegistryStatus
from ..registry.files import load


def measured_verdicts(folder: Path | None = None) -> dict[str, str]:
    """The measured verdict of every operator, on the device whose measurement counts.

    `folder`: the registry's, as for `registry.files.load`. Raises RegistryError when it has problems.
    """
    return {
        operator: entry.ranking_measurement.verdict
        for operator, entry in load(folder).items()
        if entry.ranking_measurement is not None
    }


def registered(folder: Path | None = None) -> dict[str, RegistryStatus]:
    """Status, kernel and upstream reference of every operator in the registry that has a status.

    `folder`: the registry's, as for `registry.files.load`. Raises RegistryError when it has problems.
    """
    return {
        operator: RegistryStatus(entry.current_status.value, entry.kernel, entry.pull_request or entry.issue)
        for operator, entry in load(folder).items()
        if entry.current_status is not None
    }
