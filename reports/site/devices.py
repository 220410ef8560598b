"""The page of devices: every device by release beside what the wheels declare, and a page for each kind of device.

Messages and names of machines are from files that anybody may have made: all of it goes through the templates.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ...audit.findings.results import AuditSummary
from ..evidence.audited import overload_rows
from ..evidence.device_reports import DeviceReport, ShownDevices
from ..evidence.devices import DeviceFamily, Findings, conflicts, findings_of
from ..evidence.matrix import ColumnKind, Matrix, MatrixColumn, Wheels
from ..evidence.schema import KernelRow
from ..release_history import ReleaseHistory
from ..table import Cell, Table

NOTE = (
    "What is SIMULATED ran on no Mac: it says how operators are dispatched, and is no evidence about the values, "
    "dtypes or speed of one. What a wheel declares was not run at all."
)
NO_REAL_DEVICE = (
    "No real device has sent evidence yet. On a Mac, `mpsmith evidence collect` makes a file of it; docs/evidence.md "
    "says where that goes."
)
# So many devices stand beside each other in the table of all operators; the operators' pages have all of them.
_BESIDE = 12
_SAFE = re.compile(r"[^a-z0-9_]+")


def findings_with(summary: AuditSummary, shown: ShownDevices) -> Findings:
    """The findings of all devices and of the audit that the site is about, which comes before evidence of its kind."""
    audited = DeviceFamily.of_audit({**summary.run.environment, "simulated": summary.run.simulated})
    found = dict(shown.findings)
    found[audited] = {**found.get(audited, {}), **findings_of(overload_rows(summary))}
    return {kind: found[kind] for kind in sorted(found)}


def matrix_of(summary: AuditSummary, findings: Findings, history: ReleaseHistory | None) -> Matrix:
    """Every operator of the audit or of a device, by devices and releases."""
    wheels = Wheels(history.releases, history.standings) if history else Wheels()
    return Matrix(findings, wheels, [operator.name for operator in summary.operators])


def file_names(names: Iterable[str], prefix: str) -> dict[str, str]:
    """A file for each name, of plain letters, no two the same on any disk: `mode.html` of "aten::mode"."""
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
    reports: Sequence[DeviceReport],
    release: str,
    pages: Mapping[str, str],
    device_pages: Mapping[str, str],
) -> list[Table]:
    """The devices, where real ones disagree, and every operator on each.

    Args:
        findings: of all devices; `matrix` of the same, `reports` of those that sent a file.
        release: whose wheel stands beside the devices.
        pages: the page of each operator; `device_pages` of each device with a report.
    """
    found = [
        _devices(findings, reports, device_pages),
        _conflicts(findings, pages),
        _operators(matrix, release, pages),
    ]
    return [table for table in found if table.rows]


def _devices(findings: Findings, reports: Sequence[DeviceReport], pages: Mapping[str, str]) -> Table:
    by_kind = {report.kind: report for report in reports}
    rows: list[tuple[Cell, ...]] = []
    for kind, operators in findings.items():
        report = by_kind.get(kind)
        verdicts = Counter(finding.verdict.value for finding in operators.values())
        rows.append(
            (
                str(kind),
                _grade(kind),
                f"{report.collected:%Y-%m-%d}" if report else "this audit",
                len(operators),
                report.executed if report else "",
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
            "; ".join(f"{kind.chip}, macOS {kind.macos}: {verdict.value}" for kind, verdict in conflict.said.items()),
        )
        for conflict in conflicts(findings)
    )
    note = "Real devices with the same release of torch. Nothing is averaged."
    heading = "Operators on which real devices disagree"
    return Table(heading, ("operator", "torch", "what they say"), rows, note, frozenset({"operator"}), pages)


def _operators(matrix: Matrix, release: str, pages: Mapping[str, str]) -> Table:
    devices = [column for column in matrix.columns if column.kind is not ColumnKind.FROM_WHEEL]
    beside = devices[:_BESIDE]
    rows = tuple(_row(matrix, operator, release, beside) for operator in matrix.operators)
    more = f" {len(devices) - len(beside)} more devices are on the operators' pages." if devices[_BESIDE:] else ""
    return Table(
        "Operators by device",
        ("operator", f"torch {release}, from the wheel", *map(str, beside)),
        rows,
        f"The verdict with the newest torch that the device was asked with, in brackets.{more} An operator's page has "
        "every release.",
        links=pages,
    )


def _row(matrix: Matrix, operator: str, release: str, columns: Sequence[MatrixColumn]) -> tuple[Cell, ...]:
    declared = matrix.wheels.of(operator, release)
    said = matrix.newest(operator)
    cells = (f"{said[column][1].value} ({said[column][0]})" if column in said else "" for column in columns)
    return (operator, declared.value if declared else "", *cells)


def report_lead(report: DeviceReport) -> list[str]:
    """The sentences at the top of a device's page."""
    whole = "" if report.complete else " It did not come to its end."
    told = f"{report.executed:,} cases executed, {report.samples} samples.{whole}"
    lines = [f"The newest file, of {report.collected:%Y-%m-%d}: {told}"]
    return [NOTE, *lines] if report.simulated else lines


def report_tables(report: DeviceReport) -> list[Table]:
    """The machine, what its cases came to, those that fail, and the kernels."""
    mark = " (SIMULATED)" if report.simulated else ""
    found = [
        Table(f"The machine{mark}", ("what", "value"), tuple(_machine(report))),
        Table(
            f"Cases by verdict{mark}",
            ("verdict", "cases"),
            tuple((verdict.value, number) for verdict, number in report.cases.items()),
        ),
        _failing(report, mark),
        Table(
            f"Kernels of mpsmith there{mark}",
            ("family", "outcome", "cases", "checks", "ms", "ms without it", "ms on the CPU", "without it"),
            tuple(_kernel(row) for row in report.kernels),
            "Only kernels that pass on a real device become verified. Times are medians of a call.",
            frozenset({"family"}),
        ),
    ]
    return [table for table in found if table.rows]


def _failing(report: DeviceReport, mark: str) -> Table:
    more = f" {report.more:,} more are counted and not listed." if report.more else ""
    return Table(
        f"Failing cases{mark}",
        ("case", "verdict", "message"),
        tuple((case.label, case.verdict.value, case.message) for case in report.failing),
        f"Cases that crash, hang, are wrong or refuse a dtype, as `mpsmith replay` names them.{more}",
        frozenset({"case"}),
    )


def _machine(report: DeviceReport) -> Iterator[tuple[Cell, ...]]:
    machine = report.machine
    yield "evidence", _grade(report.kind)
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
    told = tuple("" if time is None else f"{time:.3f}" for time in times)
    return (row.family, outcome, row.cases, ", ".join(row.checks), *told, timing.without_is if timing else row.untimed)


def _grade(kind: DeviceFamily) -> str:
    return "SIMULATED, not evidence about a Mac" if kind.simulated else "real device"
