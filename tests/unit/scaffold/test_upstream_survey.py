"""The comparison of a patch with its family, and the survey of all families."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from mpsmith.scaffold import upstream_survey
from mpsmith.scaffold.errors import ScaffoldError
from mpsmith.scaffold.operators.source import source_of
from mpsmith.scaffold.patch_comparison import CaseError, PatchComparison, _compared
from mpsmith.scaffold.upstream_survey import UNNEEDED, FamilyRow, survey

X = torch.tensor([1.0, float("nan")])


@pytest.mark.parametrize(
    ("actual", "difference"),
    [
        ([X.clone()], ""),
        ([torch.tensor([1.0, 2.0])], "result 0 differs"),
        ([X.double()], "result 0 differs"),
        ([X[:1]], "result 0 differs"),
        ([3], "result 0 differs"),
        (CaseError("RuntimeError", "no"), "RuntimeError (no) in place of a result"),
        ([], "0 results in place of 1"),
    ],
)
def test_a_result_is_the_same_to_the_last_bit_or_it_is_a_difference(actual: object, difference: str) -> None:
    run = _compared({"case 0": [X]}, {"case 0": actual})
    assert run.differences == ((f"case 0: {difference}",) if difference else ())
    assert run.same is not bool(difference)


def test_errors_of_one_type_are_the_same_but_prove_nothing_alone() -> None:
    refused = {"case 0": CaseError("IndexError", "there")}
    run = _compared(refused, {"case 0": CaseError("IndexError", "here")})
    assert (run.cases, run.errors, run.differences) == (1, 1, ())
    assert not run.same
    assert _compared(refused, {"case 0": [X]}).differences == ("case 0: a result in place of IndexError (there)",)


def test_nothing_that_ran_is_no_proof() -> None:
    assert not PatchComparison(0, 0, ()).same
    assert not FamilyRow("mode", made="yes", applies="yes", builds="yes").proved
    assert FamilyRow("mode", made="yes", applies="yes", builds="yes", runs="yes").proved


def test_the_survey_says_how_far_each_family_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(
        [
            PatchComparison(5, 0, ("logit_, float32 0: result 0 differs",)),
            ScaffoldError("died"),
            PatchComparison(7, 0, ()),
        ]
    )

    def compared(family: str, folder: Path) -> PatchComparison:
        answer = next(answers)
        if isinstance(answer, ScaffoldError):
            raise answer
        return answer

    monkeypatch.setattr(upstream_survey, "compare", compared)
    source = source_of(None)
    rows = list(survey(source, ["logit", "logit", "logit", "shrink"], tmp_path))
    assert [row.made for row in rows[:3]] == ["yes"] * 3
    assert [row.applies for row in rows[:3]] == ["yes"] * 3
    assert [row.runs for row in rows[:3]] == [
        "1 of 6 cases differ, first logit_, float32 0: result 0 differs",
        "died",
        "yes",
    ]
    assert [row.proved for row in rows] == [False, False, True, False]
    assert rows[2].cases == 7
    assert rows[3].made == UNNEEDED
    assert (tmp_path / "patches" / "logit" / "logit.patch").is_file()
    # What was proved is not tried again (there is no fourth answer), unless something changes.
    assert list(survey(source, ["logit"], tmp_path)) == [rows[2]]
    monkeypatch.setattr(upstream_survey, "source_digest", lambda family: "another")
    monkeypatch.setattr(upstream_survey, "compare", lambda family, folder: PatchComparison(8, 0, ()))
    assert [row.cases for row in survey(source, ["logit"], tmp_path)] == [8]
