"""One audit a release, resumed and set side by side; what runs the audits is pretended here."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.audit.findings.store import Store
from mpsmith.audit.model.verdicts import OverloadVerdict
from mpsmith.cli.audited_releases import arguments_of_one, audit_releases, rows
from mpsmith.errors import MpsmithError
from mpsmith.reports.evidence.sides import Side, SideVerdict
from support.stores import begun

NATIVE, MISSING = SideVerdict(OverloadVerdict.NATIVE), SideVerdict(OverloadVerdict.MISSING)
BROKEN = SideVerdict(OverloadVerdict.NATIVE, broken=True)


def side(**overloads: SideVerdict) -> Side:
    return Side("a", "a", True, overloads)


def test_only_what_differs_is_shown_and_first_what_is_newly_broken() -> None:
    found = rows([side(a=MISSING, b=NATIVE, c=NATIVE, d=BROKEN), side(a=NATIVE, b=NATIVE, c=BROKEN)])
    assert found == {
        "c": ("native", "native, wrong in some cases"),
        "a": ("missing", "native"),
        "d": ("native, wrong in some cases", "-"),
    }
    assert list(found) == ["c", "a", "d"]


@pytest.mark.parametrize("given", [["--releases", "2.10.0,2.13.0"], ["--releases=2.10.0,2.13.0"]])
def test_the_audit_of_one_release_has_the_other_options(given: list[str]) -> None:
    arguments = ["audit", "--ops", "relu", *given, "--resume", "--store", "a.sqlite"]
    assert arguments_of_one(arguments) == ["audit", "--ops", "relu", "--store", "a.sqlite"]


def test_a_stopped_matrix_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpsmith.cli.audited_releases.print_matrix", lambda *_: None)
    path = tmp_path / "store.sqlite"
    asked: list[tuple[str, bool]] = []

    def audit(release: str, go_on: bool) -> None:
        asked.append((release, go_on))
        with Store.open_or_create(path) as store:
            if go_on:
                (run,) = [run for run in store.runs() if run.environment["torch"].startswith(release)]
                store.finish_run(run.id)
                return
            recording = begun(store, {"seed": 1}, {"torch": f"{release}+cpu"})
            if release == "2.12.0":
                raise KeyboardInterrupt
            recording.finish()

    with pytest.raises(MpsmithError, match="nothing to resume"):
        audit_releases(["2.10.0"], path, resume=True, audit=audit)
    with pytest.raises(KeyboardInterrupt):
        audit_releases(["2.10.0", "2.12.0", "2.13.0"], path, resume=False, audit=audit)
    asked.clear()
    audit_releases(["2.10.0", "2.12.0", "2.13.0"], path, resume=True, audit=audit)
    assert asked == [("2.12.0", True), ("2.13.0", False)]
