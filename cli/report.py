"""``mpsmith report``: what an audit showed, as text, Markdown, JSON, CSV or a site."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from ..errors import MpsmithError
from .options import DEFAULT_STORE, Operators, StorePath, require_writable, values_of
from .site import earlier_audit, summary_of, write_site_of

if TYPE_CHECKING:
    from ..audit.findings.results import AuditSummary
    from ..audit.model.verdicts import OverloadVerdict
    from ..audit.store.records import Run, StoredCase
    from ..audit.store.store import Store
    from ..reports.case_list import RuleOf

V = TypeVar("V", bound=Enum)


class Format(str, Enum):
    """The formats of a report."""

    TERMINAL = "terminal"
    MARKDOWN = "markdown"
    JSON = "json"
    CSV = "csv"
    JUNIT = "junit"
    SARIF = "sarif"
    JSON_SCHEMA = "json-schema"


def report(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PAGE]...", help="With --pages, which pages; default: those made in a few seconds."),
    ] = None,
    store: StorePath = DEFAULT_STORE,
    run: Annotated[
        int | None, typer.Option(help="The number of the audit in the store; the newest by default.")
    ] = None,
    form: Annotated[
        Format | None,
        typer.Option("--format", help="The form, terminal by default; json-schema describes the JSON form."),
    ] = None,
    site: Annotated[
        Path | None,
        typer.Option(
            "--site",
            metavar="DIR",
            file_okay=False,
            help="Write a site of pages with the data files, to open from disk.",
        ),
    ] = None,
    pages: Annotated[
        Path | None,
        typer.Option("--pages", metavar="DIR", file_okay=False, help="Write the generated pages as Markdown, by name."),
    ] = None,
    before: Annotated[
        Path | None,
        typer.Option(
            "--before",
            metavar="FILE",
            help="With --site, what changed since this audit: a results store (the same one: its run before) or a JSON "
            "report.",
        ),
    ] = None,
    networks: Annotated[
        Path | None,
        typer.Option("--networks", metavar="FILE", help="With --pages, what `mpsmith networks --json` printed."),
    ] = None,
    verdict: Annotated[
        list[str] | None, typer.Option(help="Only this verdict, such as missing or dtype-gap; may be repeated.")
    ] = None,
    ops: Operators = None,
    dtype: Annotated[list[str] | None, typer.Option(help="Only this dtype; may be repeated.")] = None,
    cases: Annotated[
        bool, typer.Option("--cases", help="List single cases with their numbers (terminal, json or csv).")
    ] = False,
    unexplained: Annotated[
        bool,
        typer.Option(
            "--unexplained", help="List the cases that did not pass and that no rule explains; exit 1 if there are any."
        ),
    ] = False,
    compiled: Annotated[
        bool, typer.Option("--compiled", help="The newest audit under torch.compile (terminal, markdown or json).")
    ] = False,
    sync: Annotated[
        bool, typer.Option("--sync", help="Write what the newest audit of the store measured into the registry.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Show what an audit found. With filters, list the overloads or the cases that match."""
    from ..audit.model.verdicts import OverloadVerdict

    form = _form(form, as_json)
    if pages is not None:
        _write_pages(names or [], pages, store, networks)
        return
    if names:
        raise MpsmithError(f"{names[0]}: pages are written with --pages DIR")
    if form is Format.JSON_SCHEMA:
        from ..reports.json_report import render_schema

        sys.stdout.write(render_schema())
        return
    if sync:
        _sync(store, run, compiled=compiled, as_json=as_json)
        return
    if site is None and before:
        raise MpsmithError("--before is for pages: name a folder for them with --site")
    if networks:
        raise MpsmithError("--networks is for the page `networks`: name a folder for it with --pages")
    if site is not None and form is not Format.TERMINAL:
        raise MpsmithError("--site has every form in it: leave out --format")
    if site is not None:
        require_writable("--site", site / "index.html")
    filters = Filters(values_of(verdict, "--verdict"), values_of(ops, "--ops"), values_of(dtype, "--dtype"))
    with _opened(store, run, compiled=compiled) as (opened, chosen):
        if chosen.compiled:
            if cases or unexplained or filters.given:
                raise MpsmithError("the report of compiled calls takes no filters: its JSON has every operator")
            _show_compiled(opened, chosen, form, site)
            return
        if cases or unexplained:
            _show_cases(opened, chosen, filters, form, only_unexplained=unexplained)
            return
        verdicts = _verdicts(OverloadVerdict, filters.verdicts)
        summary = summary_of(opened, chosen)
    selected = _selected(summary, verdicts, filters)
    if site is not None:
        earlier = earlier_audit(before, store, chosen) if before is not None else None
        for path in write_site_of(selected, site, earlier):
            print(path)
    else:
        _write(selected, form, filtered=selected is not summary)
    if summary.run.executed == 0:
        raise MpsmithError(f"run {chosen.id} of {store} executed no case, so nothing is known (audit again)")


@dataclass(frozen=True)
class Filters:
    """Which overloads or cases to list: verdicts by name, operators and dtypes; empty means all."""

    verdicts: Sequence[str]
    operators: Sequence[str]
    dtypes: Sequence[str]

    @property
    def given(self) -> bool:
        """Whether any filter is given."""
        return bool(self.verdicts or self.operators or self.dtypes)


@contextmanager
def _opened(path: Path, number: int | None, *, compiled: bool) -> Iterator[tuple[Store, Run]]:
    from ..audit.store.store import Store

    with Store.open(path) as store:
        yield store, store.latest_run(compiled=compiled) if number is None else store.run(number)


def _write_pages(names: Sequence[str], folder: Path, store: Path, networks: Path | None) -> None:
    """Write generated pages; without names, those that need neither a device nor a wheel and whose data exist."""
    from ..errors import near
    from ..reports.pages import PAGES, Needs, PageInputs
    from ..reports.publish import write
    from .kernels import open_with_kernels
    from .printing import say

    unknown = next((name for name in names if name not in PAGES), None)
    if unknown is not None:
        raise MpsmithError(f"no page is called {unknown}; there are {', '.join(PAGES)}{near(unknown, PAGES)}")
    require_writable("--pages", folder / "index.md")
    stores = [store] if store.exists() else []
    inputs = PageInputs(stores, networks, open_device=open_with_kernels, workers=os.cpu_count() or 1, report=say)
    slow = (Needs.DEVICE, Needs.WHEEL)
    quick = [page.name for page in PAGES.values() if page.needs not in slow and page.can_be_made(inputs)]
    for name in names or quick:
        try:
            text = PAGES[name].markdown(inputs)
        except MpsmithError as error:
            if names:
                raise
            say(f"{name} is not written: {error}")
            continue
        write(folder / f"{name}.md", text)
        print(folder / f"{name}.md")


def _show_cases(store: Store, run: Run, filters: Filters, form: Format, *, only_unexplained: bool) -> None:
    """Print the cases that match; with `only_unexplained` those that no rule explains, and exit with 1 if any.

    A whole audit also exits with 1 if too few cases launch the kernels of a template.
    """
    from ..audit.findings.shipped.launches import ENOUGH_CASES, missed_templates
    from ..audit.model.verdicts import CaseVerdict
    from ..reports.case_list import select_cases
    from ..reports.rule_growth import grown_rules
    from .printing import say

    rule_of = _rule_of(run)
    cases = select_cases(store, run, _verdicts(CaseVerdict, filters.verdicts), filters.operators, filters.dtypes)
    unexplained = 0
    explained: Counter[str] = Counter()

    def listed() -> Iterator[StoredCase]:
        nonlocal unexplained
        for case in cases:
            if not only_unexplained:
                yield case
            elif case.outcome.verdict is not CaseVerdict.PASSED:
                rule = rule_of(case)
                explained[rule] += 1
                if not rule:
                    unexplained += 1
                    yield case

    none = "no case that matches is unexplained" if only_unexplained else "no case matches"
    for line in _case_lines(listed(), run, form, rule_of, none):
        print(line)
    if form is Format.TERMINAL and not filters.given:
        del explained[""]
        for line in grown_rules(explained, run.settings):
            print(f"this rule explains more than a fifth above the published audit: {line}")
    missed = missed_templates(store, run) if only_unexplained and not filters.given else []
    for template in missed:
        say(f"fewer than {ENOUGH_CASES} cases launch the shipped kernels {template.name}: no reason is known")
    if unexplained or missed:
        raise typer.Exit(1)


def _sync(path: Path, number: int | None, *, compiled: bool, as_json: bool) -> None:
    """Write the measurements of the newest audit into the registry. Only the newest run may be synced."""
    from ..audit.store.store import Store
    from .compiled import sync_compiled_run
    from .printing import print_json
    from .registry import sync_store

    if number is not None:
        raise MpsmithError("--sync takes the newest audit of a store: leave out --run")
    if compiled:
        with Store.open(path) as store:
            newest = store.latest_run(compiled=True)
        sync_compiled_run(newest, path, quiet=as_json)
        return
    changes = sync_store(path, quiet=as_json)
    if as_json:
        print_json(changes)


def _show_compiled(store: Store, run: Run, form: Format, site: Path | None) -> None:
    from .compiled import publish_compiled, render

    if site is None:
        sys.stdout.write(render(store, run, form.value))
        return
    for path in publish_compiled(store, run, site):
        print(path)


def _form(form: Format | None, as_json: bool) -> Format:
    if as_json and form not in (None, Format.JSON):
        raise typer.BadParameter(
            f"it is --format json, and cannot be combined with --format {form.value}", param_hint="--json"
        )
    return Format.JSON if as_json else form or Format.TERMINAL


def _selected(summary: AuditSummary, verdicts: list[OverloadVerdict], filters: Filters) -> AuditSummary:
    from ..audit.findings.summary_filter import select

    return select(summary, verdicts, filters.operators, filters.dtypes) if filters.given else summary


def _write(summary: AuditSummary, form: Format, *, filtered: bool) -> None:
    if form is Format.TERMINAL:
        from ..reports import terminal

        width = shutil.get_terminal_size((120, 40)).columns
        sys.stdout.write(terminal.render_selection(summary, width) if filtered else terminal.render(summary, width))
        return
    sys.stdout.write(_renderer(form)(summary))


def _renderer(form: Format) -> Callable[[AuditSummary], str]:
    from ..reports import junit_report, sarif_report
    from ..reports.publish import FILES

    others = {Format.JUNIT: junit_report.render, Format.SARIF: sarif_report.render}
    return others.get(form) or FILES[form.value][1]


def _rule_of(run: Run) -> RuleOf:
    from ..audit.findings.audited_surface import audited_surface
    from ..audit.findings.explanations import explainer_of

    explainer = explainer_of(run, audited_surface(run))

    def name_of(case: StoredCase) -> str:
        rule = explainer.rule_for(case)
        return rule.name if rule else ""

    return name_of


def _case_lines(cases: Iterable[StoredCase], run: Run, form: Format, rule_of: RuleOf, none: str) -> Iterator[str]:
    from ..reports import case_list

    if form is Format.TERMINAL:
        return case_list.text_lines(cases, run, rule_of, none)
    if form is Format.CSV:
        return case_list.csv_lines(cases, run, rule_of)
    if form is Format.JSON:
        return case_list.json_lines(cases, run, rule_of)
    raise MpsmithError(f"--cases comes as terminal, json or csv, not as {form.value}")


def _verdicts(kind: type[V], names: Sequence[str]) -> list[V]:
    by_name: dict[str, V] = {str(verdict.value): verdict for verdict in kind}
    verdicts = []
    for name in names:
        plain = name.lower().replace("-", " ").replace("_", " ")
        if plain not in by_name:
            raise MpsmithError(f"unknown verdict {name!r} (there are: {', '.join(by_name)})")
        verdicts.append(by_name[plain])
    return verdicts
