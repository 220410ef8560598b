"""What a run of a family's patch counts as the same, and how the survey of all families says it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from mpsmith.scaffold import family_survey
from mpsmith.scaffold.errors import ScaffoldError
from mpsmith.scaffold.family_survey import FamilyRow, survey
from mpsmith.scaffold.operators.source import source_of
from mpsmith.scaffold.patch_running import Failed, PatchRun, _compared
from mpsmith.scaffold.targets.upstream.family import FamilyPatch

X = torch.tensor([1.0, float("nan")])


@pytest.mark.parametrize(
    ("found", "difference"),
    [
        ([X.clone()], ""),
        ([torch.tensor([1.0, 2.0])], "result 0 differs"),
        ([X.double()], "result 0 differs"),
        ([X[:1]], "result 0 differs"),
        ([3], "result 0 differs"),
        (Failed("RuntimeError", "no"), "RuntimeError (no) in place of a result"),
        ([], "0 results in place of 1"),
    ],
)
def test_a_result_is_the_same_to_the_last_bit_or_it_is_a_difference(found: object, difference: str) -> None:
    run = _compared({"case 0": [X]}, {"case 0": found}, ("aten::mode",))
    assert run.differences == ((f"case 0: {difference}",) if difference else ())
    assert run.same is not bool(difference)


def test_errors_of_one_type_are_the_same_but_prove_nothing_alone() -> None:
    refused = {"case 0": Failed("IndexError", "there")}
    run = _compared(refused, {"case 0": Failed("IndexError", "here")}, ())
    assert (run.cases, run.errors, run.differences) == (1, 1, ())
    assert not run.same
    assert _compared(refused, {"case 0": [X]}, ()).differences == ("case 0: a result in place of IndexError (there)",)


def test_nothing_that_ran_is_no_proof() -> None:
    assert not PatchRun(0, 0, (), ()).same
    assert not FamilyRow("mode", made="yes", applies="yes", builds="yes").proved
    assert FamilyRow("mode", made="yes", applies="yes", builds="yes", runs="yes").proved


def test_the_survey_says_how_far_each_family_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(
        [PatchRun(7, 0, (), ()), PatchRun(5, 0, ("logit_, float32 0: result 0 differs",), ()), ScaffoldError("died")]
    )

    def ran(patch: FamilyPatch, folder: Path) -> PatchRun:
        assert (folder / "aten/src/ATen/native/native_functions.yaml").is_file()
        answer = next(answers)
        if isinstance(answer, ScaffoldError):
            raise answer
        return answer

    monkeypatch.setattr(family_survey, "run", ran)
    logit = list(survey(source_of(None), ["logit", "logit", "logit", "shrink"], tmp_path))
    assert [row.made for row in logit[:3]] == ["yes"] * 3
    assert [row.applies for row in logit[:3]] == ["yes"] * 3
    assert [row.runs for row in logit[:3]] == [
        "yes",
        "1 of 6 cases differ, first logit_, float32 0: result 0 differs",
        "died",
    ]
    assert [row.proved for row in logit] == [True, False, False, False]
    assert logit[0].cases == 7
    assert "nothing to patch" in logit[3].made
    assert (tmp_path / "logit" / "logit.patch").is_file()
