"""The page of all devices and releases, and a page for each kind of device.

Anybody may have made the files with messages and names of machines: the templates escape all of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ...audit.findings.overload_verdict import BREAKAGES
from ...audit.findings.results import AuditSummary
from ...audit.model.verdicts import CaseVerdict
from ..evidence.collecting import overload_rows
from ..evidence.devices import DeviceEvidence, DeviceFamily, Findings, conflicts, findings_of
from ..evidence.matrix import ColumnKind, Matrix, MatrixColumn, Wheels
from ..evidence.schema import EvidenceFile, KernelRow
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
# The failing cases on a device's page: these verdicts in this order, at most LISTED_CASES.
_SHOWN_VERDICTS = (*BREAKAGES, CaseVerdict.DTYPE_GAP)
LISTED_CASES = 500
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
    device_pages: Mapping[str, str],
) -> list[Table]:
    """The devices, where real ones disagree, and every operator on each.

    Args:
        findings: of all devices; `matrix`: the same; `newest`: the newest file of each kind of device.
        release: whose wheel is compared with the devices.
        pages: the page of each operator; `device_pages`: that of each kind of device with a file.
    """
    tables = [
        _devices(findings, newest, device_pages),
        _conflicts(findings, pages),
        _operators(matrix, release, pages),
    ]
    return [table for table in tables if table.rows]


def _devices(findings: Findings, newest: Mapping[DeviceFamily, EvidenceFile], pages: Mapping[str, str]) -> Table:
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
        links=pages,
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


def file_lead(file: EvidenceFile) -> list[str]:
    """The sentences at the top of a device's page."""
    audit = file.audit
    unfinished = "" if audit.complete else " It is not complete."
    line = f"The newest file, of {file.day}: {audit.executed:,} cases executed, {audit.samples} samples.{unfinished}"
    return [NOTE, line] if file.simulated else [line]


def file_tables(file: EvidenceFile) -> list[Table]:
    """The machine, the cases by verdict, the failing cases, and the kernels."""
    mark = " (SIMULATED)" if file.simulated else ""
    tables = [
        Table(f"The machine{mark}", ("fact", "value"), tuple(_machine(file))),
        Table(
            f"Cases by verdict{mark}",
            ("verdict", "cases"),
            tuple((verdict.value, number) for verdict, number in file.audit.cases.items()),
        ),
        _failing_cases(file, mark),
        Table(
            f"Kernels of mpsmith there{mark}",
            ("family", "outcome", "cases", "checks", "ms", "ms without it", "ms on the CPU", "without it"),
            tuple(_kernel(row) for row in file.kernels),
            "Only kernels that pass on a real device become verified. Times are medians of a call.",
            frozenset({"family"}),
        ),
    ]
    return [table for table in tables if table.rows]


def _failing_cases(file: EvidenceFile, mark: str) -> Table:
    audit = file.audit
    cases = [case for case in audit.failing_cases() if case[1] in _SHOWN_VERDICTS]
    cases.sort(key=lambda case: (_SHOWN_VERDICTS.index(case[1]), case[0]))
    more = len(cases[LISTED_CASES:]) + sum(audit.left_out.get(verdict, 0) for verdict in _SHOWN_VERDICTS)
    unlisted = f" {more:,} more are counted and not listed." if more else ""
    return Table(
        f"Failing cases{mark}",
        ("case", "verdict", "message"),
        tuple((label, verdict.value, message) for label, verdict, message in cases[:LISTED_CASES]),
        f"Cases that crash, time out, are wrong or refuse a dtype, with the labels for `mpsmith replay`.{unlisted}",
        frozenset({"case"}),
    )


def _machine(file: EvidenceFile) -> Iterator[tuple[Cell, ...]]:
    machine = file.machine
    yield "evidence", _grade(DeviceFamily.of(file))
    yield "chip", machine.chip
    if machine.gpu_cores:
        yield "GPU cores", str(machine.gpu_cores)
    if machine.memory_gib:
        yield "memory", f"{machine.memory_gib} GiB"
    yield "system", f"{machine.system} {machine.release}{f' ({machine.build})' if machine.build else ''}"
    yield "torch", machine.torch
    yield "Python", machine.python
    if machine.profile:
        yield "simulated coverage", f"torch {machine.profile}"
    yield from machine.variables.items()


def _kernel(row: KernelRow) -> tuple[Cell, ...]:
    outcome = row.ended or (f"{row.failed} failed" if row.failed else "passed" if row.cases else "nothing ran")
    timing = row.timing
    times = (timing.kernel, timing.without, timing.cpu) if timing else (None, None, None)
    shown = tuple("" if time is None else f"{time:.3f}" for time in times)
    return (row.family, outcome, row.cases, ", ".join(row.checks), *shown, timing.without_is if timing else row.untimed)


def _grade(kind: DeviceFamily) -> str:
    return "SIMULATED, not evidence about a Mac" if kind.simulated else "real device"
