"""The pages of a site as text, and the data files that they load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...audit.findings.overload_verdict import SEVERITY
from ...audit.findings.results import AuditSummary
from ..compiled_tables import NOTE as COMPILED_NOTE
from ..compiled_tables import found_table, in_a_sentence, in_one_word
from ..explorer_data import (
    details,
    entry_table,
    function_table,
    legend,
    operator_table,
    overload_table,
    part_of,
    release_table,
)
from ..html_templates import HtmlPage, data_script, slug
from ..operator_facts import operator_facts
from ..overview import overview
from ..release_coverage import section_of
from ..release_history import history_of
from ..shipped_tables import wrong_kernel_table
from ..table import Table
from ..wording import marked, of_compiled_calls, simulated_note, subtitle, title
from . import audits, changes, devices, kernels, operator_pages
from .content import SiteContent
from .tables import compiled, finding_tables, heading_of, tables_of_run
from .wrong_results import found_wrong_table

# The files beside the pages: what they are, for a reader.
DATA_FILES = {
    "coverage.csv": "a row an overload, for spreadsheets and data frames",
    "coverage.json": "everything that was found, with a schema: mpsmith report --format json-schema",
    "coverage.md": "the tables as Markdown",
}


UNDER = "under torch.compile: "  # how the sentence of a compiled operator begins


@dataclass(frozen=True)
class _Listing:
    """A page of tables: its file, name, description, lead, tables and links."""

    file: str
    name: str
    about: str
    tables: tuple[Table, ...]
    lead: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()


class Site:
    """The pages and data of one site."""

    def __init__(self, content: SiteContent) -> None:
        self._content = content
        self._summary = content.summary
        self._history = history_of(content.summary)
        self._facts = operator_facts(content.summary, self._history, content.before)
        self._findings = devices.findings_with(content.summary, content.devices)
        self._matrix = devices.matrix_of(content.summary, self._findings, self._history)
        self._operator_files = devices.file_names(self._matrix.operators, "operators/")
        self._listings = list(self._all_listings())
        self._links = (
            ("index.html", "Start"),
            ("operators.html", "Operators"),
            ("releases.html", "Releases"),
            ("audits.html", "Audits"),
            *((listing.file, listing.name) for listing in self._listings),
        )

    def pages(self) -> Iterator[tuple[str, str]]:
        """Each page: its file and text."""
        places = {
            heading_of(table): f"{listing.file}#{slug(heading_of(table))}"
            for listing in self._listings
            for table in listing.tables
        }
        audit = overview(self._summary, places)
        asked = ("site.js", "search.js", "details.js")
        start = self._page("index.html", scripts=(*asked, "start.js"), data=("legend", "operators"))
        yield "index.html", start.render("index.html.j2", audit=audit, cards=self._cards(), changes=self._changed())
        listed = self._page("operators.html", scripts=(*asked, "explorer.js"), data=("legend", "operators"), wide=True)
        yield "operators.html", listed.render("operators.html.j2", audit=audit)
        yield "releases.html", self._releases()
        page = self._page("audits.html", scripts=("site.js", "changes.js"), data=("audits",))
        yield "audits.html", page.render("audits.html.j2")
        yield from self._of_operators()
        for listing in self._listings:
            page = self._page(listing.file)
            yield listing.file, page.render("listings.html.j2", **_content_of(listing))

    def data(self) -> Iterator[tuple[str, str]]:
        """Each data file that pages load: its path and text."""
        summary, facts = self._summary, self._facts
        before = {o.name: o.verdict for o in self._content.before.overloads} if self._content.before else {}
        named: dict[str, Any] = {
            "legend": legend(summary, self._history),
            "operators": operator_table(summary, facts),
            "overloads": overload_table(summary, before),
            "entries": entry_table(summary),
            "functions": function_table(self._history.audited if self._history else None),
        }
        if self._history is not None:
            named["releases"] = release_table(self._history, self._operator_files)
        parts = details(summary, facts, self._operator_files)
        named.update((f"details/{number:02}", part) for number, part in enumerate(parts))
        for name, data in named.items():
            yield f"data/{name}.js", data_script(name, data)
        seen = [audit for audit in (self._content.before, summary) if audit is not None]
        yield from audits.data_files(*seen).items()

    def _page(
        self,
        file: str,
        *,
        scripts: tuple[str, ...] = ("site.js", "tables.js"),
        data: tuple[str, ...] = (),
        wide: bool = False,
    ) -> HtmlPage:
        summary = self._summary
        return HtmlPage(
            file=file,
            title=title(summary) if file == "index.html" else dict(self._links)[file],
            subtitle=_subtitle(summary, file),
            simulated_note=simulated_note(summary),
            links=self._links,
            scripts=scripts,
            data=data,
            wide=wide,
        )

    def _releases(self) -> str:
        coverage = section_of(self._summary)
        if coverage is None:
            page = self._page("releases.html")
            lead = ("The data of the releases lack the audited one; `mpsmith coverage --history` lists them.",)
            return page.render("listings.html.j2", lead=lead, tables=(), links=())
        scripts = ("site.js", "tables.js", "changes.js")
        page = self._page("releases.html", scripts=scripts, data=("releases",), wide=True)
        return page.render("releases.html.j2", coverage=coverage)

    def _of_operators(self) -> Iterator[tuple[str, str]]:
        """A page for each operator: its verdicts by release and device."""
        of_operator = self._operator_files
        for content in operator_pages.contents(self._matrix):
            audited = content.operator in self._facts
            page = replace(
                self._titled(of_operator[content.operator], content.operator, root="../"),
                scripts=("site.js", "tables.js", "details.js", "operator.js") if audited else ("site.js", "tables.js"),
                simulated_note=self._note_of_devices() or simulated_note(self._summary),
            )
            part = part_of(content.operator) if audited else None
            yield page.file, page.render("operator.html.j2", operator=content, part=part)

    def _note_of_devices(self) -> str:
        """The note about simulated devices, if there are any."""
        return devices.NOTE if any(kind.simulated for kind in self._findings) else ""

    def _titled(self, file: str, title: str, **more: Any) -> HtmlPage:
        """A page that the navigation does not link."""
        scripts = ("site.js", "tables.js")
        return HtmlPage(file=file, title=title, links=self._links, scripts=scripts, **more)

    def _changed(self) -> str:
        before = self._content.before
        return changes.in_a_sentence(changes.changes(before, self._summary)) if before else ""

    def _cards(self) -> list[tuple[str, str, str]]:
        return [
            ("operators.html", "Operators", "Every operator, overload and test entry by dtype: search, filter, sort."),
            ("releases.html", "Releases", "What changed between two releases since 1.12.1, read from their wheels."),
            ("audits.html", "Audits", "What changed between two audits, overload by overload and dtype by dtype."),
            *((listing.file, listing.name, listing.about) for listing in self._listings),
        ]

    def _all_listings(self) -> Iterator[_Listing]:
        summary, content = self._summary, self._content
        findings = finding_tables(summary)
        about = "What is wrong, missing or not explained, with upstream's reports and the rules that explain the rest."
        yield _Listing("findings.html", "Findings", about, tuple(findings))
        wrong = [table for table in (wrong_kernel_table(summary),) if table.rows]
        if content.found_wrong:
            wrong.append(found_wrong_table(content.found_wrong))
        if wrong:
            about = "Wrong results of the Metal kernels that the release ships, and of its host code."
            yield _Listing("shipped.html", "Shipped kernels", about, tuple(wrong))
        since = {name: facts.since for name, facts in self._facts.items()}
        gaps = (kernels.kernel_table(content.registry, summary, since), kernels.gap_table(summary, since))
        about = "What import mpsmith.kernels replaces, and what is left to write."
        yield _Listing("kernels.html", "Kernels", about, tuple(table for table in gaps if table.rows))
        if summary.compiled is not None:
            about = "The verdict of each operator under torch.compile."
            compiled_findings = [table for table in (found_table(summary),) if table.rows]
            tables = (*compiled_findings, *compiled(summary), _compiled_table(summary))
            yield _Listing("compiled.html", "torch.compile", about, tables, tuple(of_compiled_calls(summary)))
        about = "Cases, grades of evidence, skips, the environment, and the data of the audit."
        yield _Listing("run.html", "This audit", about, tuple(tables_of_run(summary)), links=tuple(DATA_FILES.items()))


def _subtitle(summary: AuditSummary, file: str) -> str:
    text = subtitle(summary)
    return text if file == "index.html" else f"{title(summary)} {text}"


def _content_of(listing: _Listing) -> Mapping[str, Any]:
    return {"lead": listing.lead, "tables": listing.tables, "links": listing.links}


def _compiled_table(summary: AuditSummary) -> Table:
    """Every compiled operator, by the severity of its eager verdict."""
    rows = [
        (o.name, in_one_word(o.compiled), o.verdict.value, in_a_sentence(o.compiled).removeprefix(UNDER))
        for o in sorted(summary.operators, key=lambda o: SEVERITY.index(o.verdict))
        if o.compiled is not None
    ]
    columns = ("operator", "compiled", "eager", "by dtype")
    return Table(
        marked("Operators under torch.compile", summary), columns, tuple(rows), COMPILED_NOTE, frozenset({"operator"})
    )
