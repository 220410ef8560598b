"""`mpsmith upstream survey --markdown`: a table of the families, and what was not proved, in words."""

from __future__ import annotations

import pytest

from mpsmith.cli.upstream import _print_page
from mpsmith.scaffold.upstream_survey import FamilyRow

PROVED = FamilyRow("mode", ("mode", "mode.values"), "yes", "yes", "yes", "yes", 392)
UNNEEDED = FamilyRow("shrink", made="not needed")
DIFFERS = FamilyRow("pdist", ("_pdist_forward",), "yes", "yes", "yes", "1 of 6 cases differ, first float32 0")


def test_the_page_counts_and_says_why_not(capsys: pytest.CaptureFixture[str]) -> None:
    _print_page([PROVED, DIFFERS])
    page = capsys.readouterr().out
    assert "1 of 2 families proved; simulated: " in page
    assert [cell.strip() for cell in page.splitlines()[6].strip("|").split("|")] == [
        *("`mode`", "2", "yes", "yes", "yes", "yes", "392")
    ]
    assert page.endswith("Not proved:\n\n- `pdist`: runs: 1 of 6 cases differ, first float32 0\n")
    _print_page([PROVED])
    assert "Not proved" not in capsys.readouterr().out


def test_a_family_whose_kernels_the_release_has_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    _print_page([PROVED, UNNEEDED])
    page = capsys.readouterr().out
    assert "1 of 1 families proved, 1 needs no patch: the release has the kernels; simulated: " in page
    assert "| not needed" in page
    assert "Not proved" not in page
