"""Sentences that all formats share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..audit.compiled.verdicts import SEVERITY as COMPILED_SEVERITY
from ..audit.findings.known_reports import in_words
from ..audit.findings.results import AuditSummary
from ..audit.findings.run_facts import RunFacts
from ..audit.model.verdicts import CaseVerdict, Grade, OverloadVerdict
from .counting import counted

SIMULATED_NOTE = (
    "The mps device was SIMULATED: its kernels run on the CPU. The results show how operators are dispatched. "
    "They are not evidence about the values, dtypes or speed of a Mac."
)
HOST_CODE_NOTE = (
    "The mps device was SIMULATED. Where the grade is host code, PyTorch's own host code of {code} and its Metal "
    "kernels computed on the host, without Apple's MPSGraph, mathematics library, code generator and GPU; where it is "
    "dispatch only, the CPU's kernels did, and nothing is known about the values of a Mac. Nothing is known about its "
    "speed."
)
SHIPPED_NOTE = (
    "The mps device was SIMULATED. Where the grade is shipped kernel, the Metal kernels that torch {release} ships to "
    "Macs computed on the host, without Apple's mathematics library, code generator and GPU; where it is dispatch "
    "only, the CPU's kernels did, and nothing is known about the values of a Mac. Nothing is known about its speed."
)

MEANING: dict[OverloadVerdict, str] = {
    OverloadVerdict.NATIVE: "right results from its own kernel on mps",
    OverloadVerdict.COMPOSITE: "right results, composed of operators that run on mps",
    OverloadVerdict.FALLBACK: "ran on the CPU, because mps does not support it",
    OverloadVerdict.MISSING: "refused: not implemented for mps",
    OverloadVerdict.WRONG: "differs from the CPU beyond the tolerance, or raises where the CPU does not",
    OverloadVerdict.DTYPE_GAP: "works, but refuses some dtype that the CPU takes",
    OverloadVerdict.CRASH: "ended the process, or ran out of memory",
    OverloadVerdict.TIMEOUT: "did not come back in time",
    OverloadVerdict.REFERENCE_FAILED: "the CPU itself failed: nothing to compare with",
    OverloadVerdict.UNREACHABLE: "no evidence: not executed by this run, with the reason",
}

GRADE_MEANING: dict[Grade, str] = {
    Grade.REAL_DEVICE: "a Mac computed it",
    Grade.SHIPPED_KERNEL: "the release's own compiled Metal kernel ran on the host; Apple's mathematics library and "
    "code generator were not involved",
    Grade.HOST_CODE: "PyTorch's own host code ran on the host, with its Metal kernels and a stand-in for MPSGraph",
    Grade.DISPATCH_ONLY: "the CPU's kernel replaced it: shows how the call is dispatched, nothing about values",
}

LETTERS: dict[OverloadVerdict, str] = {
    OverloadVerdict.NATIVE: "N",
    OverloadVerdict.COMPOSITE: "C",
    OverloadVerdict.FALLBACK: "F",
    OverloadVerdict.MISSING: "M",
    OverloadVerdict.WRONG: "W",
    OverloadVerdict.DTYPE_GAP: "D",
    OverloadVerdict.CRASH: "X",
    OverloadVerdict.TIMEOUT: "T",
    OverloadVerdict.REFERENCE_FAILED: "R",
    OverloadVerdict.UNREACHABLE: "·",
}

CASE_LETTERS: dict[CaseVerdict, str] = {
    CaseVerdict.PASSED: "P",
    CaseVerdict.FALLBACK: "F",
    CaseVerdict.MISSING: "M",
    CaseVerdict.WRONG: "W",
    CaseVerdict.DTYPE_GAP: "D",
    CaseVerdict.CRASH: "X",
    CaseVerdict.TIMEOUT: "T",
    CaseVerdict.REFERENCE_FAILED: "R",
    CaseVerdict.SKIPPED: "S",
}


# Marks the letter of a verdict if a minority of cases crashes, times out or is wrong.
PARTLY_BROKEN = "!"


# Column heads for maps in a terminal.
SHORT_DTYPES = {
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "complex64": "c64",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "bool": "b",
}


def title(summary: AuditSummary) -> str:
    """What was audited: "Coverage of torch 2.13.0+cpu on the SIMULATED mps device"."""
    device = "SIMULATED mps device" if summary.run.simulated else "mps device"
    return f"Coverage of torch {summary.run.environment.get('torch', 'unknown')} on the {device}"


def simulated_note(summary: AuditSummary) -> str:
    """The note on what a simulated run is not evidence of; "" for a real device."""
    if not summary.run.simulated:
        return ""
    if summary.run.host_code:
        return HOST_CODE_NOTE.format(code=summary.run.host_code)
    return SIMULATED_NOTE if summary.shipped is None else SHIPPED_NOTE.format(release=summary.shipped.release)


def subtitle(summary: AuditSummary) -> str:
    """The simulated release, or this chip and system."""
    environment = summary.run.environment
    if summary.run.simulated:
        return f"with the coverage of torch {environment.get('profile') or summary.surface_release}"
    return f"on {environment.get('chip', 'unknown chip')}, {environment.get('os', 'unknown system')}"


def marked(heading: str, summary: AuditSummary) -> str:
    """A heading of a table or chart, marked where the run was simulated."""
    return f"{heading} (SIMULATED)" if summary.run.simulated else heading


def key_figures(summary: AuditSummary) -> list[str]:
    """The run in a few sentences: first what was executed, then the results."""
    run = summary.run
    if run.executed == 0:
        return [f"No case was executed, so nothing is known about any operator. {completeness(run)}"]
    counts = summary.overload_counts
    faults = [f"{counts[v]:,} {v.value}" for v in counts if not v.is_support and v not in _NOT_EXECUTED]
    executed = summary.executed_overloads
    partly = [f"{summary.partly_broken:,} right in most cases and broken in some"] if summary.partly_broken else []
    not_executed = summary.reachable - executed
    part = [f"FILTERED: only a part is shown and counted ({summary.selection})."] if summary.selection else []
    lines = [
        *part,
        f"{run.executed:,} cases executed, {run.gradients:,} of them with gradients. {completeness(run)}",
        f"{summary.supported:,} of {executed:,} executed overloads gave right results on the device itself; "
        f"the others: {', '.join([*faults, *partly]) or 'none'}.",
        f"Evidence, by the strongest that an overload has: {_by_grade(summary)}.",
        f"{not_executed:,} of {summary.reachable:,} reachable overloads were not executed, so nothing is known about "
        f"them; {summary.ruled_out:,} more are out of reach for any user of mps, each by a named rule.",
    ]
    if summary.explanation.non_passes:
        lines.append(f"{summary.explanation.sentence}.")
    lines += _of_host_code(summary)
    lines += _of_shipped_kernels(summary)
    if summary.fallbacks:
        named = counted(len(summary.fallbacks), "operator")
        lines.append(f"The device named {named} as falling back to the CPU or not implemented.")
    faults_of_none = {(u.entry, u.verdict) for u in summary.unattributed if u.verdict in _FAULTY_CASES}
    if faults_of_none:
        findings = counted(len(faults_of_none), "finding")
        lines.append(f"{findings} could not be attributed to an overload: see Findings that no overload answers for.")
    seen, possible = summary.pairs
    if possible:
        at = f"Cases were at {seen:,} of {possible:,} possible pairs of dtype, layout, size, values, form and gradient"
        left_out = f"; {run.repeating:,} samples that are at no further pair were left out" if run.repeating else ""
        lines.append(f"{at}{left_out}.")
    lines += _of_known_reports(summary)
    lines += of_compiled_calls(summary)
    if summary.disagreements:
        differing = counted(len(summary.disagreements), "overload")
        lines.append(f"{differing} did not behave as the surface says: see Disagreements.")
    return lines


def _by_grade(summary: AuditSummary) -> str:
    counts = summary.grade_counts
    cases = summary.run.grades
    return "; ".join(
        f"{grade.value} for {counted(counts[grade], 'overload')} ({counted(cases.get(grade, 0), 'case')})"
        for grade in counts
    )


def _of_host_code(summary: AuditSummary) -> list[str]:
    if not summary.run.host_code:
        return []
    native = [overload for overload in summary.overloads if overload.dispatch and overload.dispatch.has_kernel]
    with_evidence = sum(overload.grade is Grade.HOST_CODE for overload in native)
    return [
        f"Host code of {summary.run.host_code}: evidence for {with_evidence:,} of {len(native):,} native overloads; "
        "MPSGraph is a stand-in."
    ]


def _of_shipped_kernels(summary: AuditSummary) -> list[str]:
    shipped = summary.shipped
    if shipped is None:
        return []
    launched = f"{len(shipped.launches):,} of {shipped.kernels:,} launched"
    if summary.run.host_code:
        return [f"Kernels that torch {shipped.release} ships to Macs: {launched}."]
    wrong = [kernel for kernel in summary.wrong_kernels if not kernel.rule]
    native = f"{shipped.native_shipped:,} of {shipped.native:,} native overloads"
    return [
        f"Kernels that torch {shipped.release} ships to Macs: {launched}; evidence of shipped kernels for {native}; "
        f"{counted(len(wrong), 'wrong result')} of shipped kernels that no rule explains."
    ]


def _of_known_reports(summary: AuditSummary) -> list[str]:
    words = in_words(summary.known_reports, simulated=summary.run.simulated)
    return [f"{words}."] if words else []


def of_compiled_calls(summary: AuditSummary) -> list[str]:
    """The results of the audit under torch.compile in two sentences; empty without one."""
    lane = summary.compiled
    if lane is None:
        return []
    counts = ", ".join(f"{lane.operators[v]:,} {v.value}" for v in reversed(COMPILED_SEVERITY) if lane.operators.get(v))
    beside = [operator.compiled for operator in summary.operators if operator.compiled]
    cures, breaks = sum(bool(compiled.cures) for compiled in beside), sum(bool(compiled.breaks) for compiled in beside)
    return [
        f"Under torch.compile, {counted(lane.executed, 'case')} of {', '.join(lane.dtypes)}, operators are: {counts}. "
        f"Compiling is the cure for {counted(cures, 'operator')} here, and breaks {counted(breaks, 'operator')}."
    ]


_FAULTY_CASES = (CaseVerdict.CRASH, CaseVerdict.TIMEOUT, CaseVerdict.WRONG, CaseVerdict.DTYPE_GAP)
_NOT_EXECUTED = (OverloadVerdict.REFERENCE_FAILED, OverloadVerdict.UNREACHABLE)


def graded(grade: Grade | None) -> str:
    """The grade in a cell of a table: its word, "" if nothing was executed."""
    return grade.value if grade else ""


def completeness(run: RunFacts) -> str:
    """Whether everything planned was executed: "All 5,958 groups of cases are complete."."""
    if run.groups_planned == 0:
        return "UNFINISHED: the run ended before any case was planned."
    if run.complete:
        return f"All {run.groups_planned:,} groups of cases are complete."
    return (
        f"UNFINISHED: {run.groups_done:,} of {run.groups_planned:,} groups of cases are complete "
        "(go on with `mpsmith audit --resume`)."
    )


def settings_text(settings: Mapping[str, Any]) -> str:
    """The settings on one line: "samples default, seed 0, ops all, dtypes all"."""
    parts = [f"samples {settings.get('samples', 'unknown')}", f"seed {settings.get('seed', 'unknown')}"]
    for name in ("ops", "dtypes"):
        parts.append(f"{name} {', '.join(settings.get(name) or ['all'])}")
    if settings.get("imports"):
        parts.append(f"imports {', '.join(settings['imports'])}")
    if settings.get("shipped"):
        parts.append(f"kernels shipped by {settings['shipped']} in {settings.get('shipped_samples')} cases")
    if settings.get("host_code"):
        parts.append("PyTorch's own host code" + (f" as on macOS {settings['macos']}" if settings.get("macos") else ""))
    if settings.get("large"):
        parts.append("tensors beyond 2^31 elements too")
    return ", ".join(parts)


def surface_note(summary: AuditSummary) -> str | None:
    """A warning where the surface is not that of the torch that ran, else None."""
    ran, declared = str(summary.run.environment.get("torch", "")), summary.surface_release
    if summary.run.simulated or not ran or ran.split("+")[0] == declared.split("+")[0]:
        return None
    return f"The run used torch {ran}, the list of overloads is that of torch {declared}: some may not match."


def duration_text(seconds: float | None) -> str:
    """A duration such as "3 min 7 s"; "unfinished" for None."""
    if seconds is None:
        return "unfinished"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
