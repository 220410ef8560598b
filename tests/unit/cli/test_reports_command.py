"""`mpsmith report` as a user types it."""

from __future__ import annotations

import csv
import gc
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from mpsmith.audit.findings.run_data import RunData, read_run
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.selection import Settings
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome
from mpsmith.audit.store.store import Store
from mpsmith.cli import report as command
from mpsmith.cli.audit import show_and_publish
from mpsmith.cli.audit_options import AuditRequest
from mpsmith.cli.printing import print_json
from mpsmith.cli.site import PUBLISHED
from mpsmith.errors import MpsmithError
from mpsmith.registry.sync import Measurement, sync
from mpsmith.reports.registry_join import registered
from support.json_document import documented
from support.stores import begun, opinfo

FELL_BACK = Outcome(CaseVerdict.FALLBACK, fallbacks=("aten::mode",))
REFUSED = Outcome(CaseVerdict.MISSING, message="aten::mode has no kernel for mps", fallbacks=("aten::mode",))


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished simulated run of relu and mode; the registry is an empty folder."""
    monkeypatch.setenv("MPSMITH_REGISTRY", str(tmp_path / "registry"))
    path = tmp_path / "store.sqlite"
    with Store.create(path) as opened:
        recording = begun(opened)
        for dtype in ("float32", "int8"):
            recording.add(opinfo("nn.functional.relu", dtype), *[Outcome(CaseVerdict.PASSED)] * 2, calls={"relu": True})
        recording.add(opinfo("mode"), FELL_BACK, FELL_BACK, calls={"mode": True})
        recording.add(opinfo("mode", mode="strict"), REFUSED, REFUSED, calls={"mode": True})
        recording.finish()
    return path


def test_the_terminal_report_is_the_default(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command.report(store=store)
    out = capsys.readouterr().out
    assert out.startswith("Coverage of torch 2.13.0 on the SIMULATED mps device")
    assert "8 cases executed" in out


@pytest.mark.parametrize(
    ("form", "start"),
    [
        (command.Format.MARKDOWN, "# Coverage of torch 2.13.0"),
        (command.Format.JSON, "{\n"),
        (command.Format.CSV, "overload,operator,verdict"),
        (command.Format.JSON_SCHEMA, "{\n"),
    ],
)
def test_prints_every_form(store: Path, capsys: pytest.CaptureFixture[str], form: command.Format, start: str) -> None:
    command.report(store=store, form=form)
    assert capsys.readouterr().out.startswith(start)


def test_a_site_has_its_pages_and_the_changes(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Store.open_to_add(store) as opened:
        recording = begun(opened)
        recording.add(opinfo("nn.functional.relu"), Outcome(CaseVerdict.WRONG, message="x"), calls={"relu": True})
        recording.finish()
    command.report(store=store, site=tmp_path / "site", before=store)
    capsys.readouterr()
    start = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert "overloads changed since the last run: 1 worse, 1 other" in start
    command.report(store=store, site=tmp_path / "site", before=tmp_path / "site" / "coverage.json")
    capsys.readouterr()
    assert "No overload has another verdict" in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")


def test_rejects_options_that_do_not_fit_a_site(store: Path, tmp_path: Path) -> None:
    with pytest.raises(MpsmithError, match="--site has every form in it"):
        command.report(store=store, site=tmp_path, form=command.Format.CSV)
    with pytest.raises(MpsmithError, match="--before is for pages"):
        command.report(store=store, before=store)
    with pytest.raises(MpsmithError, match="has no finished audit to compare with"):
        command.report(store=store, site=tmp_path, before=store)
    with pytest.raises(MpsmithError, match=r"cannot read .*absent\.json: No such file"):
        command.report(store=store, site=tmp_path, before=tmp_path / "absent.json")
    other = tmp_path / "other.json"
    other.write_text("{}")
    with pytest.raises(MpsmithError, match=r"other\.json has no networks: about: Field required"):
        command.report(["networks"], store=store, pages=tmp_path, networks=other)
    with pytest.raises(MpsmithError, match="--networks is for the page `networks`"):
        command.report(store=store, site=tmp_path, networks=other)
    with pytest.raises(MpsmithError, match="pages are written with --pages DIR"):
        command.report(["recall"], store=store)
    with pytest.raises(MpsmithError, match=r"no page is called recal; .*did you mean recall"):
        command.report(["recal"], store=store, pages=tmp_path)


def test_pages_are_written_by_name(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command.report(["releases", "compiled_defects"], store=store, pages=tmp_path / "pages")
    written = [tmp_path / "pages" / f"{name}.md" for name in ("releases", "compiled_defects")]
    assert capsys.readouterr().out.splitlines() == list(map(str, written))
    assert all(path.read_text(encoding="utf-8").startswith("# ") for path in written)


def test_an_audit_that_ends_is_read_once_for_all_that_it_shows_and_writes(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reads: list[bool] = []

    def counted(*args: Any, only_verdicts: bool) -> RunData:
        reads.append(only_verdicts)
        assert not gc.isenabled()
        return read_run(*args, only_verdicts=only_verdicts)

    monkeypatch.setattr("mpsmith.audit.findings.run_data.read_run", counted)
    monkeypatch.chdir(tmp_path)
    with Store.open(store) as opened:
        run = opened.latest_run()
    show_and_publish(run, AuditRequest(Settings(), store, sync=True, report=True))
    assert reads == [False]
    assert gc.isenabled()
    written = {path.name for path in (tmp_path / PUBLISHED).iterdir()}
    assert {"coverage.md", "index.html"} <= written
    out = capsys.readouterr().out
    assert out.index("8 cases executed") < out.index("registry in") < out.index("report: ") < out.index("next: ")
    show_and_publish(run, AuditRequest(Settings(), store, sync=True, as_json=True))
    assert documented("audit --sync", capsys.readouterr().out)["registry"]["changed"] == []
    command.report(store=store, sync=True, as_json=True)
    assert documented("report --sync", capsys.readouterr().out)["simulated"] is True


def test_an_audit_that_executed_nothing_is_json_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Store.create(tmp_path / "store.sqlite") as opened:
        run = begun(opened).finish()
    with pytest.raises(typer.Exit):
        show_and_publish(run, AuditRequest(Settings(), tmp_path / "store.sqlite", as_json=True))
    assert documented("audit", capsys.readouterr().out)["executed"] == 0


def test_json_is_the_json_form(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command.report(store=store, as_json=True)
    assert documented("report", capsys.readouterr().out)["summary"]["run"]["executed"] == 8
    with pytest.raises(typer.BadParameter, match="cannot be combined with --format csv"):
        command.report(store=store, as_json=True, form=command.Format.CSV)


def test_prints_every_line_in_ascii(store: Path) -> None:
    def shown(**variables: str) -> str:
        line = [sys.executable, "-m", "mpsmith", "report", "--store", str(store)]
        return subprocess.run(line, capture_output=True, text=True, check=True, env={**os.environ, **variables}).stdout

    in_full, in_ascii = shown(PYTHONIOENCODING="utf-8"), shown(PYTHONIOENCODING="ascii")
    assert not in_full.isascii()
    assert in_ascii == in_full.encode("ascii", "replace").decode()


def test_filters_list_matches(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command.report(store=store, verdict=["missing"])
    out = capsys.readouterr().out
    assert "aten::mode " in out
    assert "aten::relu " not in out
    command.report(store=store, ops=["nn.functional.relu"], dtype=["int8"], form=command.Format.CSV)
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["overload"], row["int8"], row["float32"]) for row in rows] == [("aten::relu", "native", "")]


def test_cases_are_listed_with_their_numbers(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command.report(store=store, cases=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "cases of run 1 on the SIMULATED mps device"
    assert [line.split()[:3] for line in lines[1:]] == [
        ["5", "fallback", "opinfo:mode:float32:0"],
        ["6", "fallback", "opinfo:mode:float32:1"],
        ["7", "missing", "opinfo:mode:float32:0:strict"],
        ["8", "missing", "opinfo:mode:float32:1:strict"],
    ]


def test_unexplained_cases_are_listed_and_fail(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command.report(store=store, unexplained=True)  # mode has no kernel, says the surface: all is explained
    assert capsys.readouterr().out.splitlines()[1:] == ["no case that matches is unexplained"]
    with Store.open_to_add(store) as opened:
        run = opened.latest_run()
        opened.plan(run.id, [GroupKey("opinfo", "sin", "", "float32", "fallback")])
        group = opened.groups(run.id)[-1].id
        opened.add_case(group, 0, Outcome(CaseVerdict.WRONG, message="shape is [1], not [2]"), "(float32[2])")
    for form in (command.Format.TERMINAL, command.Format.CSV, command.Format.JSON):
        with pytest.raises(typer.Exit) as exit_:
            command.report(store=store, unexplained=True, form=form)
        assert exit_.value.exit_code == 1
        out = capsys.readouterr().out
        assert "opinfo:sin:float32:0" in out
        assert "opinfo:mode" not in out
    command.report(store=store, unexplained=True, verdict=["missing"])
    command.report(store=store, unexplained=True, ops=["mode"])
    assert "opinfo" not in capsys.readouterr().out


def test_the_rule_of_each_case_is_listed_with_it(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command.report(store=store, cases=True)
    assert all(line.endswith("(no-kernel)") for line in capsys.readouterr().out.splitlines()[1:])
    command.report(store=store, cases=True, form=command.Format.CSV)
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {row["explained_by"] for row in rows} == {"no-kernel"}


@pytest.mark.parametrize(
    ("filters", "numbers"),
    [
        ({"ops": ["relu"]}, [1, 2, 3, 4]),
        ({"ops": ["aten::mode"], "verdict": ["missing"]}, [7, 8]),
        ({"dtype": ["int8"]}, [3, 4]),
        ({"verdict": ["passed"]}, [1, 2, 3, 4]),
        ({"verdict": ["dtype-gap"]}, []),
        ({"ops": ["nn.functional.*,mode"], "dtype": ["float32"]}, [5, 6, 7, 8, 1, 2]),
    ],
)
def test_cases_can_be_filtered(
    store: Path, capsys: pytest.CaptureFixture[str], filters: dict[str, list[str]], numbers: list[int]
) -> None:
    command.report(store=store, cases=True, form=command.Format.JSON, **filters)  # type: ignore[arg-type]
    assert [case["case"] for case in documented("report --cases", capsys.readouterr().out)["cases"]] == numbers


def test_an_empty_list_of_cases_is_json_too(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command.report(store=store, cases=True, verdict=["crash"], form=command.Format.JSON)
    assert json.loads(capsys.readouterr().out) == {"version": 1, "run": 1, "cases": []}


def test_lists_cases_of_an_overload_without_an_entry(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Store.open_to_add(store) as opened:
        opened.add_called_overloads(1, {"aten::clamp_min": False})
    command.report(store=store, cases=True, ops=["clamp_min"], form=command.Format.JSON)
    assert [case["case"] for case in documented("report --cases", capsys.readouterr().out)["cases"]] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"verdict": ["nonsense"]}, "unknown verdict 'nonsense' .there are: native, composite"),
        ({"verdict": ["native"], "cases": True}, "unknown verdict 'native' .there are: passed, fallback"),
        ({"ops": ["rely"]}, r"no operator or entry of this report matches rely \(did you mean relu"),
        ({"ops": ["mod"], "cases": True}, r"no case of run 1 is of an operator that matches mod \(did you mean mode"),
        ({"ops": ["mod"], "cases": True, "form": command.Format.JSON}, "no case of run 1 is of an operator"),
        ({"dtype": ["float64"]}, "no case has dtype 'float64'"),
        ({"run": 4}, "no run 4"),
        ({"cases": True, "form": command.Format.MARKDOWN}, "--cases comes as terminal, json or csv"),
    ],
)
def test_a_wrong_option_is_one_clear_error(
    store: Path, options: dict[str, object], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(MpsmithError, match=message):
        command.report(store=store, **options)  # type: ignore[arg-type]
    assert not capsys.readouterr().out  # no half of a JSON document


def test_a_store_without_audits_is_an_error(tmp_path: Path) -> None:
    Store.create(tmp_path / "empty.sqlite").close()
    with pytest.raises(MpsmithError, match="holds no audit yet"):
        command.report(store=tmp_path / "empty.sqlite")
    with pytest.raises(MpsmithError, match="no such store"):
        command.report(store=tmp_path / "absent.sqlite")


def test_a_run_that_executed_nothing_is_reported_and_fails(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Store.open_to_add(store) as opened:
        opened.begin_run({}, {"simulated": True})
    with pytest.raises(MpsmithError, match=r"run 2 of .* executed no case, so nothing is known"):
        command.report(store=store)
    assert "No case was executed, so nothing is known about any operator." in capsys.readouterr().out


def test_shows_the_status_of_the_registry(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measurement = Measurement("aten::mode", "2.13.0", "simulated", None, {"aten::mode": "missing"}, "missing")
    sync(tmp_path / "registry", [measurement])
    assert registered(tmp_path / "registry")["aten::mode"].status == "missing"
    command.report(store=store, form=command.Format.JSON)
    operators = json.loads(capsys.readouterr().out)["summary"]["operators"]
    assert next(o for o in operators if o["name"] == "aten::mode")["registered"] == {"status": "missing"}


def test_a_broken_registry_is_a_warning(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "registry").mkdir()
    (tmp_path / "registry" / "m.yaml").write_text("aten::mode: [\n")
    command.report(store=store)
    captured = capsys.readouterr()
    assert "warning: the report leaves the registry out" in captured.err
    assert captured.out.startswith("Coverage of torch")


def test_json_has_its_version_and_rows_their_name(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"torch": "2.13.0"})
    print_json([1, 2])
    print_json({"version": 7})
    shown = [json.loads(line) for line in capsys.readouterr().out.replace("}\n", "}\0").split("\0") if line.strip()]
    assert shown == [{"version": 1, "torch": "2.13.0"}, {"version": 1, "rows": [1, 2]}, {"version": 7}]
