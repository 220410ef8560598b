"""Results of devices, for the pages of operators.

Anybody may have made the files with messages and names of machines: the templates escape all of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...audit.findings.results import AuditSummary
from ..evidence.collecting import overload_rows
from ..evidence.devices import DeviceFamily, Findings, findings_of
from ..evidence.matrix import Matrix, Wheels
from ..release_history import ReleaseHistory

NOTE = (
    "What is SIMULATED ran on no Mac: it shows how operators are dispatched, and is not evidence about the values, "
    "dtypes or speed of a Mac. What a wheel declares was not run at all."
)
_SAFE = re.compile(r"[^a-z0-9_]+")


def findings_with(summary: AuditSummary, devices: Findings) -> Findings:
    """The findings of all devices and of the site's audit, which replaces evidence of the same kind of device."""
    audited = DeviceFamily.of_audit({**summary.run.environment, "simulated": summary.run.simulated})
    findings = dict(devices)
    findings[audited] = {**findings.get(audited, {}), **findings_of(overload_rows(summary))}
    return {kind: findings[kind] for kind in sorted(findings)}


def matrix_of(summary: AuditSummary, findings: Findings, history: ReleaseHistory | None) -> Matrix:
    """Every operator of the audit or of a device, by devices and releases."""
    wheels = Wheels(history.releases, history.support) if history else Wheels()
    return Matrix(findings, wheels, [operator.name for operator in summary.operators])


def file_names(names: Iterable[str], prefix: str) -> dict[str, str]:
    """A file name for each name, in plain letters and unique on any file system: `mode.html` for "aten::mode"."""
    files: dict[str, str] = {}
    taken: set[str] = set()
    for name in sorted(names):
        stem = _SAFE.sub("-", name.removeprefix("aten::").lower()).strip("-")[:80] or "unnamed"
        number = 2
        chosen = stem
        while chosen in taken:
            chosen, number = f"{stem}-{number}", number + 1
        taken.add(chosen)
        files[name] = f"{prefix}{chosen}.html"
    return files
