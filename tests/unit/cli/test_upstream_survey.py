"""`mpsmith upstream survey`: a table of the families."""

from __future__ import annotations

import pytest

from mpsmith.cli.upstream import _outcome, _print_survey
from mpsmith.scaffold.upstream_survey import FamilyRow

PROVED = FamilyRow("mode", ("mode", "mode.values"), "yes", "yes", "yes", "yes", 392)
UNNEEDED = FamilyRow("shrink", made="not needed")
DIFFERS = FamilyRow("pdist", ("_pdist_forward",), "yes", "yes", "yes", "1 of 6 cases differ, first float32 0")


def test_counts_families_and_shows_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    _print_survey([PROVED, DIFFERS])
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split() == ["mode", "2", "yes", "yes", "yes", "yes", "392"]
    assert lines[3].split() == ["pdist", "1", "yes", "yes", "yes", "no"]
    assert lines[-1].startswith("1 of 2 families proved. simulated: ")
    assert _outcome(DIFFERS) == "runs: 1 of 6 cases differ, first float32 0"


def test_a_family_that_the_release_has_is_not_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    _print_survey([PROVED, UNNEEDED])
    assert "1 of 1 families proved, 1 needs no patch: the release has the kernels. " in capsys.readouterr().out
