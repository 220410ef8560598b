"""``mpsmith report``: what an audit showed, as text, Markdown, JSON, CSV, one HTML page or a site of pages."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from ..errors import MpsmithError
from .options import DEFAULT_STORE, Operators, StorePath, values_of

if TYPE_CHECKING:
    from ..audit.findings.results import AuditSummary, RegistryStatus
    from ..audit.model.verdicts import CaseVerdict, OverloadVerdict
    from ..audit.store.records import Run, StoredCase
    from ..audit.store.store import Store
    from ..reports.case_list import RuleOf
    from ..reports.evidence.devices import DeviceEvidence

PUBLISHED = Path("reports/published")

V = TypeVar("V", bound=Enum)


class Format(str, Enum):
    """The forms in which a report comes."""

    TERMINAL = "terminal"
    MARKDOWN = "markdown"
    JSON = "json"
    CSV = "csv"
    HTML = "html"
    ALL = "all"
    JSON_SCHEMA = "json-schema"


def report(
    store: StorePath = DEFAULT_STORE,
    run: Annotated[
        int | None, typer.Option(help="The number of the audit in the store; the newest by default.")
    ] = None,
    form: Annotated[
        Format | None,
        typer.Option(
            "--format",
            help="The form, terminal by default; json-schema describes the JSON form, all is the site with every file.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="The file to write; with --format all the folder (default: reports/published)."),
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
    before: Annotated[
        Path | None,
        typer.Option(
            "--before",
            metavar="FILE",
            help="With --site, tell what changed since this audit: a results store or a JSON report; of the same store "
            "the run before.",
        ),
    ] = None,
    trace: Annotated[
        list[Path] | None,
        typer.Option(
            "--trace",
            metavar="FILE",
            help="With --site, a page of what `mpsmith trace --json` printed; may be repeated.",
        ),
    ] = None,
    networks: Annotated[
        Path | None,
        typer.Option("--networks", metavar="FILE", help="With --site, a page of what `mpsmith networks --json` said."),
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
        bool,
        typer.Option("--compiled", help="The newest audit under torch.compile (terminal, markdown, json or all)."),
    ] = False,
    sync: Annotated[
        bool, typer.Option("--sync", help="Write what the newest audit of the store measured into the registry.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Show what an audit found. With filters, list the overloads or the cases that match."""
    from ..audit.model.verdicts import CaseVerdict, OverloadVerdict
    from ..audit.store.store import Store

    form = _form(form, as_json)
    if site is not None:
        if form is not Format.TERMINAL or output is not None:
            raise MpsmithError("--site has every form in it: leave out --format and --output")
        form, output = Format.ALL, site
    if (before or trace or networks) and form is not Format.ALL:
        raise MpsmithError("--before, --trace and --networks are for pages: name a folder for them with --site")
    operators, dtypes = values_of(ops, "--ops"), values_of(dtype, "--dtype")
    if form is Format.JSON_SCHEMA:
        from ..reports.json_report import render_schema

        _emit(render_schema(), output)
        return
    if sync:
        _sync(store, run, compiled=compiled, as_json=as_json)
        return
    case_verdicts = _verdicts(CaseVerdict, verdict) if cases or unexplained else []
    overload_verdicts = [] if cases or unexplained else _verdicts(OverloadVerdict, verdict)
    with Store.open(store) as opened:
        chosen = opened.latest_run(compiled=compiled) if run is None else opened.run(run)
        if chosen.compiled:
            if site is not None:
                raise MpsmithError("a site is of calls as they are, with a page of compiled ones: choose such a run")
            if cases or unexplained or verdict or operators or dtypes:
                raise MpsmithError("the report of compiled calls takes no filters: its JSON has every operator")
            _emit_compiled(opened, chosen, form, output)
            return
        if cases or unexplained:
            found = _cases(opened, chosen, case_verdicts, operators, dtypes, only_unexplained=unexplained)
            any_left = _Noticing(found)
            _emit_lines(_case_lines(any_left, chosen, form, _rule_of(chosen)), output)
            if unexplained and any_left.seen:
                raise typer.Exit(1)
            return
        summary = _summary(opened, chosen)
    selected = _selected(summary, overload_verdicts, operators, dtypes)
    filtered = selected is not summary
    if form is Format.ALL:
        if output is None and filtered:
            raise MpsmithError(f"{PUBLISHED} is for the whole report: name another folder for a part with --site")
        earlier = _before(before, store, chosen) if before is not None else None
        for path in _write_site(selected, output or PUBLISHED, earlier, trace or [], networks):
            print(path)
    else:
        _write(selected, form, output, filtered=filtered)
    if summary.run.executed == 0:
        raise MpsmithError(f"run {chosen.id} of {store} executed no case, so nothing is known (audit again)")


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


def _emit_compiled(store: Store, run: Run, form: Format, output: Path | None) -> None:
    from .compiled import publish_compiled, render

    if form is Format.ALL:
        for path in publish_compiled(store, run, output or PUBLISHED):
            print(path)
    else:
        _emit(render(store, run, form.value), output)


def publish(store: Path, folder: Path = PUBLISHED) -> list[Path]:
    """Write the site of the store's newest run into `folder`, with the data files; its paths."""
    from ..audit.store.store import Store

    with Store.open(store) as opened:
        summary = _summary(opened, opened.latest_run())
    return _write_site(summary, folder)


def _write_site(
    summary: AuditSummary,
    folder: Path,
    before: AuditSummary | None = None,
    traces: Sequence[Path] = (),
    networks: Path | None = None,
) -> list[Path]:
    from ..registry import found_wrong
    from ..registry.files import load
    from ..registry.problems import RegistryError
    from ..reports.pages.networks import read_networks
    from ..reports.site.content import SiteContent
    from ..reports.site.traces import read_trace
    from ..reports.site.writing import OPERATORS, write_site

    traced = [read_trace(path) for path in traces]
    observed = read_networks(networks) if networks is not None else None
    devices = _devices()
    try:
        content = SiteContent(summary, load(), found_wrong.load(), before, traced, observed, devices)
    except RegistryError:  # said by _registered already
        content = SiteContent(summary, before=before, traces=traced, networks=observed, devices=devices)
    written = write_site(content, folder)
    operators = folder / OPERATORS
    return [*(path for path in written if path.parent != operators), operators]


def _devices() -> DeviceEvidence:
    """What the evidence beside the registry says. A site without it is better than none."""
    from ..reports.evidence.adding import added_evidence
    from ..reports.evidence.devices import DeviceEvidence, device_evidence
    from ..reports.evidence.files import EvidenceError, evidence_folder

    try:
        return device_evidence(added_evidence(evidence_folder()))
    except EvidenceError as error:
        print(f"warning: the site leaves the evidence of other machines out: {error}", file=sys.stderr)
        return DeviceEvidence()


def _before(path: Path, store: Path, chosen: Run) -> AuditSummary:
    """The audit to compare with: a JSON report, or the newest of a store; of the shown one's store the run before."""
    from ..audit.store.store import Store
    from ..reports import json_report

    if path.suffix == ".json":
        try:
            return json_report.read(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise MpsmithError(f"cannot read {path}: {error.strerror}") from error
    with Store.open(path) as opened:
        same = path.resolve() == store.resolve()
        runs = [
            each
            for each in opened.runs()
            if each.finished and not each.compiled and not (same and each.id >= chosen.id)
        ]
        if not runs:
            raise MpsmithError(f"{path} has no finished audit to compare with (name a store or JSON report that has)")
        return _summary(opened, runs[-1])


def _form(form: Format | None, as_json: bool) -> Format:
    if as_json and form not in (None, Format.JSON):
        raise typer.BadParameter(f"it is --format json, and goes not with --format {form.value}", param_hint="--json")
    return Format.JSON if as_json else form or Format.TERMINAL


def _summary(store: Store, run: Run) -> AuditSummary:
    from ..audit.findings.audited_surface import audited_surface
    from ..audit.findings.summary import summarize

    return summarize(store, run, audited_surface(run), _registered())


def _registered() -> dict[str, RegistryStatus]:
    """What the registry says. A report without it is better than none: its problems have a command of their own."""
    from ..registry.problems import RegistryError
    from ..reports.registry_join import registered

    try:
        return registered()
    except RegistryError as error:
        print(f"warning: the report leaves the registry out: {error}", file=sys.stderr)
        return {}


def _selected(
    summary: AuditSummary, verdicts: list[OverloadVerdict], ops: Sequence[str], dtypes: Sequence[str]
) -> AuditSummary:
    from ..audit.findings.summary_filter import select

    return select(summary, verdicts, ops, dtypes) if verdicts or ops or dtypes else summary


def _write(summary: AuditSummary, form: Format, output: Path | None, *, filtered: bool) -> None:
    if form is Format.TERMINAL:
        from ..reports import terminal

        width = shutil.get_terminal_size((120, 40)).columns
        _emit(terminal.render_selection(summary, width) if filtered else terminal.render(summary, width), output)
        return
    from ..reports.publish import FILES

    _, render = FILES[form.value]
    _emit(render(summary), output)


def _cases(
    store: Store,
    run: Run,
    verdicts: list[CaseVerdict],
    ops: Sequence[str],
    dtypes: Sequence[str],
    *,
    only_unexplained: bool,
) -> Iterator[StoredCase]:
    from ..audit.model.verdicts import CaseVerdict
    from ..reports.case_list import select_cases

    found = select_cases(store, run, verdicts, ops, dtypes)
    if not only_unexplained:
        return found
    rule_of = _rule_of(run)
    return (case for case in found if case.outcome.verdict is not CaseVerdict.PASSED and not rule_of(case))


def _rule_of(run: Run) -> RuleOf:
    from ..audit.findings.audited_surface import audited_surface
    from ..audit.findings.explanations import explainer_of

    explainer = explainer_of(run, audited_surface(run))

    def name_of(case: StoredCase) -> str:
        rule = explainer.rule_for(case)
        return rule.name if rule else ""

    return name_of


class _Noticing:
    """Hands cases on, and knows afterwards whether there was one."""

    def __init__(self, cases: Iterator[StoredCase]) -> None:
        self._cases = cases
        self.seen = False

    def __iter__(self) -> Iterator[StoredCase]:
        for case in self._cases:
            self.seen = True
            yield case


def _case_lines(cases: Iterable[StoredCase], run: Run, form: Format, rule_of: RuleOf) -> Iterator[str]:
    from ..reports import case_list

    if form is Format.TERMINAL:
        return case_list.text_lines(cases, run, rule_of)
    if form is Format.CSV:
        return case_list.csv_lines(cases, run, rule_of)
    if form is Format.JSON:
        return case_list.json_lines(cases, run, rule_of)
    raise MpsmithError(f"--cases comes as terminal, json or csv, not as {form.value}")


def _emit(text: str, output: Path | None) -> None:
    if output is None:
        sys.stdout.write(text)
        return
    from ..reports.publish import write

    write(output, text)
    print(output)


def _emit_lines(lines: Iterator[str], output: Path | None) -> None:
    if output is not None:
        _emit("".join(f"{line}\n" for line in lines), output)
        return
    for line in lines:
        print(line)


def _verdicts(kind: type[V], names: list[str] | None) -> list[V]:
    known: dict[str, V] = {str(verdict.value): verdict for verdict in kind}
    found = []
    for name in values_of(names, "--verdict"):
        spelled = name.lower().replace("-", " ").replace("_", " ")
        if spelled not in known:
            raise MpsmithError(f"unknown verdict {name!r} (there are: {', '.join(known)})")
        found.append(known[spelled])
    return found
