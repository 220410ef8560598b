"""The list of findings and the program for a Mac: the call is the finding's, and each verdict is printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith.audit.cases.sources.known_wrong import made
from mpsmith.audit.model.verdicts import CaseVerdict, Grade, UlpSensitivity
from mpsmith.audit.shipped.finding_result import FindingResult, FurthestElement
from mpsmith.audit.shipped.finding_run import bits_of
from mpsmith.registry import found_wrong, known_wrong
from mpsmith.reports.pages.wrong_results import wrong_results_document
from mpsmith.reports.pages.wrong_results_script import call_text, script_of

FINDINGS = found_wrong.of_kernels()
PLACE = FurthestElement("outputs", 0, 0, "nan", "inf", "0xffc00000", "0x7f800000")


def result(
    name: str, verdict: CaseVerdict = CaseVerdict.WRONG, grade: Grade = Grade.SHIPPED_KERNEL, stood_in: str = ""
) -> FindingResult:
    stood = (stood_in,) if stood_in else ()
    place = PLACE if verdict is CaseVerdict.WRONG else None
    return FindingResult(
        name, verdict, grade, "", ("a_kernel",), stood, "(float32[1])", place, UlpSensitivity.INSENSITIVE
    )


RESULTS = [
    result("lgamma-of-infinity"),
    result("i0-of-halves"),
    result("erfc-of-large-numbers", CaseVerdict.PASSED),
    result("elu-of-small-numbers", CaseVerdict.PASSED, Grade.DISPATCH_ONLY, "aten::elu: MPSGraph"),
]


@pytest.mark.parametrize("name", FINDINGS)
def test_the_call_in_the_program_is_that_of_the_finding(name: str) -> None:
    case = made(name, FINDINGS[name].case)
    expected = case.call(*case.args, **case.kwargs)
    given = eval(call_text(FINDINGS[name]), {"torch": torch, "device": "cpu", "inf": torch.inf, "nan": torch.nan})
    if FINDINGS[name].case.form == "out":
        expected, given = expected[0][0], given
    for mine, theirs in zip(*(x if isinstance(x, tuple) else (x,) for x in (given, expected)), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=0, equal_nan=True)
        assert mine.stride() == theirs.stride()


def verdict_of(seen: str, on_mac: Callable[[], Tensor], is_nan: bool = False) -> str:
    program: dict[str, Any] = {"__name__": "a module"}
    exec(script_of("2.15.0", FINDINGS, RESULTS), program)
    assert [name for name, *_ in program["FOUND"]] == ["lgamma-of-infinity", "i0-of-halves"]

    def call(device: str) -> Tensor:
        return torch.tensor([1.0]) if device == "cpu" else on_mac()

    line: str = program["verdict"](call, 0, 0, seen, is_nan)
    assert "{" not in line
    return line.partition(":")[0]


def test_the_program_compares_with_the_result_of_a_mac() -> None:
    two = bits_of(torch.tensor(2.0))
    assert verdict_of(two, lambda: torch.tensor([2.0])) == "CONFIRMED"
    assert verdict_of(two, lambda: torch.tensor([1.0])) == "REFUTED"
    assert verdict_of(two, lambda: torch.tensor([3.0])) == "WRONG, BUT OTHERWISE"
    assert verdict_of("0xffc00000", lambda: torch.tensor([torch.nan]), is_nan=True) == "CONFIRMED"
    assert verdict_of(two, lambda: torch.tensor([torch.nan])) == "WRONG, BUT OTHERWISE"

    def refuses() -> Tensor:
        raise RuntimeError("no kernel")

    assert verdict_of(two, refuses) == "NOT TRIED"


def test_the_program_runs_and_prints_each_finding(capsys: pytest.CaptureFixture[str]) -> None:
    exec(script_of("2.15.0", FINDINGS, RESULTS), {"__name__": "__main__"})
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == f"torch {torch.__version__}"
    assert [line.partition(":")[0] for line in lines] == ["lgamma-of-infinity", "i0-of-halves"]


def test_bits_are_those_of_the_number() -> None:
    assert bits_of(torch.tensor(1.0)) == "0x3f800000"
    assert bits_of(torch.tensor(1.0, dtype=torch.float16)) == "0x3c00"
    assert bits_of(torch.tensor(complex(1, -0.0), dtype=torch.complex64)) == "0x3f800000 0x80000000"
    assert bits_of(torch.tensor(258, dtype=torch.int64)) == "0x0000000000000102"


def test_lists_wrong_findings_and_names_the_others() -> None:
    text = wrong_results_document("2.15.0", FINDINGS, RESULTS, known_wrong.load().values()).markdown()
    assert "No Mac was involved" in text
    assert "2 of 4 findings are wrong in this release" in text
    assert "](#lgamma-of-infinity) | a\\_kernel | nan (0xffc00000) | inf (0x7f800000) | not ULP-sensitive |" in text
    assert "torch.lgamma(torch.tensor([inf], dtype=torch.float32))" in text
    assert "Right in 2.15.0, wrong in an earlier one: erfc-of-large-numbers." in text
    assert "Not tried, elu-of-small-numbers: aten::elu: MPSGraph." in text
    assert "[#111374](https://github.com/pytorch/pytorch/issues/111374)" in text
    assert "192507" not in text  # hypot is right from 2.14 on
