"""Evidence that says what no audit says, or that is simulated and not marked, is refused with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mpsmith.reports.evidence.checking import checked, problems_of
from mpsmith.reports.evidence.files import EvidenceError
from mpsmith.reports.evidence.schema import EvidenceFile
from support.evidence_files import LINUX, MAC, NOW, evidence_data, kernel_row, written

FOUND = {
    "aten::mode": {"float32": {"passed": 5}, "int64": {"wrong": 2}},
    "aten::sort.stable": {"float32": {"fallback": 1}, "bool": {"crash": 1}},
}


def problems(data: dict[str, Any]) -> list[str]:
    return problems_of(EvidenceFile.model_validate(data), NOW)


@pytest.mark.parametrize("simulated", [True, False])
def test_consistent_evidence_is_taken(simulated: bool) -> None:
    kernels = [kernel_row("mode", "aten::mode", simulated=simulated)]
    assert problems(evidence_data(FOUND, simulated=simulated, kernels=kernels)) == []


def damaged(**audit: object) -> dict[str, Any]:
    data = evidence_data(FOUND)
    data["audit"] |= audit
    return data


def with_row(**row: object) -> dict[str, Any]:
    data = evidence_data(FOUND)
    data["audit"]["overloads"]["aten::mode"]["dtypes"]["float32"] |= row
    return data


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (damaged(executed=0, cases={}, overloads={}, failing={}), "no case was executed"),
        (damaged(executed=0, cases={"skipped": 4}, overloads={}, failing={}), "no case was executed"),
        (damaged(executed=8), "8 executed cases, but its verdicts count 9"),
        (damaged(overloads={}), "no verdict of any overload"),
        (with_row(verdict="wrong"), "aten::mode in float32 is called wrong, its cases say native"),
        (with_row(verdict="composite"), "is called composite, its cases say native"),
        (with_row(cases={}), "its cases say unreachable"),
        (with_row(cases={"wrong": 7}, verdict="wrong"), "counts more cases that are wrong than are listed"),
        (with_row(cases={"passed": 900}), "counts more cases than there are"),
        (damaged(failing={}), "2 cases are wrong, but 0 are listed"),
        (damaged(left_out={"wrong": 2}), "2 cases are wrong, but 4 are listed"),
        (damaged(left_out={"passed": 1}), "cases that are passed are listed as failing"),
    ],
)
def test_rejects_verdicts_that_contradict_the_cases(data: dict[str, Any], reason: str) -> None:
    assert any(reason in problem for problem in problems(data)), problems(data)


def test_a_real_device_was_tried_before_its_audit() -> None:
    data = evidence_data(FOUND)
    del data["preflight"]["steps"]["fallback"]
    assert problems(data) == ["no preflight tried fallback: collect it again"]
    (problem,) = problems(data | {"preflight": None})
    assert problem == (
        "no preflight tried device, memory, arithmetic, fallback, kernels, arithmetic again: collect it again"
    )


@pytest.mark.parametrize("machine", [{"virtual": True}, {"chip": "Apple M1 (Virtual)"}])
def test_a_virtual_machine_gives_no_evidence(machine: dict[str, Any]) -> None:
    (problem,) = problems(evidence_data(FOUND, **machine))
    assert "it was collected in a virtual machine" in problem


def test_notes_of_preflight_hold_no_names() -> None:
    data = evidence_data(FOUND)
    data["preflight"]["steps"]["device"] = "in /Users/ada"
    assert any("names" in problem or "name a person" in problem for problem in problems(data))


def test_detects_a_case_that_is_listed_twice() -> None:
    data = evidence_data(FOUND)
    data["audit"]["failing"]["opinfo:mode:int64"][0]["positions"] = [1, 1]
    assert problems(data) == ["a case of opinfo:mode:int64 is listed twice"]


@pytest.mark.parametrize("sign", ["profile", "system", "machine", "chip", "torch"])
def test_rejects_simulated_evidence_without_a_mark(sign: str) -> None:
    data = evidence_data(machine=MAC["machine"])
    data["machine"] |= {sign: LINUX[sign]}
    (problem,) = problems(data)
    assert problem.startswith("not marked simulated, but it contains")


@pytest.mark.parametrize("simulated", [True, False])
def test_every_part_has_the_same_mark(simulated: bool) -> None:
    data = evidence_data(
        FOUND, simulated=simulated, kernels=[kernel_row("mode", "aten::mode", simulated=not simulated)]
    )
    assert problems(data) == ["some parts are marked simulated and others are not"]
    data = evidence_data(FOUND, simulated=simulated)
    data["audit"]["simulated"] = not simulated
    assert problems(data) == ["some parts are marked simulated and others are not"]


def test_rejects_a_mark_without_a_profile() -> None:
    assert len(problems(evidence_data(simulated=True, profile=None))) == 1


@pytest.mark.parametrize(
    ("kernels", "reason"),
    [
        ([kernel_row("mode", "aten::mode"), kernel_row("mode")], "there twice"),
        ([kernel_row("mode", "aten::mode", cases=0)], "no case was executed"),
        ([kernel_row("mode", "aten::mode", failures=[{"what": "mode"}])], "more failures than it counts"),
        ([kernel_row("mode")], "pass without a kernel"),
        ([kernel_row("mode", "aten::mode", checks=[])], "pass without a kernel"),
    ],
)
def test_rejects_impossible_kernels(kernels: list[dict[str, Any]], reason: str) -> None:
    messages = problems(evidence_data(kernels=kernels))
    assert any(reason in problem for problem in messages), messages


def test_rejects_evidence_of_the_future() -> None:
    assert problems(evidence_data(collected="2026-06-01T20:00:00+00:00")) == []
    (problem,) = problems(evidence_data(collected="2026-07-01T00:00:00+00:00"))
    assert "2026-07-01, which is to come" in problem


@pytest.mark.parametrize("text", ["cannot open /Users/ada/x", "at mac.local", "red \x1b[31m", "a\nb"])
@pytest.mark.parametrize("place", ["message", "variable", "kernel", "chip"])
def test_rejects_texts_with_private_names(text: str, place: str) -> None:
    data = evidence_data(FOUND, kernels=[kernel_row("mode", ended=text if place == "kernel" else "", cases=0)])
    if place == "message":
        data["audit"]["failing"]["opinfo:mode:int64"][0]["message"] = text
    elif place == "variable":
        data["machine"]["variables"] = {"PYTORCH_MPS_LOG": text}
    elif place == "chip":
        data["machine"]["chip"] = f"Apple {text}"
    assert problems(data) == ["a message holds a path, an address or what else may name a person or a machine"]


def test_a_refusal_is_one_line_with_the_file(tmp_path: Path) -> None:
    data = evidence_data({f"aten::op{n}": {"float32": {"passed": 1}} for n in range(9)})
    for row in data["audit"]["overloads"].values():
        row["dtypes"]["float32"]["verdict"] = "wrong"
    path = written(tmp_path, EvidenceFile.model_validate(data))
    with pytest.raises(EvidenceError, match=r"refused: .*; and 4 more") as refused:
        checked(path, NOW)
    assert "\n" not in str(refused.value)
    assert str(path) in str(refused.value)
