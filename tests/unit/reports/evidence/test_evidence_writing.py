"""A file is never larger than may be read: single cases go before verdicts and counts do, and are counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.audit.model.verdicts import CaseVerdict
from mpsmith.reports.evidence import writing
from mpsmith.reports.evidence.checking import problems_of
from mpsmith.reports.evidence.reading import read
from support.evidence_files import NOW, evidence, written

MANY = {f"aten::op{number}": {"float32": {"wrong": 9}, "int64": {"fallback": 9}} for number in range(60)}


@pytest.mark.parametrize(("step", "left_out"), [(0, 0), (2, 540), (3, 900), (5, 1080)])
def test_a_large_file_leaves_cases_out_and_counts_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, left_out: int
) -> None:
    whole = evidence(MANY)
    largest = len(writing._compressed(list(writing._reductions(whole))[step]))
    monkeypatch.setattr(writing, "LARGEST_FILE", largest)
    path = written(tmp_path, whole)
    assert path.stat().st_size == largest
    small = read(path)
    assert sum(small.audit.left_out.values()) == left_out
    assert small.audit.overloads == whole.audit.overloads
    assert problems_of(small, NOW) == []


def test_what_the_operators_tell_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "LARGEST_FILE", 0)
    steps = list(writing._reductions(evidence(MANY)))
    assert steps[0].audit.left_out == {}
    assert steps[2].audit.left_out == {CaseVerdict.FALLBACK: 540}
    assert steps[-1].audit.failing == {}
    with pytest.raises(writing.EvidenceError, match="--ops"):
        writing.packed(evidence(MANY))


def test_nothing_is_left_of_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "evidence.json.gz").mkdir()
    with pytest.raises(OSError, match="evidence"):
        written(tmp_path, evidence())
    assert [path.name for path in tmp_path.iterdir()] == ["evidence.json.gz"]
