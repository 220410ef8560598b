"""The page of all devices and releases.

Anybody may have made the files with messages and names of machines: the templates escape all of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ...audit.findings.results import AuditSummary
from ..evidence.collecting import overload_rows
from ..evidence.devices import DeviceEvidence, DeviceFamily, Findings, conflicts, findings_of
from ..evidence.matrix import ColumnKind, Matrix, MatrixColumn, Wheels
from ..evidence.schema import EvidenceFile
from ..release_history import ReleaseHistory
from ..table import Cell, Table

NOTE = (
    "What is SIMULATED ran on no Mac: it shows how operators are dispatched, and is not evidence about the values, "
    "dtypes or speed of a Mac. What a wheel declares was not run at all."
)
NO_REAL_DEVICE = (
    "No real device has sent evidence yet. On a Mac, `mpsmith evidence collect` makes a file of it; docs/evidence.md "
    "says where that goes."
)
# The most devices in the table of all operators; the operators' pages have all of them.
_SHOWN_DEVICES = 12
_SAFE = re.compile(r"[^a-z0-9_]+")


def findings_with(summary: AuditSummary, devices: DeviceEvidence) -> Findings:
    """The findings of all devices and of the site's audit, which replaces evidence of the same kind of device."""
    audited = DeviceFamily.of_audit({**summary.run.environment, "simulated": summary.run.simulated})
    findings = dict(devices.findings)
    findings[audited] = {**findings.get(audited, {}), **findings_of(overload_rows(summary))}
    return {kind: findings[kind] for kind in sorted(findings)}


def matrix_of(summary: AuditSummary, findings: Findings, history: ReleaseHistory | None) -> Matrix:
    """Every operator of the audit or of a device, by devices and releases."""
    wheels = Wheels(history.releases, history.standings) if history else Wheels()
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


def lead(findings: Findings) -> list[str]:
    """The sentences at the top of the page."""
    return [NOTE] if any(not kind.simulated for kind in findings) else [NOTE, NO_REAL_DEVICE]


def device_tables(
    findings: Findings,
    matrix: Matrix,
    newest: Mapping[DeviceFamily, EvidenceFile],
    release: str,
    pages: Mapping[str, str],
) -> list[Table]:
    """The devices, where real ones disagree, and every operator on each.

    Args:
        findings: of all devices; `matrix`: the same; `newest`: the newest file of each kind of device.
        release: whose wheel is compared with the devices.
        pages: the page of each operator.
    """
    tables = [
        _devices(findings, newest),
        _conflicts(findings, pages),
        _operators(matrix, release, pages),
    ]
    return [table for table in tables if table.rows]


def _devices(findings: Findings, newest: Mapping[DeviceFamily, EvidenceFile]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for kind, operators in findings.items():
        file = newest.get(kind)
        verdicts = Counter(finding.verdict.value for finding in operators.values())
        rows.append(
            (
                str(kind),
                _grade(kind),
                file.day if file else "this audit",
                len(operators),
                file.audit.executed if file else "",
                ", ".join(f"{number:,} {verdict}" for verdict, number in verdicts.most_common()),
            )
        )
    return Table(
        "Devices",
        ("device", "evidence", "newest file", "operators", "cases of it", "verdicts of operators"),
        tuple(rows),
        "A device is a family of chips, a macOS and a release of torch; of each, an operator's newest evidence counts.",
    )


def _conflicts(findings: Findings, pages: Mapping[str, str]) -> Table:
    rows = tuple(
        (
            conflict.operator,
            conflict.torch,
            "; ".join(
                f"{kind.chip}, macOS {kind.macos}: {verdict.value}" for kind, verdict in conflict.verdicts.items()
            ),
        )
        for conflict in conflicts(findings)
    )
    note = "Real devices with the same release of torch. Nothing is averaged."
    heading = "Operators on which real devices disagree"
    return Table(heading, ("operator", "torch", "verdicts"), rows, note, frozenset({"operator"}), pages)


def _operators(matrix: Matrix, release: str, pages: Mapping[str, str]) -> Table:
    devices = [column for column in matrix.columns if column.kind is not ColumnKind.FROM_WHEEL]
    shown = devices[:_SHOWN_DEVICES]
    rows = tuple(_row(matrix, operator, release, shown) for operator in matrix.operators)
    more = f" {len(devices) - len(shown)} more devices are on the operators' pages." if devices[_SHOWN_DEVICES:] else ""
    return Table(
        "Operators by device",
        ("operator", f"torch {release}, from the wheel", *map(str, shown)),
        rows,
        f"The verdict with the newest torch that ran on the device, in brackets.{more} An operator's page has "
        "every release.",
        links=pages,
    )


def _row(matrix: Matrix, operator: str, release: str, columns: Sequence[MatrixColumn]) -> tuple[Cell, ...]:
    declared = matrix.wheels.of(operator, release)
    newest = matrix.newest(operator)
    cells = (f"{newest[column][1].value} ({newest[column][0]})" if column in newest else "" for column in columns)
    return (operator, declared.value if declared else "", *cells)


def _grade(kind: DeviceFamily) -> str:
    return "SIMULATED, not evidence about a Mac" if kind.simulated else "real device"
