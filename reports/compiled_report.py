"""The report of a run under torch.compile: a few lines for the terminal, Markdown, and JSON.

Each operator is compared with the verdict of the eager call in the registry. So the report shows where compiling
replaces a fallback, and where it breaks a call that works.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from enum import Enum
from typing import Any

from ..audit.compiled.verdicts import SEVERITY, CompiledVerdict
from ..audit.findings.compiled.summary import CompiledFinding, CompiledOperator, CompiledSummary, aten_names
from .table import Cell, Document, Table, escaped, shortened

FORMAT, VERSION = "mpsmith-compiled-report", 1

# Measured verdicts of eager calls that mps lacks, and of those that work.
GAPS = ("fallback", "missing")
WORKS = ("native", "composite")
SIMULATED = (
    "The mps device was SIMULATED: the host ran the Metal that Inductor generates, with its own arithmetic. A result "
    "that is wrong by the logic of that source is wrong on a Mac; of Apple's compiler and functions nothing is known."
)
LINES_OF_TERMINAL = 12


def against_eager(operator: CompiledOperator, eager: Mapping[str, str]) -> str:
    """The word "cure" if only the compiled operator runs on mps, "breaks" if only the eager one is right, else ""."""
    measured = eager_verdict(operator.name, eager)
    if measured in GAPS and operator.verdict is CompiledVerdict.METAL:
        return "cure"
    return "breaks" if measured in WORKS and operator.verdict.is_broken else ""


def eager_verdict(name: str, eager: Mapping[str, str]) -> str:
    """The measured verdict of the eager operator, "" if its name is unknown."""
    return next((eager[aten_name] for aten_name in aten_names(name) if aten_name in eager), "")


def terminal_lines(summary: CompiledSummary, eager: Mapping[str, str]) -> list[str]:
    """The lines to print when a run ends."""
    mark = " on the SIMULATED mps device" if summary.run.simulated else ""
    lines = [f"run {summary.run.id}{mark}, every call under torch.compile: {summary.executed:,} cases executed"]
    lines.append(f"  {len(summary.operators):,} operators: {_counted(summary.operator_counts)}")
    lines.append(f"  cases: {_counted(summary.counts)}")
    lines.append(f"  {summary.breaks:,} graph breaks, {summary.recompilations:,} recompilations")
    for word, text in (("cure", "compiled, Metal does what mps lacks"), ("breaks", "works until it is compiled")):
        names = [operator.name for operator in summary.operators if against_eager(operator, eager) == word]
        if names:
            lines.append(f"  {text}: {shortened(names, 10)}")
    for finding in summary.findings[:LINES_OF_TERMINAL]:
        notes = [finding.faulty_stage.value] if finding.faulty_stage else []
        if finding.error is not None:
            notes.append(f"{finding.error:.3g} times the tolerance")
        if finding.known_defect:
            notes.append(f"looks like {finding.known_defect}")
        notes_text = f" ({', '.join(notes)})" if notes else ""
        lines.append(f"  {finding.verdict.value}{notes_text}: {finding.example}: {_cut(finding.reason)}")
    num_known = sum(bool(finding.known_defect) for finding in summary.findings)
    if num_known:
        lines.append(
            f"  {num_known:,} of {len(summary.findings):,} findings look like known defects, shown by"
            " `mpsmith compiled defects U1`"
        )
    left = len(summary.findings) - LINES_OF_TERMINAL
    if left > 0:
        lines.append(f"  and {left:,} findings more: mpsmith report --compiled")
    return lines


def markdown(summary: CompiledSummary, eager: Mapping[str, str]) -> str:
    """The report as Markdown."""
    environment = summary.run.environment
    return Document(
        f"torch.compile on mps: torch {escaped(str(environment['torch']))}",
        [
            *([f"> **SIMULATED.** {SIMULATED}"] if summary.run.simulated else []),
            f"{summary.executed:,} cases of {len(summary.operators):,} operators were compiled by Inductor and "
            f"compared with the CPU; {summary.breaks:,} graph breaks, {summary.recompilations:,} recompilations.",
        ],
        [
            Table(
                "Verdicts",
                ("verdict", "operators", "cases"),
                tuple((v.value, summary.operator_counts[v], summary.counts[v]) for v in SEVERITY if summary.counts[v]),
            ),
            Table("Findings", _FINDING_COLUMNS, tuple(map(_finding_row, summary.findings)), code=_CODE),
            *(_against_eager_table(summary, eager, word, heading) for word, heading in _AGAINST_EAGER.items()),
            Table("Operators", _OPERATOR_COLUMNS, tuple(map(_operator_row, summary.operators)), code=_CODE),
            Table(
                "What Dynamo cannot trace",
                ("operator", "reason"),
                tuple((o.name, "; ".join(map(_cut, o.untraced))) for o in summary.operators if o.untraced),
                code=_CODE,
            ),
        ],
    ).markdown()


_CODE = frozenset({"operator", "case", "line"})
_FINDING_COLUMNS = (
    *("verdict", "operator", "dtypes", "faulty stage", "times the tolerance", "looks like"),
    *("reason", "line", "case", "cases"),
)
_OPERATOR_COLUMNS = ("operator", "verdict", "by dtype", "stayed aten", "on the CPU", "breaks")
_AGAINST_EAGER = {
    "cure": "Compiling is the cure: mps has no kernel, and the generated Metal is right",
    "breaks": "Compiling breaks it: the eager call works",
}


def _against_eager_table(summary: CompiledSummary, eager: Mapping[str, str], word: str, heading: str) -> Table:
    chosen = [operator for operator in summary.operators if against_eager(operator, eager) == word]
    rows = tuple((o.name, eager_verdict(o.name, eager), o.verdict.value) for o in chosen)
    return Table(heading, ("operator", "eager", "compiled"), rows, code=_CODE)


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
            operator.name: {
                **_plain(asdict(operator)),
                "eager": eager_verdict(operator.name, eager),
                "against_eager": against_eager(operator, eager),
            }
            for operator in summary.operators
        },
        "findings": [_plain(asdict(finding)) for finding in summary.findings],
    }


def as_json(summary: CompiledSummary, eager: Mapping[str, str]) -> str:
    """The report as JSON text."""
    return json.dumps(as_data(summary, eager), indent=1, ensure_ascii=False) + "\n"


def _finding_row(finding: CompiledFinding) -> tuple[Cell, ...]:
    return (
        finding.verdict.value,
        finding.operator,
        ", ".join(finding.dtypes) + (" (symbolic sizes only)" if finding.dynamic_only else ""),
        finding.faulty_stage.value if finding.faulty_stage else "",
        "" if finding.error is None else f"{finding.error:.3g}",
        finding.known_defect,
        _cut(finding.reason),
        finding.line,
        finding.example,
        finding.cases,
    )


def _operator_row(operator: CompiledOperator) -> tuple[Cell, ...]:
    others = {d: v.value for d, v in operator.dtypes.items() if v is not operator.verdict}
    return (
        operator.name,
        operator.verdict.value,
        ", ".join(f"{dtype}: {verdict}" for dtype, verdict in others.items()),
        ", ".join(operator.aten),
        ", ".join(operator.on_cpu),
        operator.breaks or "",
    )


def _counted(counts: Mapping[CompiledVerdict, int]) -> str:
    return ", ".join(f"{counts[verdict]:,} {verdict.value}" for verdict in reversed(SEVERITY) if counts.get(verdict))


def _cut(text: str, limit: int = 160) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(_plain(key)): _plain(field) for key, field in value.items() if field not in ("", None, (), False)}
    return [_plain(element) for element in value] if isinstance(value, (tuple, list)) else value
