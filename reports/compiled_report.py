"""What a run under torch.compile found: a few lines for the terminal, Markdown, and JSON.

Beside each operator stands what the registry has measured of the call as it is, so that one sees where compiling is the
cure for a fallback, and where it breaks what works.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from enum import Enum
from typing import Any

from tabulate import tabulate

from ..audit.compiled.verdicts import SEVERITY, CompiledVerdict
from ..audit.findings.compiled.summary import CompiledFinding, CompiledOperator, CompiledSummary, aten_names
from .table import escaped, unpadded

FORMAT, VERSION = "mpsmith-compiled-report", 1

# What an eager call that mps cannot do itself is measured as, and one that it can.
GAPS = ("fallback", "missing")
WORKS = ("native", "composite")
SIMULATED = (
    "The mps device was SIMULATED: the host ran the Metal that Inductor generates, with its own arithmetic. A result "
    "that is wrong by the logic of that source is wrong on a Mac; of Apple's compiler and functions nothing is known."
)
LINES_OF_TERMINAL = 12


def against_eager(operator: CompiledOperator, eager: Mapping[str, str]) -> str:
    """ "cure" where compiling does what mps has no kernel for, "breaks" where it breaks what works, else ""."""
    measured = eager_verdict(operator.name, eager)
    if measured in GAPS and operator.verdict is CompiledVerdict.METAL:
        return "cure"
    return "breaks" if measured in WORKS and operator.verdict.is_broken else ""


def eager_verdict(name: str, eager: Mapping[str, str]) -> str:
    """What was measured of the operator's calls as they are, "" where nothing is known under its name."""
    return next((eager[each] for each in aten_names(name) if each in eager), "")


def terminal_lines(summary: CompiledSummary, eager: Mapping[str, str]) -> list[str]:
    """What to print when a run ends."""
    mark = " on the SIMULATED mps device" if summary.run.simulated else ""
    lines = [f"run {summary.run.id}{mark}, every call under torch.compile: {summary.executed:,} cases executed"]
    if summary.run.environment.get("codegen"):
        lines.append(f"  OVERLAY: {_overlay(summary)}")
    lines.append(f"  {len(summary.operators):,} operators: {_counted(summary.operator_counts)}")
    lines.append(f"  cases: {_counted(summary.counts)}")
    lines.append(f"  {summary.breaks:,} graph breaks, {summary.recompilations:,} recompilations")
    for word, text in (("cure", "compiled, Metal does what mps lacks"), ("breaks", "works until it is compiled")):
        names = [each.name for each in summary.operators if against_eager(each, eager) == word]
        if names:
            lines.append(f"  {text}: {_some(names)}")
    for finding in summary.findings[:LINES_OF_TERMINAL]:
        said = [finding.faulty_stage.value] if finding.faulty_stage else []
        if finding.error is not None:
            said.append(f"{finding.error:.3g} times the tolerance")
        if finding.known_defect:
            said.append(f"looks like {finding.known_defect}")
        blame = f" ({', '.join(said)})" if said else ""
        lines.append(f"  {finding.verdict.value}{blame}: {finding.example}: {_cut(finding.reason)}")
    known = sum(bool(finding.known_defect) for finding in summary.findings)
    if known:
        lines.append(
            f"  {known:,} of {len(summary.findings):,} findings look like known defects, shown by"
            " `mpsmith compiled defects U1`"
        )
    left = len(summary.findings) - LINES_OF_TERMINAL
    if left > 0:
        lines.append(f"  and {left:,} findings more: mpsmith report --compiled")
    return lines


def _overlay(summary: CompiledSummary) -> str:
    """What an audit with the code generator of another release says of itself."""
    return (
        f"The code generator of torch {summary.run.environment['codegen']} was laid over the Inductor of torch "
        f"{summary.run.environment['torch']}: no release as anybody has it."
    )


def markdown(summary: CompiledSummary, eager: Mapping[str, str]) -> str:
    """The report as Markdown."""
    environment = summary.run.environment
    blocks = [f"# torch.compile on mps: torch {escaped(str(environment['torch']))}"]
    if environment.get("codegen"):
        blocks.append(f"> **OVERLAY.** {_overlay(summary)}")
    if summary.run.simulated:
        blocks.append(f"> **SIMULATED.** {SIMULATED}")
    blocks.append(
        f"{summary.executed:,} cases of {len(summary.operators):,} operators were compiled by Inductor and compared "
        f"with the CPU; {summary.breaks:,} graph breaks, {summary.recompilations:,} recompilations."
    )
    rows = [(v.value, summary.operator_counts[v], summary.counts[v]) for v in SEVERITY if summary.counts[v]]
    blocks.append(_table("Verdicts", ("verdict", "operators", "cases"), rows))
    blocks.append(
        _table(
            "Findings",
            ("verdict", "operator", "dtypes", "blame", "times the tolerance", "looks like", "reason", "case", "cases"),
            [_finding_row(each) for each in summary.findings],
        )
    )
    for word, heading in (
        ("cure", "Compiling is the cure: mps has no kernel, and the generated Metal is right"),
        ("breaks", "Compiling breaks it: the call works as it is"),
    ):
        chosen = [each for each in summary.operators if against_eager(each, eager) == word]
        rows_of_word = [(f"`{o.name}`", eager_verdict(o.name, eager), o.verdict.value) for o in chosen]
        blocks.append(_table(heading, ("operator", "as it is", "compiled"), rows_of_word))
    blocks.append(
        _table(
            "Operators",
            ("operator", "verdict", "by dtype", "stayed aten", "on the CPU", "breaks"),
            [_operator_row(each) for each in summary.operators],
        )
    )
    untraced = [(f"`{o.name}`", escaped("; ".join(map(_cut, o.untraced)))) for o in summary.operators if o.untraced]
    blocks.append(_table("What Dynamo cannot trace", ("operator", "reason"), untraced))
    return "\n\n".join(block for block in blocks if block) + "\n"


def as_data(summary: CompiledSummary, eager: Mapping[str, str]) -> dict[str, Any]:
    """The report as plain data: every operator and finding, with the generated source of each finding's example."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "simulated": summary.run.simulated,
        "run": summary.run.id,
        "torch": summary.run.environment["torch"],
        "executed": summary.executed,
        "breaks": summary.breaks,
        "recompilations": summary.recompilations,
        "verdicts": {verdict.value: number for verdict, number in summary.counts.most_common()},
        "operators": {
            each.name: {
                **_plain(asdict(each)),
                "eager": eager_verdict(each.name, eager),
                "against_eager": against_eager(each, eager),
            }
            for each in summary.operators
        },
        "findings": [_plain(asdict(each)) for each in summary.findings],
    }


def as_json(summary: CompiledSummary, eager: Mapping[str, str]) -> str:
    """The report as JSON text."""
    return json.dumps(as_data(summary, eager), indent=1, ensure_ascii=False) + "\n"


def _finding_row(finding: CompiledFinding) -> tuple[object, ...]:
    line = f" `{finding.line}`".replace("|", "\\|") if finding.line else ""
    return (
        finding.verdict.value,
        f"`{finding.operator}`",
        ", ".join(finding.dtypes) + (" (symbolic sizes only)" if finding.dynamic_only else ""),
        finding.faulty_stage.value if finding.faulty_stage else "",
        "" if finding.error is None else f"{finding.error:.3g}",
        finding.known_defect,
        escaped(_cut(finding.reason)) + line,
        f"`{finding.example}`",
        finding.cases,
    )


def _operator_row(operator: CompiledOperator) -> tuple[object, ...]:
    others = {d: v.value for d, v in operator.dtypes.items() if v is not operator.verdict}
    return (
        f"`{operator.name}`",
        operator.verdict.value,
        ", ".join(f"{dtype}: {verdict}" for dtype, verdict in others.items()),
        escaped(", ".join(operator.aten)),
        escaped(", ".join(operator.on_cpu)),
        operator.breaks or "",
    )


def _table(heading: str, columns: Iterable[str], rows: list[tuple[Any, ...]]) -> str:
    if not rows:
        return ""
    table = tabulate(rows, headers=list(columns), tablefmt="pipe", disable_numparse=True)
    return f"## {heading}\n\n{unpadded(table)}"


def _counted(counts: Mapping[CompiledVerdict, int]) -> str:
    return ", ".join(f"{counts[verdict]:,} {verdict.value}" for verdict in reversed(SEVERITY) if counts.get(verdict))


def _some(names: list[str], most: int = 10) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _cut(text: str, limit: int = 160) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(_plain(key)): _plain(each) for key, each in value.items() if each not in ("", None, (), False)}
    return [_plain(each) for each in value] if isinstance(value, (tuple, list)) else value
