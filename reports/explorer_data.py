"""Data for the pages' scripts: tables of operators, overloads and test entries, and their details in separate files.

Tables are stored by column, which takes a third of the JSON of rows. Verdicts, dtypes, grades and long texts are stored
as positions in their own tables. A column named `dtype…` is a text with a digit for each dtype, "-" for a dtype without
evidence, and empty without any evidence. Details are loaded on demand.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..audit.answers import sentences
from ..audit.answers.answer import answer, known_names
from ..audit.answers.support import Support
from ..audit.findings.overload_verdict import SEVERITY
from ..audit.findings.results import (
    AuditSummary,
    DtypeEvidence,
    EntryDtype,
    EntrySummary,
    OperatorSummary,
    OverloadSummary,
    RegistryStatus,
)
from ..audit.model.verdicts import CASE_SEVERITY, CaseVerdict, Grade, OverloadVerdict
from . import compiled_tables
from .charts import style_of
from .operator_facts import OperatorFacts, reasons_of
from .release_history import LETTERS as RELEASE_LETTERS
from .release_history import ReleaseHistory
from .wording import CASE_LETTERS, GRADE_MEANING, LETTERS, MEANING, SHORT_DTYPES

# Limits for each overload and entry, which keep pages small; the JSON report has everything.
SHOWN_CASES = 4
SHOWN_TEXT = 300

FUNCTION_COLUMNS = ("name", "headline", "style", "works", "since", "steps")
_STYLES = {
    Support.WORKS: style_of(OverloadVerdict.COMPOSITE),
    Support.PARTLY: style_of(OverloadVerdict.DTYPE_GAP),
    Support.NO: style_of(OverloadVerdict.MISSING),
    Support.UNKNOWN: style_of(OverloadVerdict.UNREACHABLE),
}

# The number of detail files. The name of an operator selects its file.
PARTS = 64

GRADES = tuple(Grade)

OPERATOR_COLUMNS = (
    *(
        "name",
        "part",
        "public",
        "verdict",
        "inPart",
        "executed",
        "grade",
        "reason",
        "since",
        "status",
        "kernel",
        "upstream",
    ),
    *("before", "compiled", "compiledText", "dtypeVerdicts", "dtypeGrades", "dtypeBroken"),
)
OVERLOAD_COLUMNS = (
    *("name", "part", "public", "verdict", "executed", "grade", "reason", "before"),
    *("dtypeVerdicts", "dtypeGrades", "dtypeBroken"),
)
ENTRY_COLUMNS = ("name", "part", "public", "verdict", "executed", "grade", "reason", "dtypeVerdicts", "dtypeGrades")


def part_of(name: str) -> int:
    """The number of the file with the details of this operator or entry."""
    return zlib.crc32(name.encode()) % PARTS


class Texts:
    """Long texts that several rows share, each once; longer ones are cut."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._positions: dict[str, int] = {}

    def position(self, text: str) -> int:
        """The position of the text in `all`."""
        text = cut(text)
        if text not in self._positions:
            self._positions[text] = len(self.all)
            self.all.append(text)
        return self._positions[text]


def cut(text: str) -> str:
    """The beginning of a long text."""
    return text if len(text) <= SHOWN_TEXT else text[: SHOWN_TEXT - 1] + "…"


def legend(summary: AuditSummary, history: ReleaseHistory | None = None) -> dict[str, Any]:
    """The meanings of the positions in the tables, and the releases of the rows of releases."""
    releases = {} if history is None else {"releases": list(history.releases), "audited": history.audited}
    return {
        **releases,
        "releaseLetters": _release_letters(),
        "simulated": summary.run.simulated,
        "compiled": summary.compiled is not None,
        "dtypes": _columns(("name", "short"), [(dtype, SHORT_DTYPES.get(dtype, dtype)) for dtype in summary.dtypes]),
        "verdicts": _columns(
            ("name", "letter", "style", "meaning"), [(v.value, LETTERS[v], style_of(v), MEANING[v]) for v in SEVERITY]
        ),
        "caseVerdicts": _columns(
            ("name", "letter", "style", "meaning"),
            [(v.value, CASE_LETTERS[v], _case_style(v), "") for v in CASE_SEVERITY],
        ),
        "grades": _columns(("name", "meaning"), [(grade.value, GRADE_MEANING[grade]) for grade in GRADES]),
    }


def operator_table(summary: AuditSummary, facts: Mapping[str, OperatorFacts]) -> dict[str, Any]:
    """The operators, a row each."""
    texts = Texts()
    reasons = reasons_of(summary)
    rows = [_operator(o, facts[o.name], reasons.get(o.name, ""), summary.dtypes, texts) for o in summary.operators]
    return {**_columns(OPERATOR_COLUMNS, rows), "texts": texts.all}


def function_table(release: str | None) -> dict[str, list[Any]]:
    """The functions and modules of several operators, with their answers in a release."""
    rows = []
    for name in known_names().functions:
        answered = answer(name, release)
        if not answered.operator:
            works = [
                sentences.reason(answered),
                sentences.dtypes(answered),
                f"Evidence: {sentences.evidence(answered)}.",
            ]
            steps = [step.as_data() for step in sentences.steps(answered)]
            since = sentences.since(answered) or "Since which release is not known."
            rows.append(
                (name, sentences.headline(answered), _STYLES[answered.support], [*filter(None, works)], since, steps)
            )
    return _columns(FUNCTION_COLUMNS, rows)


def overload_table(summary: AuditSummary, before: Mapping[str, OverloadVerdict]) -> dict[str, Any]:
    """The overloads, a row each. `before`: their verdicts in an earlier run."""
    texts = Texts()
    rows = [
        (
            o.name,
            part_of(o.operator),
            int(is_public(o.operator)),
            SEVERITY.index(o.verdict),
            o.executed,
            _grade(o.grade),
            texts.position(o.reason),
            _verdict(before.get(o.name)),
            _digits(summary.dtypes, {dtype: SEVERITY.index(evidence.verdict) for dtype, evidence in o.dtypes.items()}),
            _digits(summary.dtypes, {dtype: _grade(evidence.grade) for dtype, evidence in o.dtypes.items()}),
            _digits(summary.dtypes, _broken(o)),
        )
        for o in summary.overloads
    ]
    return {**_columns(OVERLOAD_COLUMNS, rows), "texts": texts.all}


def entry_table(summary: AuditSummary) -> dict[str, Any]:
    """The test entries, a row each."""
    texts = Texts()
    rows = [
        (
            entry.name,
            part_of(entry.name),
            1,
            _case_verdict(entry.verdict),
            entry.executed,
            _grade(entry.grade),
            texts.position(_entry_reason(summary, entry)),
            _digits(
                summary.dtypes, {dtype: _case_verdict(evidence.verdict) for dtype, evidence in entry.dtypes.items()}
            ),
            _digits(summary.dtypes, dict.fromkeys(entry.dtypes, _grade(entry.grade))),
        )
        for entry in summary.entries
    ]
    return {**_columns(ENTRY_COLUMNS, rows), "texts": texts.all}


def release_table(history: ReleaseHistory, pages: Mapping[str, str]) -> dict[str, Any]:
    """Each operator in each release, for the comparison of two releases. `pages`: the file of each operator."""
    rows = [(name, file, history.row(name)) for name, file in pages.items()]
    return {
        "releases": list(history.releases),
        "audited": history.audited,
        "letters": _release_letters(),
        "operators": _columns(("name", "page", "row"), [row for row in rows if row[2]]),
    }


def _release_letters() -> dict[str, str]:
    return {letter: support.value if support else "not there" for support, letter in RELEASE_LETTERS.items()}


def details(
    summary: AuditSummary, facts: Mapping[str, OperatorFacts], pages: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """The details in PARTS files: of operators, with advice and overloads, and of entries, by name.

    `pages`: the file of each operator in a site; None for a report in one file.
    """
    parts: list[dict[str, Any]] = [{"operators": {}, "entries": {}} for _ in range(PARTS)]
    overloads: defaultdict[str, list[OverloadSummary]] = defaultdict(list)
    called: defaultdict[str, list[str]] = defaultdict(list)
    for o in summary.overloads:
        overloads[o.operator].append(o)
        for name in o.entries:
            called[name].append(o.name)
    for operator in summary.operators:
        own = sorted(overloads[operator.name], key=lambda o: SEVERITY.index(o.verdict))
        parts[part_of(operator.name)]["operators"][operator.name] = {
            **facts[operator.name].advice.as_data(),
            "compiled": compiled_tables.in_a_sentence(operator.compiled),
            **({"page": pages[operator.name]} if pages else {}),
            "overloads": [_overload_detail(summary, o) for o in own],
        }
    for entry in summary.entries:
        parts[part_of(entry.name)]["entries"][entry.name] = _entry_detail(summary, entry, called[entry.name])
    return parts


def is_public(operator: str) -> bool:
    """Whether users call it: it is neither private nor the backward of another operator."""
    name = operator.removeprefix("aten::")
    return not name.startswith("_") and "_backward" not in name


def _operator(
    o: OperatorSummary, facts: OperatorFacts, reason: str, dtypes: Sequence[str], texts: Texts
) -> tuple[Any, ...]:
    """A row of OPERATOR_COLUMNS."""
    registered = o.registered or RegistryStatus("")
    return (
        o.name,
        part_of(o.name),
        int(is_public(o.name)),
        SEVERITY.index(o.verdict),
        int(facts.in_part),
        o.executed,
        _grade(o.grade),
        texts.position(reason),
        facts.since,
        registered.status,
        registered.kernel or "",
        list(facts.upstream),
        _verdict(facts.before),
        compiled_tables.in_one_word(o.compiled),
        texts.position(compiled_tables.in_a_sentence(o.compiled)),
        _digits(dtypes, {dtype: SEVERITY.index(verdict) for dtype, verdict in o.dtypes.items()}),
        _digits(dtypes, {dtype: _grade(grade) for dtype, grade in o.dtype_grades.items()}),
        _digits(dtypes, {dtype: _case_verdict(broken[0]) for dtype, broken in o.dtype_breakages.items() if broken}),
    )


def _overload_detail(summary: AuditSummary, o: OverloadSummary) -> dict[str, Any]:
    facts = {
        "surface": o.dispatch.value if o.dispatch else "not in the surface",
        "rule": o.unreachable_rule,
        "through": list(o.inner_fallbacks),
        "shared": list(o.shared_with),
        "autogenerated": int(o.autogenerated),
        "formula": int(o.has_autograd_formula),
        "entries": list(o.entries),
        "dtypes": _evidence(summary, o.dtypes, SEVERITY.index),
        "cases": _cases(summary, [label for e in o.dtypes.values() for label in (e.broken_case, e.worst_case)]),
    }
    return {
        "name": o.name,
        "schema": o.schema.removeprefix(o.name),
        "verdict": SEVERITY.index(o.verdict),
        "grade": _grade(o.grade),
        "reason": cut(o.reason),
        **{name: fact for name, fact in facts.items() if fact},
    }


def _entry_detail(summary: AuditSummary, entry: EntrySummary, overloads: Sequence[str]) -> dict[str, Any]:
    return {
        "sources": list(entry.sources),
        "pairs": f"{entry.pairs.seen:,} of {entry.pairs.possible:,}" if entry.pairs is not None else "",
        "grade": _grade(entry.grade),
        "overloads": list(overloads),
        "dtypes": _evidence(summary, entry.dtypes, _case_verdict),
        "cases": _cases(summary, [evidence.worst_case for evidence in entry.dtypes.values()]),
    }


def _evidence(
    summary: AuditSummary, dtypes: Mapping[str, DtypeEvidence] | Mapping[str, EntryDtype], position: Any
) -> list[list[Any]]:
    """For each dtype with evidence: its position, the verdict, the grade, and how many cases had each verdict."""
    order = {dtype: number for number, dtype in enumerate(summary.dtypes)}
    return [
        [
            order[dtype],
            position(evidence.verdict),
            _grade(evidence.grade) if isinstance(evidence, DtypeEvidence) else -1,
            {_case_verdict(verdict): number for verdict, number in evidence.cases.items() if number},
        ]
        for dtype, evidence in dtypes.items()
        if dtype in order
    ]


def _cases(summary: AuditSummary, labels: Iterable[str | None]) -> list[dict[str, Any]]:
    """The first few of these cases with different messages."""
    by_message: dict[str, str] = {}
    for label in labels:
        if label is not None:
            by_message.setdefault(summary.cases[label].message, label)
    shown = (summary.cases[label] for label in list(by_message.values())[:SHOWN_CASES])
    return [
        {
            "label": case.label,
            "mode": case.mode,
            "verdict": _case_verdict(case.verdict),
            "grade": _grade(case.grade),
            "stage": case.stage,
            "message": cut(case.message),
            "inputs": cut(case.inputs),
            "error": case.max_error,
            "rule": case.rule,
        }
        for case in shown
    ]


def _entry_reason(summary: AuditSummary, entry: EntrySummary) -> str:
    """The message of the worst case of an entry."""
    shown = [entry_dtype for entry_dtype in entry.dtypes.values() if entry_dtype.worst_case is not None]
    if not shown:
        return ""
    worst = min(shown, key=lambda entry_dtype: _case_verdict(entry_dtype.verdict))
    return summary.cases[worst.worst_case or ""].message


def _broken(o: OverloadSummary) -> dict[str, int]:
    """The worst breakage of some cases, by dtype."""
    worst: dict[str, int] = {}
    for breakage in o.breakages:
        for dtype in breakage.dtypes:
            worst[dtype] = min(worst.get(dtype, len(CASE_SEVERITY)), _case_verdict(breakage.verdict))
    return worst


def _columns(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[str, list[Any]]:
    listed = list(rows)
    return {name: [row[position] for row in listed] for position, name in enumerate(names)}


def _digits(dtypes: Sequence[str], values: Mapping[str, int]) -> str:
    """A digit for each dtype, "-" for none."""
    if not any(value >= 0 for value in values.values()):
        return ""
    return "".join("-" if values.get(dtype, -1) < 0 else str(values[dtype]) for dtype in dtypes)


def _grade(grade: Grade | None) -> int:
    return -1 if grade is None else GRADES.index(grade)


def _verdict(verdict: OverloadVerdict | None) -> int:
    return -1 if verdict is None else SEVERITY.index(verdict)


def _case_verdict(verdict: CaseVerdict | None) -> int:
    return -1 if verdict is None else CASE_SEVERITY.index(verdict)


def _case_style(verdict: CaseVerdict) -> str:
    if verdict is CaseVerdict.PASSED:
        return style_of(OverloadVerdict.NATIVE)
    return style_of(OverloadVerdict.UNREACHABLE) if verdict is CaseVerdict.SKIPPED else verdict.value.replace(" ", "-")
