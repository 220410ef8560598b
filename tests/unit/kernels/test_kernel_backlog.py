"""What is left of a release's backlog, from stores that no audit wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.audit.model.verdicts import CaseVerdict, Outcome
from mpsmith.errors import MpsmithError
from mpsmith.kernels.verification.backlog import OURS, backlogs_of, family_of
from mpsmith.reports.pages import PAGES, PageInputs
from support.stores import begun, new_store, opinfo

MODE = {"aten::mode": True}
FELL = Outcome(CaseVerdict.FALLBACK, fallbacks=("aten::mode",))
PASSED = Outcome(CaseVerdict.PASSED)
WRONG = Outcome(CaseVerdict.WRONG, message="a sum of two is three")


def store(folder: Path, *after: Outcome, profile: str = "2.13.0") -> Path:
    """A store of an audit with kernels: two cases of mode fell back, then what `after` says."""
    return store_of_audits(folder, (profile, after))


def store_of_audits(folder: Path, *audits: tuple[str, tuple[Outcome, ...]]) -> Path:
    """The same with several audits, one after the other, each of a release."""
    folder.mkdir(exist_ok=True)
    with new_store(folder) as opened:
        for profile, with_ours in audits:
            settings: dict[str, object] = {"profile": profile, "ops": ["mode"], "imports": []}
            for imports, outcomes in (([], (FELL, FELL)), ([OURS], with_ours)):
                recording = begun(opened, settings | {"imports": imports})
                recording.add(opinfo("mode"), *outcomes, calls=MODE)
                recording.finish()
    return folder / "store.sqlite"


def test_backlog_is_empty_if_our_kernels_pass(tmp_path: Path) -> None:
    (backlog,) = backlogs_of(store(tmp_path, PASSED, PASSED))
    mode = backlog.overloads["aten::mode"]
    assert (mode.lacking, mode.passed, dict(mode.left)) == (2, 2, {})
    assert (backlog.left, backlog.release, backlog.simulated, backlog.executed) == ((), "2.13.0", True, 2)


def test_backlog_has_remaining_fallbacks(tmp_path: Path) -> None:
    (backlog,) = backlogs_of(store(tmp_path, PASSED, FELL))
    assert backlog.left == ("aten::mode",)
    assert backlog.overloads["aten::mode"].left == {CaseVerdict.FALLBACK: 1}


def test_the_newest_audit_of_a_release_counts(tmp_path: Path) -> None:
    path = store_of_audits(tmp_path, ("2.13.0", (FELL, FELL)), ("2.13.0", (PASSED, PASSED)))
    (backlog,) = backlogs_of(path)
    assert backlog.left == ()


def test_refuses_store_without_kernels(tmp_path: Path) -> None:
    with new_store(tmp_path) as opened:
        begun(opened, {"imports": []}).finish()
        other = begun(opened, {"imports": [OURS], "ops": ["take"]})
        other.finish()
    with pytest.raises(MpsmithError, match="holds no audit with kernels; write one with: mpsmith audit --with-kernels"):
        backlogs_of(tmp_path / "store.sqlite")


def test_the_page_compares_releases_and_names_the_rest(tmp_path: Path) -> None:
    path = store_of_audits(tmp_path, ("2.15.0", (FELL, WRONG)), ("2.13.0", (PASSED, PASSED)))
    page = PAGES["kernel_backlog"].markdown(PageInputs(stores=[path]))
    assert page.startswith("# What torch lacks on mps, with and without our kernels")
    assert "the SIMULATED mps device" in page
    assert "| mode | mode | 2 &gt; 0 | 2 &gt; 1, 1 wrong |".replace("&gt;", "\\>") in page
    assert "| mode | wrong | a sum of two is three | - | 1 |" in page


@pytest.mark.parametrize(
    ("overload", "family"),
    [("aten::mode", "mode"), ("aten::heaviside_", "heaviside"), ("aten::max.unary_out", "extremum"), ("aten::add", "")],
)
def test_family_of_derived_forms(overload: str, family: str) -> None:
    assert family_of(overload) == family
