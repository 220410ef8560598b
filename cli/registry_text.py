"""The texts and JSON of `mpsmith registry`: tables, the changes of a sync, contradictions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..reports.counting import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..registry.drift import StatusDrift
    from ..registry.model import Entry
    from ..registry.sync import SyncReport

_LISTED_CHANGES = 20


def table(entries: Sequence[Entry]) -> str:
    """A line for each operator, and their number."""
    from tabulate import tabulate

    from ..registry.rendering import measured_in_words, status_in_words

    rows = [
        (entry.operator, status_in_words(entry), measured_in_words(entry), entry.owner, entry.issue, entry.kernel)
        for entry in entries
    ]
    headers = ("operator", "status", "measured", "owner", "issue", "kernel")
    listed = tabulate(rows, headers=headers, disable_numparse=True) + "\n" if rows else ""
    return listed + counted(len(rows), "operator")


def sync_lines(report: SyncReport) -> Iterator[str]:
    """The changes of a sync, as text."""
    from ..registry.folder import registry_folder
    from ..registry.problems import shown

    devices = {"mps": "on mps", "simulated": "on the SIMULATED device"}
    where = " and ".join(devices[device] for device in report.devices) or "nowhere"
    counts = (
        f"{len(report.added)} added",
        f"{len(report.changed)} changed",
        f"{len(report.remeasured)} remeasured with the same finding",
        f"{len(report.unchanged)} unchanged",
    )
    yield f"registry in {shown(registry_folder())}, measured {where}: {', '.join(counts)}"
    for change in report.changed[:_LISTED_CHANGES]:
        yield f"  {change}"
    if len(report.changed) > _LISTED_CHANGES:
        yield f"  and {len(report.changed) - _LISTED_CHANGES} more (git diff shows them)"
    if report.outdated:
        yield f"{counted(len(report.outdated), 'operator')} left as recorded, measured with a newer release"
    yield from drift_lines(report.drift)


def drift_lines(drift: Sequence[StatusDrift]) -> Iterator[str]:
    """The statuses set by people that a measurement contradicts."""
    if drift:
        yield f"drift: {counted(len(drift), 'status', 'statuses')} set by people against the measurement"
    yield from (f"  {contradiction}" for contradiction in drift)


def sync_json(report: SyncReport) -> dict[str, object]:
    """The changes of a sync, as JSON."""
    from ..registry.folder import registry_folder

    return {
        "registry": str(registry_folder()),
        "devices": report.devices,
        "simulated": "simulated" in report.devices,
        "added": report.added,
        "changed": [
            {"operator": change.operator, "device": change.device, "before": change.before, "after": change.after}
            for change in report.changed
        ],
        "remeasured": report.remeasured,
        "unchanged": report.unchanged,
        "outdated": report.outdated,
        "drift": [drift_json(drift) for drift in report.drift],
    }


def drift_json(drift: StatusDrift) -> dict[str, object]:
    """One contradiction, as JSON."""
    return {
        "operator": drift.operator,
        "status": drift.recorded.value,
        "verdict": drift.measured,
        "device": drift.device,
        "simulated": drift.device == "simulated",
        "release": drift.release,
        "explanation": drift.explanation,
    }
