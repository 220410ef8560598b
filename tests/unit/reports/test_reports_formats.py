"""Every format shows the numbers of the summary, marks what was simulated, and is honest about what did not run."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mpsmith.audit.findings.results import AuditSummary
from mpsmith.audit.findings.summary import summarize
from mpsmith.audit.findings.summary_filter import select
from mpsmith.audit.model.selection import DTYPES
from mpsmith.audit.model.verdicts import CaseVerdict, Grade, Outcome, OverloadVerdict
from mpsmith.audit.releases.surface.overloads import Dispatch
from mpsmith.audit.store.store import Store
from mpsmith.errors import MpsmithError
from mpsmith.reports import (
    audit_tables,
    charts,
    csv_report,
    json_report,
    markdown,
    publish,
    run_tables,
    terminal,
    wording,
)
from mpsmith.reports.site.content import SiteContent
from mpsmith.reports.site.writing import files
from support.audits import SURFACE, make_summary


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> AuditSummary:
    return make_summary(tmp_path_factory.mktemp("audit") / "store.sqlite")


RENDERERS: dict[str, Callable[[AuditSummary], str]] = {
    "terminal": terminal.render,
    "markdown": markdown.render,
    "json": json_report.render,
    "csv": csv_report.render,
}


# ---- the numbers


def test_json_holds_the_whole_summary(summary: AuditSummary) -> None:
    assert json_report.read(json_report.render(summary)) == replace(summary, execution=None)


def test_json_names_its_format(summary: AuditSummary) -> None:
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
    *rows, last = audit_tables.verdict_table(summary).rows
    assert sum(int(row[2]) for row in rows) == last[2] == len(summary.overloads)
    assert sum(int(row[3]) for row in rows) == last[3] == len(summary.operators)
    assert {row[1]: row[2] for row in rows} == {v.value: n for v, n in summary.overload_counts.items()}
    *rows, last = run_tables.case_table(summary).rows
    assert last[-1] == sum(int(row[-1]) for row in rows) == summary.run.recorded
    assert sum(int(row[-1]) for row in run_tables.dtype_table(summary).rows) == summary.run.recorded


def test_the_first_sentence_counts_each_executed_overload_once(summary: AuditSummary) -> None:
    refused = replace(summary.overloads[0], name="aten::zeta", verdict=OverloadVerdict.REFERENCE_FAILED, executed=0)
    with_one = replace(summary, overloads=(*summary.overloads, refused))
    (sentence,) = [line for line in wording.key_figures(with_one) if "executed overloads" in line]
    right, executed, *others = map(int, re.findall(r"\d+", sentence))
    assert right + sum(others) == executed == summary.executed_overloads


def test_a_run_of_host_code_says_what_computed(summary: AuditSummary) -> None:
    assert not [line for line in wording.key_figures(summary) if line.startswith("Host code")]
    assert "own host code" not in wording.simulated_note(summary)
    environment = {**summary.run.environment, "host_code": {"source": "2.13.0", "macos": "26"}}
    native = replace(summary.overloads[0], name="aten::zeta", dispatch=Dispatch.NATIVE, grade=Grade.HOST_CODE)
    others = tuple(replace(o, dispatch=None) for o in summary.overloads)
    graded = replace(summary, run=replace(summary.run, environment=environment), overloads=(*others, native))
    assert "own host code of 2.13.0 (macOS 26)" in wording.simulated_note(graded)
    (sentence,) = [line for line in wording.key_figures(graded) if line.startswith("Host code")]
    assert sentence.startswith("Host code of 2.13.0 (macOS 26): evidence for 1 of 1 native overloads")


@pytest.mark.parametrize("name", ["terminal", "markdown"])
def test_unexplained_cases_come_before_the_rules(name: str, summary: AuditSummary) -> None:
    headings = ("Unexplained non-passes", "Rules that explain non-passes", "Operators that fell back or are missing")
    text = RENDERERS[name](summary)
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
    assert rows["aten::sum"]["explained_by"] == audit_tables.UNEXPLAINED
    assert rows["aten::relu"]["explained_by"] == ""


def test_unexplained_faults_come_before_explained_ones(summary: AuditSummary) -> None:
    first = next(o for o in summary.overloads if o.name == "aten::sum")
    rule = {first.worst_case: replace(summary.cases[first.worst_case], rule="some-rule")}
    explained = replace(summary, cases={**summary.cases, **rule})
    unexplained = next(c.label for c in summary.cases.values() if not c.rule and c.label != first.worst_case)
    other = replace(first, name="aten::zeta", worst_case=unexplained)
    both = replace(explained, overloads=(first, other))
    table = audit_tables.fault_table(both, OverloadVerdict.WRONG)
    assert [row[4] for row in table.rows] == [audit_tables.UNEXPLAINED, "some-rule"]


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


def test_partial_breakage_is_shown_beside_the_verdict(partly: AuditSummary) -> None:
    relu = next(o for o in partly.overloads if o.name == "aten::relu")
    assert relu.verdict is OverloadVerdict.NATIVE
    expected = "wrong in 1 of 6 cases"
    for text in (markdown.render(partly), terminal.render(partly)):
        words = " ".join(text.split())
        assert "Broken in some cases" in words
        assert expected in words
        assert "1 right in most cases and broken in some" in words
    assert re.search(r"^\| `aten::relu` \| N! \|.* N \| .*dispatch only \|", markdown.render(partly), re.MULTILINE)
    assert re.search(r"aten::relu +native +N! ", terminal.render_selection(select(partly, patterns=["relu"])))
    rows = {row["overload"]: row for row in csv.DictReader(io.StringIO(csv_report.render(partly)))}
    assert (rows["aten::relu"]["broken_in_some"], rows["aten::relu"]["float32"]) == ("wrong:1", "native")
    assert json_report.read(json_report.render(partly)) == replace(partly, execution=None)
    assert f"<dt>overloads supported</dt><dd>{partly.supported}</dd>" in dict(files(SiteContent(partly)))["index.html"]
    assert partly.supported == 1


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


def test_stale_rules_are_pointed_out(summary: AuditSummary) -> None:
    stale = replace(summary, explanation=replace(summary.explanation, stale=("old-rule",)))
    assert re.search(r"old-rule[` ]*\|.*STALE", markdown.render(stale))
    assert "STALE" in terminal.render(stale)


@pytest.mark.parametrize("name", publish.FILES)
def test_a_published_file_depends_only_on_the_findings(name: str, tmp_path: Path) -> None:
    first, second = make_summary(tmp_path / "a"), make_summary(tmp_path / "b", shuffled=True)
    assert first.execution != second.execution
    assert replace(first, execution=None) == replace(second, execution=None)
    _, render = publish.FILES[name]
    assert render(first) == render(second)
    assert render(first) == render(replace(first, execution=None))


def test_only_a_terminal_shows_the_time_and_number_of_a_run(tmp_path: Path) -> None:
    shuffled = make_summary(tmp_path / "b", shuffled=True)
    text = terminal.render(shuffled)
    assert "run 2, started 2001-01-01" in text
    worst = next(o for o in shuffled.overloads if o.name == "aten::sum").worst_case
    assert shuffled.execution is not None
    assert worst is not None
    assert f" {shuffled.execution.numbers[worst]}\n" in text


def test_names_the_hardware_only_on_a_real_device(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("name", ["terminal", "markdown", "json"])
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
    if name == "json":
        assert json.loads(text)["simulated"] is False
    if name == "csv":
        assert {row["device"] for row in csv.DictReader(io.StringIO(text))} == {"mps"}


def test_every_table_and_chart_of_a_simulated_run_is_marked(summary: AuditSummary) -> None:
    assert all("(SIMULATED)" in line for line in markdown.render(summary).splitlines() if line.startswith("## "))
    page = "".join(text for name, text in files(SiteContent(summary)) if name in ("index.html", "findings.html"))
    marks = '<span class="tag">SIMULATED</span>'
    for block in re.findall(r"<figcaption>.*?</figcaption>|<summary>.*?</summary>", page, re.DOTALL):
        assert marks in block
    real = files(SiteContent(replace(summary, run=replace(summary.run, simulated=False))))
    assert not any(marks in text for name, text in real if name in ("index.html", "findings.html"))


@pytest.mark.parametrize("name", ["terminal", "markdown"])
def test_an_unfinished_run_says_so(name: str, tmp_path: Path) -> None:
    text = RENDERERS[name](make_summary(tmp_path / "store.sqlite", finished=False))
    assert "UNFINISHED: 10 of 10 groups of cases are complete" in re.sub(r"\s+", " ", text)


@pytest.mark.parametrize("name", RENDERERS)
def test_without_executed_cases_nothing_is_claimed(name: str, tmp_path: Path) -> None:
    empty = make_summary(tmp_path / "store.sqlite", cases=False, finished=False)
    text = RENDERERS[name](empty)
    assert empty.supported == 0
    if name in ("terminal", "markdown"):
        assert "No case was executed, so nothing is known about any operator." in text
    if name == "csv":
        rows = [row for row in csv.DictReader(io.StringIO(text)) if row["operator"] != csv_report.MODULE]
        assert {row["verdict"] for row in rows} == {"unreachable"}


def test_an_older_surface_is_pointed_out(tmp_path: Path) -> None:
    real = make_summary(tmp_path / "store.sqlite", simulated=False)
    other = replace(real, run=replace(real.run, environment={**real.run.environment, "torch": "2.9.1"}))
    assert "The run used torch 2.9.1, the list of overloads is that of torch 2.13.0" in markdown.render(other)
    assert "The run used" not in markdown.render(real)


# ---- charts


def test_bars_are_as_long_as_their_numbers(summary: AuditSummary) -> None:
    reach, verdicts, by_dtype = charts.charts(summary)
    assert sum(segment.count for segment in reach.legend) == len(summary.overloads) == reach.bars[0].total
    assert [bar.label for bar in by_dtype.bars] == ["float32", "int8", "bool"]
    widths = [float(width) for width in re.findall(r' width="([\d.]+)"', verdicts.bars[0].svg)]
    assert sum(widths) == pytest.approx(charts.WIDTH, abs=1)
    counts = [segment.count for segment in verdicts.legend]
    assert [width > 200 for width in widths] == [count > 1 for count in counts]


# ---- files


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
    with pytest.raises(MpsmithError, match="choose another place"):
        publish.write(tmp_path / "file" / "report.md", "text")
    with pytest.raises(MpsmithError, match="Is a directory"):
        publish.write(tmp_path, "text")
