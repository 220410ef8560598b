"""The output of `mpsmith evidence`. All text from files was validated before, so it can be printed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..reports.counting import counted

if TYPE_CHECKING:
    from ..reports.evidence.adding import Added
    from ..reports.evidence.devices import Findings
    from ..reports.evidence.schema import EvidenceFile, KernelRow, MachineFacts

LISTED = 20


def machine_line(machine: MachineFacts) -> str:
    """The machine, in one line."""
    cores = f", {machine.gpu_cores} GPU cores" if machine.gpu_cores else ""
    memory = f", {machine.memory_gib} GiB" if machine.memory_gib else ""
    build = f" ({machine.build})" if machine.build else ""
    return f"{machine.chip}{cores}{memory}, {machine.system} {machine.release}{build}, torch {machine.torch}"


def mark(simulated: bool) -> str:
    """Says whether the device was a real or a simulated one."""
    return "SIMULATED, not evidence about a Mac" if simulated else "real device"


def file_lines(evidence: EvidenceFile) -> Iterator[str]:
    """One file: its machine, the results of the audit and of the kernels, and the cases that fail."""
    audit = evidence.audit
    yield f"{mark(evidence.simulated)}: {machine_line(evidence.machine)}, {evidence.day}"
    if evidence.machine.profile:
        yield f"  the coverage of torch {evidence.machine.profile} was simulated"
    yield from (f"  {name}={value}" for name, value in evidence.machine.variables.items())
    asked = [f"{name} {', '.join(values)}" for name, values in _asked(evidence).items() if values]
    yield f"audit: samples {audit.samples}{''.join(f', {option}' for option in asked)}" + (
        "" if audit.complete else ", NOT COMPLETE"
    )
    counts = ", ".join(f"{number:,} {verdict.value}" for verdict, number in audit.cases.items())
    yield f"  {audit.executed:,} cases executed: {counts}"
    verdicts = Counter(dtype_row.verdict.value for row in audit.overloads.values() for dtype_row in row.dtypes.values())
    counted = ", ".join(f"{number:,} {verdict}" for verdict, number in verdicts.most_common())
    yield f"  {len(audit.overloads):,} overloads; overload and dtype: {counted}"
    failing = [case for case in audit.failing_cases() if case[1].value not in ("fallback", "missing")]
    shown = failing[:LISTED]
    yield from (f"  {label}: {verdict.value}{f', {message}' if message else ''}" for label, verdict, message in shown)
    if len(failing) > len(shown):
        yield f"  … {len(failing) - len(shown):,} more (--json lists them)"
    if audit.left_out:
        yield f"  {sum(audit.left_out.values()):,} failing cases are counted and not listed"
    if evidence.kernels:
        yield kernel_table(evidence.kernels)


def _asked(evidence: EvidenceFile) -> dict[str, list[str]]:
    return {name: getattr(evidence.audit, name) for name in ("ops", "dtypes", "sources")}


def kernel_table(kernels: Sequence[KernelRow]) -> str:
    """The kernels' outcomes and times."""
    from tabulate import tabulate

    return tabulate(
        [
            (row.family, row.cases, outcome(row), *_times(row), row.timing.without_is if row.timing else row.untimed)
            for row in kernels
        ],
        headers=("kernels", "cases", "outcome", "kernel ms", "without ms", "cpu ms", "without is"),
        floatfmt=".3f",
        maxcolwidths=(None, None, 40, None, None, None, 40),
    )


def outcome(row: KernelRow) -> str:
    """The outcome of verifying a family, in words."""
    if row.ended:
        return row.ended
    if row.failed:
        return f"{row.failed} failed"
    return "passed" if row.cases else "nothing ran, torch has its own"


def _times(row: KernelRow) -> tuple[float | None, float | None, float | None]:
    timing = row.timing
    return (timing.kernel, timing.without, timing.cpu) if timing else (None, None, None)


def file_json(evidence: EvidenceFile) -> dict[str, Any]:
    """The whole file as plain data."""
    plain: dict[str, Any] = evidence.model_dump(mode="json", exclude_defaults=True)
    return plain


def devices_lines(findings: Findings) -> Iterator[str]:
    """All added evidence: for each kind of device the number of operators by verdict, then where devices disagree."""
    from tabulate import tabulate

    from ..reports.evidence.devices import conflicts

    rows = []
    for kind, operators in findings.items():
        verdicts = Counter(finding.verdict.value for finding in operators.values())
        newest = max((finding.day for finding in operators.values()), default="")
        rows.append((str(kind), len(operators), newest, ", ".join(f"{n} {name}" for name, n in verdicts.most_common())))
    if not rows:
        yield "no evidence has been added yet (`mpsmith evidence add FILE`)"
        return
    yield tabulate(rows, headers=("device", "operators", "newest", "verdicts"), maxcolwidths=(None, None, None, 70))
    disagreements = conflicts(findings)
    yield counted(len(disagreements), "operator on which devices disagree", "operators on which devices disagree")
    yield from (f"  {conflict}" for conflict in disagreements)


def devices_json(findings: Findings) -> dict[str, Any]:
    """All added evidence as plain data."""
    from ..reports.evidence.devices import conflicts

    return {
        "devices": [
            {
                "device": str(kind),
                "simulated": kind.simulated,
                "torch": kind.torch,
                "operators": {name: finding.verdict.value for name, finding in operators.items()},
            }
            for kind, operators in findings.items()
        ],
        "conflicts": [
            {
                "operator": conflict.operator,
                "torch": conflict.torch,
                "said": {str(kind): verdict.value for kind, verdict in conflict.verdicts.items()},
            }
            for conflict in conflicts(findings)
        ],
    }


def added_lines(added: Added) -> Iterator[str]:
    """The result of adding files, as lines."""
    from ..registry.problems import shown

    for file in added.files:
        yield f"{shown(file.path)}: {'added' if file.new else 'was there already'} ({mark(file.simulated)})"
    if added.synced is None:
        yield "the registry stays as it is: a simulated device measures nothing of a Mac and verifies no kernel"
        return
    changed = len(added.synced.added) + len(added.synced.changed) + len(added.synced.remeasured)
    yield f"registry: {counted(changed, 'operator')} measured anew on mps, {len(added.synced.unchanged)} unchanged"
    yield from (f"  {change}" for change in added.synced.changed)
    yield from (f"  {drift}" for drift in added.synced.drift if drift.device == "mps")
    yield f"kernels of {counted(len(added.verified), 'operator')} are verified on a real device"
    yield from (f"  {family}: not recorded, {why}" for family, why in added.not_verified.items())


def added_json(added: Added) -> dict[str, Any]:
    """The result of adding files, as plain data."""
    return {
        "files": [{"file": str(file.path), "new": file.new, "simulated": file.simulated} for file in added.files],
        "changed": [str(change) for change in added.synced.changed] if added.synced else [],
        "verified": list(added.verified),
        "not_verified": added.not_verified,
    }
