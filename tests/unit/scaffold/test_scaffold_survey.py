"""The survey of every gap: what it takes from earlier answers, and what it checks again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest

from mpsmith.scaffold import survey
from mpsmith.scaffold.proof.answers import Answer
from mpsmith.scaffold.targets import KernelTarget
from mpsmith.simulator.clang import Diagnostic

RELEASE = survey.source_of(None).release


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that would have been compiled; `mode.mm` is refused."""
    files: list[Path] = []

    def check_files(paths: Sequence[Path], release: str) -> Iterator[Answer]:
        for path in paths:
            files.append(path)
            wrong = (Diagnostic(str(path), 1, 1, "error", "no good", "test"),) if path.name == "mode.mm" else ()
            yield Answer(path, ("types",), (), wrong, 0.0)

    monkeypatch.setattr(survey, "check_files", check_files)
    monkeypatch.setattr(survey, "find", lambda release: SimpleNamespace(identity="compiler 1"))
    return files


def run(folder: Path, known: Sequence[survey.SurveyRow] = ()) -> dict[str, tuple[str, bool]]:
    found = survey.survey(RELEASE, KernelTarget.EXTENSION, ["mode", "heaviside", "heaviside_"], folder, "code", known)
    return {answer.operator: (answer.outcome, was_known) for answer, was_known in found}


def test_operators_that_share_a_kernel_give_one_answer(tmp_path: Path, checked: list[Path]) -> None:
    assert run(tmp_path) == {"heaviside": ("accepted", False), "mode": ("refused", False)}
    assert [path.name for path in checked] == ["heaviside.mm", "mode.mm"]


def test_what_is_as_it_was_is_not_checked_again(
    tmp_path: Path, checked: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = survey.survey(RELEASE, KernelTarget.EXTENSION, ["mode", "heaviside"], tmp_path)
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(asdict(answer)) + "\n" for answer, _ in found) + '{"release": "2.1')
    known = survey.stored(path)
    assert [answer.operator for answer in known] == ["heaviside", "mode"]
    checked.clear()
    assert run(tmp_path, known) == {"heaviside": ("accepted", True), "mode": ("refused", True)}
    assert checked == []
    monkeypatch.setattr(survey, "find", lambda release: SimpleNamespace(identity="compiler 2"))
    assert run(tmp_path, known) == {"heaviside": ("accepted", False), "mode": ("refused", False)}


def test_what_an_earlier_survey_wrote_does_not_stay(tmp_path: Path, checked: list[Path]) -> None:
    run(tmp_path)
    file = checked[0]
    generated = file.read_text()
    file.write_text(generated.replace("is not written yet", "is written"))
    run(tmp_path)
    assert file.read_text() == generated


def test_gaps_hold_those_that_nobody_reaches_too() -> None:
    source = survey.source_of(None)
    gaps, lacking = ({operator.name for operator in found} for found in (source.gaps(), source.lacking()))
    assert gaps < lacking


def test_the_native_operators_have_kernels() -> None:
    source = survey.source_of(None)
    assert len(survey.NATIVE) == 20
    assert all(any(overload.has_kernel for overload in source.operator(name).overloads) for name in survey.NATIVE)
