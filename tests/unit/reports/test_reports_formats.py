"""Every format shows the numbers of the summary, marks what was simulated, and is honest about what did not run."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from mpsmith.audit.findings.module_rows import ModuleRow, ModuleStatus
from mpsmith.audit.findings.results import AuditSummary, RegistryStatus, select
from mpsmith.audit.findings.store import Store
from mpsmith.audit.findings.summary import summarize
from mpsmith.audit.group import GroupKey
from mpsmith.audit.selection import DTYPES
from mpsmith.audit.surface.overloads import Dispatch
from mpsmith.audit.surface.reachability import Unreachable
from mpsmith.audit.verdicts import CaseVerdict, Outcome, OverloadVerdict
from mpsmith.errors import MpsmithError
from mpsmith.reports import charts, csv_report, html_page, json_report, markdown, publish, tables, terminal
from support.stores import begun, opinfo
from support.surfaces import overload, surface

HOSTILE = 'raises <script>alert("1")</script> | `a` *b* </script>'


SURFACE = surface(
    overload("relu", Dispatch.NATIVE, has_autograd_formula=True),
    overload("sum", Dispatch.NATIVE),
    overload("cos", Dispatch.NATIVE),
    overload("flip", Dispatch.COMPOSITE_IMPLICIT),
    overload("mode", Dispatch.MISSING),
    overload("heaviside", Dispatch.MISSING),
    overload("mkldnn_linear", Dispatch.MISSING, reach=Unreachable("mkldnn", "for x86 only")),
    overload("sin", Dispatch.NATIVE),
)

CASES: dict[tuple[str, str, str], list[Outcome]] = {
    ("relu", "float32", "fallback"): [Outcome(CaseVerdict.PASSED, backward=True)] * 3,
    ("relu", "int8", "fallback"): [Outcome(CaseVerdict.PASSED)] * 2,
    ("sum", "float32", "fallback"): [Outcome(CaseVerdict.PASSED), Outcome(CaseVerdict.WRONG, message=HOSTILE)],
    ("cos", "float32", "fallback"): [Outcome(CaseVerdict.PASSED)],
    ("cos", "bool", "fallback"): [Outcome(CaseVerdict.DTYPE_GAP, message="not implemented for 'Bool'")],
    ("flip", "float32", "fallback"): [Outcome(CaseVerdict.PASSED)],
    ("mode", "float32", "fallback"): [Outcome(CaseVerdict.FALLBACK, fallbacks=("aten::mode",))] * 4,
    ("mode", "float32", "strict"): [Outcome(CaseVerdict.MISSING, message="no kernel", fallbacks=("aten::mode",))] * 4,
    ("unknown.thing", "float32", "fallback"): [Outcome(CaseVerdict.CRASH, message="signal 11")],
    ("sin", "float32", "fallback"): [Outcome(CaseVerdict.SKIPPED, message="too large")],
}


def make_summary(
    path: Path, *, simulated: bool = True, finished: bool = True, cases: bool = True, shuffled: bool = False
) -> AuditSummary:
    """The report of one run; `shuffled`: of the same findings, in a later run, on another host, in another order."""
    with Store.create(path) as store:
        if shuffled:
            begun(store).add(opinfo("sum"), Outcome(CaseVerdict.WRONG), done=False)
        host = {"chip": "other", "os": "otherOS"} if shuffled else {"chip": "Test M9", "os": "testOS"}
        variables = {"PYTORCH_MPS_FAST_MATH": "1"}
        environment = {"simulated": simulated, "profile": None, "variables": variables, **host}
        recording = begun(store, {"seed": 0, "ops": [], "dtypes": []}, environment)
        run = recording.run
        step, seconds = (-1, 9.0) if shuffled else (1, 1.0)
        store.plan(run.id, [opinfo(*group) for group in list(CASES)[::step]])
        for (name, dtype, mode), outcomes in list(CASES.items())[::step] if cases else ():
            calls = {name: True} if f"aten::{name}" in SURFACE.by_name and name != "sin" else {}
            for position, outcome in list(enumerate(outcomes))[::step]:
                timed = replace(outcome, seconds=seconds)
                recording.add(opinfo(name, dtype, mode), timed, inputs="(float32[2, 3])", calls=calls, start=position)
        for name in ("torch.mps.a", "torch.mps.b")[::step]:
            store.add_module_row(run.id, ModuleRow(name, ModuleStatus.WORKS))
        if finished:
            recording.finish()
        if shuffled:
            store._connection.execute("UPDATE runs SET started = '2001-01-01T00:00:00+00:00'")
        return summarize(store, store.run(run.id), SURFACE, {"aten::mode": RegistryStatus("missing", "mode", "#77764")})


@pytest.fixture
def summary(tmp_path: Path) -> AuditSummary:
    return make_summary(tmp_path / "store.sqlite")


RENDERERS: dict[str, Callable[[AuditSummary], str]] = {
    "terminal": terminal.render,
    "markdown": markdown.render,
    "json": json_report.render,
    "csv": csv_report.render,
    "html": html_page.render,
}


class Page(HTMLParser):
    """The text of every element by its tag, the attributes by id, and what it refers to outside itself."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.ids: set[str] = set()
        self.references: list[str] = []
        self.data = ""
        self._in_data = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids.add(given.get("id") or "")
        self.references += [value for name, value in attrs if name in ("src", "href", "action") and value]
        self._in_data = given.get("id") == "data"
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass
        self._in_data = False

    def handle_data(self, data: str) -> None:
        if self._in_data:
            self.data += data
        elif self.open:
            self.texts.setdefault(self.open[-1], []).append(data.strip())


# ---- the numbers


def test_json_holds_the_whole_summary(summary: AuditSummary) -> None:
    assert json_report.read(json_report.render(summary)) == replace(summary, execution=None)


def test_json_says_what_it_is(summary: AuditSummary) -> None:
    data = json.loads(json_report.render(summary))
    assert (data["format"], data["version"], data["simulated"]) == ("mpsmith-report", 2, True)
    counted = Counter(o["verdict"] for o in data["summary"]["overloads"])
    assert data["verdicts"] == dict(counted)


def test_json_has_a_schema_that_describes_every_field(summary: AuditSummary) -> None:
    schema = json.loads(json_report.render_schema())
    data = json.loads(json_report.render(summary))
    overload_fields = set(schema["$defs"]["OverloadSummary"]["properties"])
    assert set(data) == set(schema["properties"])
    assert set().union(*(o.keys() for o in data["summary"]["overloads"])) <= overload_fields
    assert set(data["summary"]) <= set(schema["$defs"]["AuditSummary"]["properties"])
    assert all(schema["$defs"][name].get("description") for name in ("OverloadSummary", "RunFacts", "AuditSummary"))


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"format": "other"}'])
def test_json_of_something_else_is_an_error(text: str) -> None:
    with pytest.raises(MpsmithError, match="not a JSON report of version 2"):
        json_report.read(text)


def test_csv_has_a_row_for_every_overload(summary: AuditSummary) -> None:
    rows = list(csv.DictReader(io.StringIO(csv_report.render(summary))))
    rows = [row for row in rows if row["operator"] != csv_report.MODULE]
    assert [row["overload"] for row in rows] == [o.name for o in summary.overloads]
    for row, o in zip(rows, summary.overloads, strict=True):
        assert (row["verdict"], row["reason"], row["executed"]) == (o.verdict.value, o.reason, str(o.executed))
        assert {d: row[d] for d in DTYPES if row[d]} == {d: e.verdict.value for d, e in o.dtypes.items()}
        assert sum(int(row[f"cases {v.value}"]) for v in o.cases) == sum(o.cases.values())
        assert row["device"] == "simulated"


def test_tables_add_up(summary: AuditSummary) -> None:
    *rows, last = tables.verdict_table(summary).rows
    assert sum(int(row[2]) for row in rows) == last[2] == len(summary.overloads)
    assert sum(int(row[3]) for row in rows) == last[3] == len(summary.operators)
    assert {row[1]: row[2] for row in rows} == {v.value: n for v, n in summary.overload_counts.items()}
    *rows, last = tables.case_table(summary).rows
    assert last[-1] == sum(int(row[-1]) for row in rows) == summary.run.recorded
    assert sum(int(row[-1]) for row in tables.dtype_table(summary).rows) == summary.run.recorded


@pytest.mark.parametrize("name", RENDERERS)
def test_every_form_has_the_rules_with_their_reasons(name: str, summary: AuditSummary) -> None:
    text = RENDERERS[name](summary)
    assert "no-kernel" in text
    if name != "csv":  # has a row for every overload, and the rule beside it
        reason = next(use.reason for use in summary.explanation.rules if use.name == "no-kernel")
        assert reason[10:50] in text
        assert "12 non-passes: 8 explained by 1 rule, 4 unexplained" in text or name == "json"


@pytest.mark.parametrize("name", ["terminal", "markdown", "html"])
def test_what_is_unexplained_comes_before_the_rules_and_other_tables(name: str, summary: AuditSummary) -> None:
    headings = ("Unexplained non-passes", "Rules that explain non-passes", "Operators that fell back or are missing")
    text = re.sub(r"<script.*?</script>", "", RENDERERS[name](summary), flags=re.DOTALL)
    places = [text.index(heading) for heading in headings]
    assert places[0] == min(places)
    everything = [(u.entry, u.verdict) for u in summary.explanation.unexplained]
    assert everything == [
        ("unknown.thing", CaseVerdict.CRASH),
        ("sum", CaseVerdict.WRONG),
        ("cos", CaseVerdict.DTYPE_GAP),
        ("sin", CaseVerdict.SKIPPED),
    ]


def test_an_overload_shows_the_rule_that_explains_it_or_that_none_does(summary: AuditSummary) -> None:
    rows = {row["overload"]: row for row in csv.DictReader(io.StringIO(csv_report.render(summary)))}
    assert rows["aten::mode"]["explained_by"] == "no-kernel"
    assert rows["aten::sum"]["explained_by"] == tables.UNEXPLAINED
    assert rows["aten::relu"]["explained_by"] == ""


def test_unexplained_faults_stand_before_explained_ones(summary: AuditSummary) -> None:
    first = next(o for o in summary.overloads if o.name == "aten::sum")
    rule = {first.worst_case: replace(summary.cases[first.worst_case], rule="some-rule")}
    explained = replace(summary, cases={**summary.cases, **rule})
    unexplained = next(c.label for c in summary.cases.values() if not c.rule and c.label != first.worst_case)
    other = replace(first, name="aten::zeta", worst_case=unexplained)
    both = replace(explained, overloads=(first, other))
    table = tables.fault_table(both, OverloadVerdict.WRONG)
    assert [row[4] for row in table.rows] == [tables.UNEXPLAINED, "some-rule"]


@pytest.fixture
def partly(tmp_path: Path) -> AuditSummary:
    """relu is native, and wrong in 1 of 6 cases."""
    path = tmp_path / "partly.sqlite"
    make_summary(path)
    with Store.open_to_add(path) as store:
        run = store.latest_run().id
        group = next(group.id for group in store.groups(run) if group.key.operator == "relu")
        store.add_case(group, 9, Outcome(CaseVerdict.WRONG, message="3 of 4 elements differ"), "")
        return summarize(store, store.latest_run(), SURFACE)


def test_what_is_broken_in_some_cases_is_told_beside_the_verdict(partly: AuditSummary) -> None:
    relu = next(o for o in partly.overloads if o.name == "aten::relu")
    assert relu.verdict is OverloadVerdict.NATIVE
    told = "wrong in 1 of 6 cases"
    for text in (markdown.render(partly), terminal.render(partly), html_page.render(partly)):
        words = " ".join(text.split())
        assert "Broken in some cases" in words
        assert told in words
        assert "1 right in most cases and broken in some" in words
    assert re.search(r"^\| `aten::relu` \| N! \|.* N \| .*dispatch only \|", markdown.render(partly), re.MULTILINE)
    assert re.search(r"aten::relu +native +N! ", terminal.render_selection(select(partly, patterns=["relu"])))
    rows = {row["overload"]: row for row in csv.DictReader(io.StringIO(csv_report.render(partly)))}
    assert (rows["aten::relu"]["broken_in_some"], rows["aten::relu"]["float32"]) == ("wrong:1", "native")
    assert json_report.read(json_report.render(partly)) == replace(partly, execution=None)
    figures = dict(zip(*[Page(html_page.render(partly)).texts[tag] for tag in ("dt", "dd")], strict=True))
    assert figures["overloads supported"] == str(partly.supported) == "1"


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no Chromium here to run the page's script in")
def test_the_page_marks_cells_that_are_broken_in_some_cases(partly: AuditSummary, tmp_path: Path) -> None:
    dom = dumped_dom(partly, tmp_path, "view=overloads&open=aten::relu")
    assert re.findall(r'class="v-native partly" title="([^"]+)"', dom) == [
        "float32: native, dispatch only, wrong in some cases"
    ]
    assert "3 of 4 elements differ</p>" in dom
    operators = dumped_dom(partly, tmp_path, "q=relu")
    assert len(re.findall(r'class="v-native partly"', operators)) == 1


@pytest.mark.parametrize(("simulated", "grade"), [(True, "dispatch only"), (False, "real device")])
def test_every_format_shows_the_grade_beside_the_verdict(simulated: bool, grade: str, tmp_path: Path) -> None:
    summary = make_summary(tmp_path / "store.sqlite", simulated=simulated)
    text = markdown.render(summary)
    assert re.search(rf"^\| {grade} \| 5 \| 5 \| 19 \| 1 wrong, 1 missing, 1 dtype gap, 1 native, 1 comp", text, re.M)
    assert re.search(rf"^\| `aten::sum` \| float32 \| {grade} \|", text, re.MULTILINE)
    assert re.search(rf"^\| `unknown.thing` \| crash \| {grade} \|", text, re.MULTILINE)
    assert re.search(rf"aten::sum +float32 +{grade} ", terminal.render(summary))
    assert re.search(rf"aten::sum +wrong .*{grade} ", terminal.render_selection(select(summary, patterns=["sum"])))
    rows = {row["overload"]: row for row in csv.DictReader(io.StringIO(csv_report.render(summary)))}
    assert (rows["aten::sum"]["grade"], rows["aten::sum"]["grade float32"]) == (grade, grade)
    assert (rows["aten::sin"]["grade"], rows["aten::sum"]["grade int8"]) == ("", "")
    plain = {o["name"]: o for o in json.loads(json_report.render(summary))["summary"]["overloads"]}
    assert plain["aten::sum"]["grade"] == plain["aten::sum"]["dtypes"]["float32"]["grade"] == grade
    assert "grade" not in plain["aten::sin"]
    page = html_page.page_data(summary)
    graded = dict(zip(page["overloads"]["name"], page["overloads"]["grade"], strict=True))
    assert page["grades"]["name"][graded["aten::sum"]] == grade
    assert graded["aten::sin"] == -1
    cases = dict(zip(page["cases"]["label"], page["cases"]["grade"], strict=True))
    assert page["grades"]["name"][cases["opinfo:sum:float32:1"]] == grade


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no Chromium here to run the page's script in")
def test_the_page_filters_by_grade_and_tells_it(summary: AuditSummary, tmp_path: Path) -> None:
    shown = dumped_dom(summary, tmp_path, "view=overloads&grade=dispatch only&open=aten::sum")
    assert "5 of 8 overloads, dispatch only" in shown
    assert "evidence: dispatch only" in shown
    assert "0 of 8 overloads, shipped kernel" in dumped_dom(summary, tmp_path, "view=overloads&grade=shipped kernel")


def test_stale_rules_are_pointed_out(summary: AuditSummary) -> None:
    stale = replace(summary, explanation=replace(summary.explanation, stale=("old-rule",)))
    assert re.search(r"old-rule[` ]*\|.*STALE", markdown.render(stale))
    assert "STALE" in terminal.render(stale)


def test_markdown_shows_the_tables(summary: AuditSummary) -> None:
    text = markdown.render(summary)
    for verdict, count in summary.overload_counts.items():
        assert re.search(rf"^\| \S* ?\| {verdict.value} \| {count:,} \|", text, re.MULTILINE), verdict
    assert "| `aten::mode` | 4 | 4 | missing | float32 | `mode` |" in text
    assert f"{summary.run.executed} cases executed" in text
    assert "opinfo:sum:float32:1" in text


@pytest.mark.parametrize("name", publish.FILES)
def test_a_published_file_is_a_function_of_what_was_found_alone(name: str, tmp_path: Path) -> None:
    first, second = make_summary(tmp_path / "a"), make_summary(tmp_path / "b", shuffled=True)
    assert first.execution != second.execution
    assert replace(first, execution=None) == replace(second, execution=None)
    _, render = publish.FILES[name]
    assert render(first) == render(second)
    assert render(first) == render(replace(first, execution=None))


def test_only_a_terminal_tells_when_a_run_was_and_its_numbers(tmp_path: Path) -> None:
    shuffled = make_summary(tmp_path / "b", shuffled=True)
    text = terminal.render(shuffled)
    assert "run 2, started 2001-01-01" in text
    worst = next(o for o in shuffled.overloads if o.name == "aten::sum").worst_case
    assert shuffled.execution is not None
    assert worst is not None
    assert f" {shuffled.execution.numbers[worst]}\n" in text


def test_what_the_hardware_is_called_counts_on_a_real_device_alone(tmp_path: Path) -> None:
    assert "Test M9" in markdown.render(make_summary(tmp_path / "real", simulated=False))
    assert "Test M9" not in markdown.render(make_summary(tmp_path / "simulated"))


def test_markdown_cells_cannot_break_their_table(summary: AuditSummary) -> None:
    lines = [line for line in markdown.render(summary).splitlines() if "alert" in line]
    assert lines
    for line in lines:
        assert len(re.findall(r"(?<!\\)\|", line)) in (7, 8)  # a row of its verdict, and one of what is unexplained
        assert "<script>" not in line.replace("\\<", "")


def test_terminal_shows_verdicts_and_fits_the_width(summary: AuditSummary) -> None:
    text = terminal.render(summary, width=100)
    for verdict, count in summary.overload_counts.items():
        assert re.search(rf"{verdict.value} +{count} ", text), verdict
    assert max(len(line) for line in text.splitlines()) <= 100


def test_terminal_lists_the_overloads_of_a_selection(summary: AuditSummary) -> None:
    text = terminal.render_selection(select(summary, [OverloadVerdict.NATIVE]))
    assert re.search(r"aten::relu +native +N .* 5 cases passed", text)
    assert "aten::mode" not in text
    empty = terminal.render_selection(select(summary, [OverloadVerdict.TIMEOUT]))
    assert "No overload of this run matches the filters." in empty


@pytest.mark.parametrize("name", ["terminal", "markdown", "html", "json"])
def test_a_part_of_a_report_says_that_it_is_one(name: str, summary: AuditSummary) -> None:
    part = select(summary, [OverloadVerdict.MISSING, OverloadVerdict.FALLBACK], ["mod*"])
    assert part.selection == "verdict missing, fallback; operators mod*"
    assert part.selection in RENDERERS[name](part).replace("\\*", "*")
    assert "FILTERED" not in RENDERERS[name](summary)


def test_failed_references_of_no_overload_are_left_to_the_files(summary: AuditSummary) -> None:
    failed = replace(summary.unattributed[0], verdict=CaseVerdict.REFERENCE_FAILED, entry="failed.thing")
    both = replace(summary, unattributed=(*summary.unattributed, failed))
    assert "unknown.thing" in terminal.render(both)
    assert "failed.thing" not in terminal.render(both)
    assert "`failed.thing`" in markdown.render(both)


def test_a_long_table_is_cut_in_a_terminal_only(summary: AuditSummary) -> None:
    many = tuple(replace(summary.fallbacks[0], overload=f"aten::op{i}") for i in range(terminal.ROWS + 7))
    longer = replace(summary, fallbacks=many)
    assert "… and 7 more" in terminal.render(longer)
    assert markdown.render(longer).count("`aten::op") == terminal.ROWS + 7


# ---- simulated, unfinished, empty


@pytest.mark.parametrize("name", RENDERERS)
def test_a_simulated_run_is_marked(name: str, summary: AuditSummary, tmp_path: Path) -> None:
    assert "simulated" in RENDERERS[name](summary).lower()
    real = make_summary(tmp_path / "real.sqlite", simulated=False)
    text = RENDERERS[name](real)
    if name in ("terminal", "markdown"):
        assert "SIMULATED" not in text
    if name == "html":
        assert '<div class="band"' not in text
        assert '<span class="tag">' not in text
        assert json.loads(Page(text).data)["simulated"] is False
    if name == "json":
        assert json.loads(text)["simulated"] is False
    if name == "csv":
        assert {row["device"] for row in csv.DictReader(io.StringIO(text))} == {"mps"}


def test_every_table_and_chart_of_a_simulated_run_is_marked(summary: AuditSummary) -> None:
    assert all("(SIMULATED)" in line for line in markdown.render(summary).splitlines() if line.startswith("## "))
    page = html_page.render(summary)
    marks = '<span class="tag">SIMULATED</span>'
    for block in re.findall(r"<figcaption>.*?</figcaption>|<summary>.*?</summary>", page, re.DOTALL):
        assert marks in block


@pytest.mark.parametrize("name", ["terminal", "markdown", "html"])
def test_an_unfinished_run_says_so(name: str, tmp_path: Path) -> None:
    text = RENDERERS[name](make_summary(tmp_path / "store.sqlite", finished=False))
    assert "UNFINISHED: 10 of 10 groups of cases are complete" in re.sub(r"\s+", " ", text)


@pytest.mark.parametrize("name", RENDERERS)
def test_without_executed_cases_nothing_is_claimed(name: str, tmp_path: Path) -> None:
    empty = make_summary(tmp_path / "store.sqlite", cases=False, finished=False)
    text = RENDERERS[name](empty)
    assert empty.supported == 0
    if name in ("terminal", "markdown", "html"):
        assert "No case was executed, so nothing is known of any operator." in text
    if name == "csv":
        rows = [row for row in csv.DictReader(io.StringIO(text)) if row["operator"] != csv_report.MODULE]
        assert {row["verdict"] for row in rows} == {"unreachable"}


def test_an_older_surface_is_pointed_out(tmp_path: Path) -> None:
    real = make_summary(tmp_path / "store.sqlite", simulated=False)
    other = replace(real, run=replace(real.run, environment={**real.run.environment, "torch": "2.9.1"}))
    assert "The run used torch 2.9.1, the list of overloads is that of torch 2.13.0" in markdown.render(other)
    assert "The run used" not in markdown.render(real)


# ---- the page


def test_the_page_needs_nothing_outside_itself(summary: AuditSummary) -> None:
    text = html_page.render(summary)
    page = Page(text)
    assert page.references == []
    assert not re.search(r"@import|url\(|https?://(?!github\.com/pytorch)", text)
    assert {"search", "dtype", "sort", "chips", "rows", "data", "more"} <= page.ids


def test_the_page_holds_every_overload_operator_and_entry(summary: AuditSummary) -> None:
    data = json.loads(Page(html_page.render(summary)).data)
    names = data["verdicts"]["name"]
    for table, shown in (("overloads", summary.overloads), ("operators", summary.operators)):
        verdicts = [names[position] for position in data[table]["verdict"]]
        assert dict(zip(data[table]["name"], verdicts, strict=True)) == {o.name: o.verdict.value for o in shown}
        assert all(len(column) == len(shown) for column in data[table].values())
    assert data["entries"]["name"] == [e.name for e in summary.entries]
    decisive = {o.worst_case for o in summary.overloads} | {
        c.worst_case for e in summary.entries for c in e.dtypes.values()
    }
    assert set(data["cases"]["label"]) == decisive - {None}
    mode = data["operators"]["name"].index("aten::mode")
    registered = [data["operators"][column][mode] for column in ("status", "kernel", "upstream")]
    assert registered == ["missing", "mode", "#77764"]


def test_the_page_shows_a_few_cases_of_each_entry_and_the_start_of_long_texts(tmp_path: Path) -> None:
    with Store.create(tmp_path / "many.sqlite") as store:
        run = store.begin_run({}, {"simulated": False})
        store.plan(run.id, [GroupKey("opinfo", "sum", "", dtype, "fallback") for dtype in DTYPES])
        for group in store.groups(run.id):
            store.add_case(group.id, 0, Outcome(CaseVerdict.WRONG, message=f"{group.key.dtype} " + "x" * 900), "")
        summary = summarize(store, run, SURFACE)
    data = html_page.page_data(summary)
    assert len(summary.cases) == len(DTYPES)
    assert len(data["cases"]["label"]) == html_page.SHOWN_CASES
    assert max(len(text) for text in data["texts"]) == html_page.SHOWN_TEXT


def test_texts_cannot_become_markup_in_the_page(summary: AuditSummary) -> None:
    text = html_page.render(summary)
    assert "<script>alert" not in text
    assert text.count("</script>") == 2
    data = json.loads(Page(text).data)
    assert HOSTILE in data["texts"]


def test_the_figures_of_the_page_are_those_of_the_summary(summary: AuditSummary) -> None:
    page = Page(html_page.render(summary))
    figures = dict(zip(page.texts["dt"], page.texts["dd"], strict=True))
    assert figures["overloads supported"] == str(summary.supported)
    assert figures["missing"] == str(summary.overload_counts[OverloadVerdict.MISSING])
    assert figures["cases executed"] == str(summary.run.executed)


def test_bars_are_as_long_as_their_numbers(summary: AuditSummary) -> None:
    reach, verdicts, by_dtype = charts.charts(summary)
    assert sum(segment.count for segment in reach.legend) == len(summary.overloads) == reach.bars[0].total
    assert [bar.label for bar in by_dtype.bars] == ["float32", "int8", "bool"]
    widths = [float(width) for width in re.findall(r' width="([\d.]+)"', verdicts.bars[0].svg)]
    assert sum(widths) == pytest.approx(charts.WIDTH, abs=1)
    counts = [segment.count for segment in verdicts.legend]
    assert [width > 200 for width in widths] == [count > 1 for count in counts]


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here to run the page's script in")
@pytest.mark.parametrize(
    ("address", "names"),
    [
        ("", ["sum", "mode", "cos", "relu", "flip", "heaviside", "mkldnn_linear", "sin"]),
        ("verdict=missing", ["mode"]),
        ("verdict=native,composite", ["relu", "flip"]),
        ("dtype=int8", ["relu"]),
        ("dtype=bool&verdict=dtype+gap", ["cos"]),
        ("q=aten::s", ["sum", "sin"]),
        ("q=nothing+like+it", []),
        ("sort=name&q=o", ["cos", "mode"]),
        ("view=overloads&q=x86", ["mkldnn_linear"]),
        ("view=entries&verdict=crash", ["unknown.thing"]),
    ],
)
def test_filters_work_in_a_browser(summary: AuditSummary, tmp_path: Path, address: str, names: list[str]) -> None:
    dom = dumped_dom(summary, tmp_path, address)
    found = re.findall(r'class="open"[^>]*>([^<]+)</button>', dom)
    assert [name.removeprefix("aten::") for name in found] == names
    assert f"{len(names)} of " in Page(dom).texts["p"][-1] or f">{len(names)} of " in dom


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here to run the page's script in")
def test_details_show_the_failing_case_and_its_replay(summary: AuditSummary, tmp_path: Path) -> None:
    dom = dumped_dom(summary, tmp_path, "open=aten::sum")
    worst = next(o for o in summary.operators if o.name == "aten::sum").worst_case
    assert worst == "opinfo:sum:float32:1"
    assert f"<code>mpsmith replay '{worst}'</code>" in dom
    assert "raises &lt;script&gt;" in dom
    assert "opinfo:sum:float32:1" in dom


KEYS = """<script>
const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
const seen = [];
press("/"); seen.push(document.activeElement.id);
press("ArrowDown"); press("ArrowDown"); seen.push(document.activeElement.textContent);
document.activeElement.click(); seen.push(document.querySelectorAll("tr.detail").length, location.hash);
press("ArrowUp"); press("ArrowUp"); seen.push(document.activeElement.id);
press("Escape"); seen.push(document.querySelectorAll("tr.detail").length);
document.title = seen.join(" ");
</script>"""


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here to run the page's script in")
def test_the_page_can_be_used_by_keyboard(summary: AuditSummary, tmp_path: Path) -> None:
    dom = dumped_dom(summary, tmp_path, "", KEYS)
    assert "<title>search aten::mode 1 #open=aten%3A%3Amode search 0</title>" in dom


def dumped_dom(summary: AuditSummary, folder: Path, address: str, script: str = "") -> str:
    path = folder / "page.html"
    path.write_text(html_page.render(summary) + script, encoding="utf-8")
    assert CHROMIUM is not None
    arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    arguments += [f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=2000", "--dump-dom"]
    done = subprocess.run(
        [CHROMIUM, *arguments, f"file://{path}#{address}"], capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout


# ---- files


def test_all_formats_are_written(summary: AuditSummary, tmp_path: Path) -> None:
    paths = publish.write_all(summary, tmp_path / "new" / "folder")
    assert sorted(path.name for path in paths) == ["coverage.csv", "coverage.html", "coverage.json", "coverage.md"]
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == sorted(p.name for p in paths)
    assert (tmp_path / "new" / "folder" / "coverage.md").read_text() == markdown.render(summary)


def test_a_failed_write_leaves_the_old_file_and_no_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.md"
    path.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mpsmith.reports.publish.os.fsync", full)
    with pytest.raises(MpsmithError, match=r"cannot write .*report\.md: No space left on device"):
        publish.write(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["report.md"]


def test_a_path_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MpsmithError, match="choose another place with --output"):
        publish.write(tmp_path / "file" / "report.md", "text")
    with pytest.raises(MpsmithError, match="Is a directory"):
        publish.write(tmp_path, "text")
