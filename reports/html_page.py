"""The report as one HTML file that needs nothing else: style, script and data are inside, and it opens from disk."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from .._version import __version__
from ..audit.findings.results import SEVERITY, AuditSummary, EntrySummary, OverloadSummary
from ..audit.verdicts import CASE_SEVERITY, CaseVerdict, OverloadVerdict
from . import module_tables, tables
from .charts import charts, style_of
from .coverage_page import section_of
from .tables import SHORT_DTYPES
from .wording import (
    CASE_LETTERS,
    LETTERS,
    MEANING,
    SIMULATED_NOTE,
    completeness,
    key_figures,
    settings_text,
    subtitle,
    surface_note,
    title,
)

TEMPLATES = Path(__file__).parent / "templates"

# What the page shows of each overload and entry, so that it stays small however much fails; the JSON has all of it.
SHOWN_CASES = 3
SHOWN_TEXT = 300


def render(summary: AuditSummary) -> str:
    """The report as the text of an HTML page."""
    static = [
        tables.unexplained_table(summary),
        tables.rule_table(summary),
        tables.fallback_table(summary),
        module_tables.known_report_table(summary),
        module_tables.module_table(summary),
        tables.disagreement_table(summary),
        tables.unattributed_table(summary),
        tables.case_table(summary),
        tables.skip_table(summary),
        tables.not_executed_table(summary),
        tables.missed_table(summary),
        tables.environment_table(summary),
    ]
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            summary=summary,
            title=title(summary),
            subtitle=subtitle(summary),
            simulated_note=SIMULATED_NOTE if summary.run.simulated else "",
            surface_note=surface_note(summary) or "",
            key_figures=key_figures(summary),
            completeness=completeness(summary.run),
            settings=settings_text(summary.run.settings),
            figures=_figures(summary),
            charts=charts(summary),
            tables=[table for table in static if table.rows],
            coverage=section_of(summary),
            style=_source("report.css"),
            script=_source("report.js"),
            data=Markup(_embedded(page_data(summary))),
            version=__version__,
        )
    )


def page_data(summary: AuditSummary) -> dict[str, Any]:
    """What the page's script shows, packed: names of verdicts, dtypes, entries and messages are given by position."""
    packing = _Packing(summary)
    return {
        "simulated": summary.run.simulated,
        "dtypes": [[dtype, SHORT_DTYPES.get(dtype, dtype)] for dtype in summary.dtypes],
        "verdicts": [[v.value, LETTERS[v], style_of(v), MEANING[v]] for v in SEVERITY],
        "caseVerdicts": [[v.value, CASE_LETTERS[v], _case_style(v)] for v in CASE_SEVERITY],
        "entryNames": packing.entry_names,
        "overloads": [packing.overload(o) for o in summary.overloads],
        "operators": [
            [
                o.name,
                packing.verdict(o.verdict),
                [packing.verdict(o.dtypes[d]) if d in o.dtypes else -1 for d in summary.dtypes],
                o.executed,
                [o.registered.status, o.registered.kernel, o.registered.upstream] if o.registered else 0,
            ]
            for o in summary.operators
        ],
        "entries": [packing.entry(entry) for entry in summary.entries],
        "cases": packing.cases(summary),  # after what refers to them
        "texts": packing.texts,  # last: the others fill it
    }


class _Packing:
    """Positions in place of names, so that the page stays small."""

    def __init__(self, summary: AuditSummary) -> None:
        self._dtypes = summary.dtypes
        self._messages = {number: case.message for number, case in summary.cases.items()}
        self._shown: set[int] = set()
        self.entry_names = [entry.name for entry in summary.entries]
        self.texts: list[str] = []
        self._text_position: dict[str, int] = {}
        self._entry_position = {name: position for position, name in enumerate(self.entry_names)}

    def text(self, text: str) -> int:
        text = text if len(text) <= SHOWN_TEXT else text[: SHOWN_TEXT - 1] + "…"
        if text not in self._text_position:
            self._text_position[text] = len(self.texts)
            self.texts.append(text)
        return self._text_position[text]

    def verdict(self, verdict: OverloadVerdict) -> int:
        return SEVERITY.index(verdict)

    def case_verdict(self, verdict: CaseVerdict | None) -> int:
        return -1 if verdict is None else CASE_SEVERITY.index(verdict)

    def overload(self, o: OverloadSummary) -> list[Any]:
        cells = []
        shown = self._choose([e.worst_case for e in o.dtypes.values()])
        for dtype in self._dtypes:
            evidence = o.dtypes.get(dtype)
            cells.append(
                [self.verdict(evidence.verdict), self._counts(evidence.cases), shown.get(evidence.worst_case, 0)]
                if evidence
                else 0
            )
        return [
            o.name,
            self.verdict(o.verdict),
            cells if o.dtypes else 0,
            o.executed,
            self.text(o.reason),
            o.operator,
            o.schema.removeprefix(o.name),
            self.text(o.dispatch.value if o.dispatch else "not in the surface"),
            self.text(o.unreachable_rule),
            [self._entry_position[name] for name in o.entries],
            list(o.through),
            list(o.shared_with),
            int(o.autogenerated) + 2 * int(o.has_autograd_formula),
        ]

    def entry(self, entry: EntrySummary) -> list[Any]:
        shown = self._choose([found.worst_case for found in entry.dtypes.values()])
        cells: list[Any] = []
        for dtype in self._dtypes:
            found = entry.dtypes.get(dtype)
            if found is None:
                cells.append(0)
            else:
                number = shown.get(found.worst_case, 0)
                cells.append([self.case_verdict(found.verdict), self._counts(found.cases), number])
        return [entry.name, self.case_verdict(entry.verdict), cells, entry.executed, list(entry.sources)]

    def cases(self, summary: AuditSummary) -> dict[int, list[Any]]:
        """The cases that overloads and entries were given to show, by number."""
        chosen = (summary.cases[number] for number in sorted(self._shown))
        return {
            case.id: [
                case.label,
                case.mode,
                self.case_verdict(case.verdict),
                case.stage,
                self.text(case.message),
                self.text(case.inputs),
                case.max_error,
                self.text(case.rule),
            ]
            for case in chosen
        }

    def _choose(self, numbers: list[int | None]) -> dict[int | None, int]:
        """The first few of these cases that say different things."""
        by_message: dict[str, int] = {}
        for number in numbers:
            if number is not None:
                by_message.setdefault(self._messages[number], number)
        chosen = list(by_message.values())[:SHOWN_CASES]
        self._shown.update(chosen)
        return {number: number for number in chosen}

    def _counts(self, cases: Any) -> list[int]:
        return [n for verdict, count in cases.items() for n in (self.case_verdict(verdict), count)]


def _figures(summary: AuditSummary) -> list[tuple[str, str, str]]:
    """The big numbers of the page: a number, what it counts, and the class that colours it."""
    counts = summary.overload_counts

    def of(*verdicts: OverloadVerdict) -> str:
        return f"{sum(counts.get(verdict, 0) for verdict in verdicts):,}"

    return [
        (of(OverloadVerdict.NATIVE, OverloadVerdict.COMPOSITE), "overloads supported", "native"),
        (of(OverloadVerdict.FALLBACK), "fall back", "fallback"),
        (of(OverloadVerdict.MISSING), "missing", "missing"),
        (of(OverloadVerdict.WRONG), "wrong", "wrong"),
        (of(OverloadVerdict.DTYPE_GAP), "dtype gaps", "dtype-gap"),
        (of(OverloadVerdict.CRASH, OverloadVerdict.TIMEOUT), "crash or hang", "crash"),
        (f"{summary.reachable - summary.executed_overloads:,}", "not executed", "unreachable"),
        (f"{summary.run.executed:,}", "cases executed", ""),
    ]


def _case_style(verdict: CaseVerdict) -> str:
    if verdict is CaseVerdict.PASSED:
        return style_of(OverloadVerdict.NATIVE)
    return style_of(OverloadVerdict.UNREACHABLE) if verdict is CaseVerdict.SKIPPED else verdict.value.replace(" ", "-")


def _embedded(data: dict[str, Any]) -> str:
    """JSON that can stand inside a script element: nothing in it can end the element or open a comment."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _source(name: str) -> Markup:
    return Markup((TEMPLATES / name).read_text(encoding="utf-8"))


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
