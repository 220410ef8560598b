"""`mpsmith audit --macos A,B`: one host code as several versions of macOS, which one table compares."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.audit.model.selection import MacOS, Settings
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome
from mpsmith.audit.shipped import requested_releases
from mpsmith.audit.store.records import Run
from mpsmith.audit.store.store import Store
from mpsmith.cli import app, audit
from mpsmith.cli.audit_options import AuditRequest
from mpsmith.errors import MpsmithError
from support.commands import typed
from support.json_document import documented
from support.needs import needs_simulated_device
from support.stores import begun, opinfo

PASSED, WRONG = Outcome(CaseVerdict.PASSED), Outcome(CaseVerdict.WRONG, message="1 of 3 elements differ")


@pytest.mark.parametrize(
    ("options", "versions"),
    [
        ([], [None]),
        (["--macos", "14.0"], [MacOS.SONOMA]),
        (["--macos", "14.0,15.1, 26"], [MacOS.SONOMA, MacOS.SEQUOIA, MacOS.TAHOE]),
        (["--macos", "26,13.3"], [MacOS.TAHOE, MacOS.VENTURA]),
    ],
)
def test_each_version_is_audited_in_the_given_order(
    options: list[str], versions: list[MacOS | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_simulated_device()
    built: list[list[str]] = []
    requests: list[AuditRequest] = []
    monkeypatch.setattr(audit, "built_folders", lambda asked: [built.append(asked) or "/built"])
    monkeypatch.setattr(audit, "run_request", requests.append)
    assert typed(app, "audit", "--host-code", "2.13.0", "--ops", "add", *options).exit_code == 0
    subjects = audit._subjects(requests[0])
    assert [(subject.host_code, subject.ops, subject.macos) for subject in subjects] == [
        ("/built", ("add",), version) for version in versions
    ]
    assert built == [["2.13.0"]]  # once for all versions


def test_without_a_machine_for_host_code_shipped_kernels_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "built_folders", lambda asked: [])
    monkeypatch.setattr(requested_releases, "_installed", lambda say: "2.13.0")
    (subject,) = audit._subjects(AuditRequest(Settings(), Path("store"), host_code="auto"))
    assert (subject.host_code, subject.shipped) == (None, "2.13.0")
    with pytest.raises(MpsmithError, match="only host code asks for the version of macOS"):
        audit._subjects(AuditRequest(Settings(), Path("store"), host_code="auto", macos=(MacOS.SONOMA,)))


def run_as(store: Store, macos: str, *outcomes: Outcome) -> Run:
    facts = {"host_code": {"source": "2.13.0", "macos": macos, "kernels": "2.13.0", "overloads": []}}
    recording = begun(store, {"ops": [], "dtypes": []}, facts)
    recording.add(opinfo("hypot"), *outcomes)
    return recording.finish()


@pytest.mark.parametrize("as_json", [False, True])
def test_results_and_comparison_name_each_version(
    as_json: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    needs_simulated_device()
    with Store.create(tmp_path / "store.sqlite") as store:
        runs = {MacOS.SONOMA: run_as(store, "14.0", WRONG, WRONG), MacOS.TAHOE: run_as(store, "26", WRONG, PASSED)}
    monkeypatch.setattr(audit, "_run", lambda settings, request: runs[settings.macos])
    monkeypatch.setattr(audit, "built_folders", lambda asked: ["/built"])
    request = AuditRequest(Settings(), store.path, host_code="2.13.0", macos=tuple(runs), as_json=as_json)
    audit.run_request(request)
    printed = capsys.readouterr().out
    if as_json:
        document = documented("audit --shipped", printed)
        names = ["2.13.0 (macOS 14.0)", "2.13.0 (macOS 26)"]
        assert [outcome["release"] for outcome in document["releases"]] == names
        assert [list(row["releases"]) for row in document["wrong_results"]] == [names, names]
        assert [row["change"] for row in document["wrong_results"]] == ["unchanged", "fixed"]
    else:
        assert "with the host code of 2.13.0 (macOS 14.0): 2 cases executed" in printed
        assert "with the host code of 2.13.0 (macOS 26): 2 cases executed" in printed
        assert "2.13.0 (macOS 14.0) -> 2.13.0 (macOS 26): 1 unchanged, 1 fixed" in printed


def test_compare_names_the_versions_of_two_runs(tmp_path: Path) -> None:
    with Store.create(tmp_path / "store.sqlite") as store:
        run_as(store, "14.0", WRONG)
        run_as(store, "26", PASSED)
    done = typed(app, "compare", f"{store.path}:1", f"{store.path}:2")
    assert done.exit_code == 1
    assert "and the host code of 2.13.0 (macOS 14.0)\n" in done.stdout
    assert "and the host code of 2.13.0 (macOS 26)\n" in done.stdout
