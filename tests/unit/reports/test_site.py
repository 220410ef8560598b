"""The site: whole, small, the same every time, and nothing in it leads nowhere or becomes markup by accident."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from mpsmith.audit.answers import names
from mpsmith.audit.findings.overload_verdict import SEVERITY
from mpsmith.audit.findings.results import AuditSummary, OverloadSummary
from mpsmith.audit.findings.summary import summarize
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.selection import DTYPES
from mpsmith.audit.model.verdicts import CASE_SEVERITY, CaseVerdict, Grade, Outcome, OverloadVerdict
from mpsmith.audit.store.store import Store
from mpsmith.registry.found_wrong import load as load_found_wrong
from mpsmith.registry.model import Entry
from mpsmith.reports import explorer_data
from mpsmith.reports.evidence.devices import findings_by_device
from mpsmith.reports.site import audits
from mpsmith.reports.site.content import SiteContent
from mpsmith.reports.site.writing import files, write_site
from support.audits import HOSTILE, SURFACE, make_summary
from support.evidence_files import evidence

PAGES = [
    *("audits.html", "findings.html", "index.html", "kernels.html"),
    *("operators.html", "releases.html", "run.html", "shipped.html"),
]
LARGEST = {".html": 400_000, ".js": 2_000_000}


class Links(HTMLParser):
    """What a page names by id, and what it refers to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.references: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.references += [value for name, value in attrs if name in ("src", "href", "action") and value]


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> AuditSummary:
    return make_summary(tmp_path_factory.mktemp("audit") / "store.sqlite")


def content_of(summary: AuditSummary, **more: Any) -> SiteContent:
    registry = {"aten::mode": Entry(operator="aten::mode", kernel="mode")}
    return SiteContent(summary, registry, load_found_wrong(), **more)


def handed_over(text: str) -> Any:
    """The data of a data file."""
    matched = re.fullmatch(r'mpsmith\.give\("[^"]+",(.*)\);\n', text, re.DOTALL)
    assert matched
    return json.loads(matched[1])


# ---- the files


def test_writes_every_page_and_the_files_that_it_loads(summary: AuditSummary, tmp_path: Path) -> None:
    paths = write_site(content_of(summary), tmp_path / "new" / "site")
    assert sorted(path.name for path in (tmp_path / "new" / "site").glob("*.html")) == PAGES
    assert sorted(path for path in (tmp_path / "new" / "site").rglob("*") if path.is_file()) == sorted(paths)


def test_all_references_exist(summary: AuditSummary, tmp_path: Path) -> None:
    site = tmp_path / "site"
    broken = replace(summary, overloads=tuple(replace(o, verdict=OverloadVerdict.WRONG) for o in summary.overloads))
    devices = findings_by_device([evidence({"aten::mode": {"float32": {"passed": 2}}})])
    write_site(content_of(summary, before=broken, devices=devices), site)
    for page in site.rglob("*.html"):
        for reference in Links(page.read_text(encoding="utf-8")).references:
            if reference.startswith("https://github.com/pytorch/"):
                continue
            path, _, place = reference.partition("#")
            target = page.parent / (path or page.name)
            assert target.is_file(), f"{page.name} refers to {reference}"
            if place and "=" not in place:  # otherwise a view of the explorer
                assert place in Links(target.read_text(encoding="utf-8")).ids, f"{page.name} refers to {reference}"


def test_no_page_loads_anything_from_a_network(summary: AuditSummary) -> None:
    for name, text in files(content_of(summary)):
        if name.endswith((".html", ".css", ".js")) and not name.startswith("data/"):
            assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|type=.module", text), name
            assert not re.findall(r"https?://(?!github\.com/)", text), name


def test_ids_are_given_once_on_a_page(summary: AuditSummary) -> None:
    for name, text in files(content_of(summary)):
        if name.endswith(".html"):
            ids = Links(text).ids
            assert len(ids) == len(set(ids)), name


def test_the_same_findings_give_the_same_bytes(summary: AuditSummary, tmp_path: Path) -> None:
    shuffled = make_summary(tmp_path / "b.sqlite", shuffled=True)
    assert dict(files(content_of(summary))) == dict(files(content_of(shuffled)))


def test_an_unchanged_file_is_left_alone(summary: AuditSummary, tmp_path: Path) -> None:
    content = content_of(summary)
    before = {path: path.stat().st_mtime_ns for path in write_site(content, tmp_path)}
    (tmp_path / "index.html").write_text("another")
    assert {path: path.stat().st_mtime_ns for path in write_site(content, tmp_path)}.keys() == before.keys()
    changed = [path.name for path, at in before.items() if path.stat().st_mtime_ns != at]
    assert changed == ["index.html"]


def test_removes_pages_of_an_earlier_site_and_keeps_other_files(summary: AuditSummary, tmp_path: Path) -> None:
    for name in ("compiled.html", "mine.html", "notes.md"):
        (tmp_path / name).write_text("old")
    write_site(content_of(summary), tmp_path)
    assert not (tmp_path / "compiled.html").exists()
    assert (tmp_path / "mine.html").read_text() == (tmp_path / "notes.md").read_text() == "old"


def test_pages_stay_small_with_three_thousand_operators(summary: AuditSummary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "near", lambda *_: "")  # torch has none of these names, and similar ones take long
    missing = next(o for o in summary.operators if o.name == "aten::mode")
    overload = next(o for o in summary.overloads if o.name == "aten::mode")
    number = 3000
    operators = tuple(replace(missing, name=f"aten::an_operator_with_a_name_{i}") for i in range(number))
    overloads: list[OverloadSummary] = []
    for operator in operators:
        for variant in ("", ".out"):
            name = f"{operator.name}{variant}"
            overloads.append(
                replace(overload, name=name, operator=operator.name, schema=f"{name}(Tensor self) -> " * 6)
            )
    many = replace(summary, operators=operators, overloads=tuple(overloads))
    sizes = {name: len(text.encode()) for name, text in files(content_of(many))}
    for ending, most in LARGEST.items():
        assert max(size for name, size in sizes.items() if name.endswith(ending)) < most
    # What the first page loads before it can answer.
    loaded = ("index.html", "assets/site.css", "data/legend.js", "data/operators.js", "data/functions.js")
    assert sum(sizes[name] for name in loaded) < 600_000


def test_texts_cannot_become_markup(summary: AuditSummary) -> None:
    seen = 0
    for name, text in files(content_of(summary)):
        if name.endswith((".html", ".js")):
            assert "<script>alert" not in text, name
            seen += "alert(" in text
    assert seen >= 2  # in a page, in the details
    data = handed_over(dict(files(content_of(summary)))["data/overloads.js"])
    assert any(HOSTILE in text for text in data["texts"])


# ---- what the scripts are given


def test_the_tables_hold_every_operator_overload_and_entry(summary: AuditSummary) -> None:
    written = dict(files(content_of(summary)))
    for table, shown in (("operators", summary.operators), ("overloads", summary.overloads)):
        data = handed_over(written[f"data/{table}.js"])
        verdicts = [SEVERITY[position] for position in data["verdict"]]
        assert dict(zip(data["name"], verdicts, strict=True)) == {o.name: o.verdict for o in shown}
        assert all(len(column) == len(shown) for name, column in data.items() if name != "texts")
    data = handed_over(written["data/operators.js"])
    mode = data["name"].index("aten::mode")
    assert [data[column][mode] for column in ("status", "kernel", "upstream")] == ["missing", "mode", ["77764"]]
    relu = data["name"].index("aten::relu")
    digits = dict(zip(summary.dtypes, data["dtypeVerdicts"][relu], strict=True))
    native = str(SEVERITY.index(OverloadVerdict.NATIVE))
    assert {dtype for dtype, digit in digits.items() if digit == native} == {"float32", "int8"}
    entries = handed_over(written["data/entries.js"])
    worst = dict(zip(entries["name"], entries["verdict"], strict=True))
    assert CASE_SEVERITY[worst["unknown.thing"]] is CaseVerdict.CRASH


def test_details_are_in_the_part_that_the_tables_name(summary: AuditSummary) -> None:
    written = dict(files(content_of(summary)))
    decisive = {o.worst_case for o in summary.overloads}
    decisive |= {result.worst_case for entry in summary.entries for result in entry.dtypes.values()}
    shown = set()
    for table, key in (("operators", "operators"), ("entries", "entries")):
        data = handed_over(written[f"data/{table}.js"])
        for name, part in zip(data["name"], data["part"], strict=True):
            detail = handed_over(written[f"data/details/{part:02}.js"])[key][name]
            groups = detail["overloads"] if key == "operators" else [detail]
            shown |= {case["label"] for group in groups for case in group.get("cases", ())}
    assert shown == decisive - {None}


def test_details_say_of_which_grade_a_case_is(summary: AuditSummary) -> None:
    parts = explorer_data.details(summary, facts_of(summary))
    matched = next(part["operators"]["aten::sum"] for part in parts if "aten::sum" in part["operators"])
    (overload,) = matched["overloads"]
    assert explorer_data.GRADES[overload["grade"]] is Grade.DISPATCH_ONLY
    assert explorer_data.GRADES[overload["cases"][0]["grade"]] is Grade.DISPATCH_ONLY
    unexecuted = next(part["operators"]["aten::sin"] for part in parts if "aten::sin" in part["operators"])
    assert unexecuted["overloads"][0]["grade"] == -1


def facts_of(summary: AuditSummary) -> Any:
    from mpsmith.reports.operator_facts import operator_facts
    from mpsmith.reports.release_history import history_of

    return operator_facts(summary, history_of(summary))


def test_details_show_a_few_cases_and_the_start_of_long_texts(tmp_path: Path) -> None:
    with Store.create(tmp_path / "many.sqlite") as store:
        run = store.begin_run({}, {"simulated": False})
        store.plan(run.id, [GroupKey("opinfo", "sum", "", dtype, "fallback") for dtype in DTYPES])
        for group in store.groups(run.id):
            store.add_case(group.id, 0, Outcome(CaseVerdict.WRONG, message=f"{group.key.dtype} " + "x" * 900), "")
        summary = summarize(store, run, SURFACE)
    assert len(summary.cases) == len(DTYPES)
    entry = next(
        part["entries"]["sum"] for part in explorer_data.details(summary, facts_of(summary)) if "sum" in part["entries"]
    )
    assert len(entry["cases"]) == explorer_data.SHOWN_CASES
    assert {len(case["message"]) for case in entry["cases"]} == {explorer_data.SHOWN_TEXT}


# ---- the pages


def test_counts_changes_and_keeps_both_audits(summary: AuditSummary, tmp_path: Path) -> None:
    was = {"aten::sum": OverloadVerdict.NATIVE, "aten::relu": OverloadVerdict.MISSING}
    earlier = tuple(replace(o, verdict=was.get(o.name, o.verdict)) for o in summary.overloads if o.name != "aten::cos")
    before = replace(summary, overloads=earlier)
    written = dict(files(content_of(summary, before=before)))
    assert "3 overloads changed since the last run: 1 worse, 1 better, 1 new." in written["index.html"]
    names = [audits.name_of(audit) for audit in (before, summary)]
    assert len({*names}) == 2
    assert {f"data/audits/{name}.js" for name in names} <= set(written)
    # Another report into the folder adds its audit; the last one is its own.
    index = tmp_path / "data" / "audits.js"
    crashed = tuple(replace(o, verdict=OverloadVerdict.CRASH) for o in summary.overloads)
    run = replace(summary.run, settings={**summary.run.settings, "imports": ["mpsmith.kernels"]})
    other = replace(summary, overloads=crashed, run=run)
    assert "_with_mpsmith.kernels_" in audits.name_of(other)
    for audit in (summary, other, summary, summary):
        write_site(content_of(audit), tmp_path)
    assert index.read_text() == f'mpsmith.give("audits",["{audits.name_of(other)}","{names[1]}"]);\n'


def test_the_kernels_page_has_ours_and_the_gaps_that_are_left(summary: AuditSummary) -> None:
    page = dict(files(content_of(summary)))["kernels.html"]
    ours, _, gaps = page.partition('id="gaps-without-a-kernel-of-ours"')
    assert "<td><code>aten::mode</code></td><td><code>mode</code></td>" in ours
    assert "aten::mode" not in gaps
