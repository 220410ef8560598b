"""Advice about operators: it follows from the verdict, and what does not work has a next step."""

from __future__ import annotations

from typing import Any

import pytest

from mpsmith.audit.compiled.verdicts import CompiledVerdict
from mpsmith.audit.findings.compiled.eager_comparison import EagerComparison
from mpsmith.audit.findings.known_reports import ReportResult, ReportStatus
from mpsmith.audit.findings.results import OperatorSummary, OverloadSummary, RegistryStatus
from mpsmith.audit.model.verdicts import CaseVerdict, Grade, OverloadVerdict
from mpsmith.audit.releases.coverage.table import OperatorSupport
from mpsmith.reports.operator_advice import OperatorAdvice, advice_for
from mpsmith.reports.release_history import ReleaseHistory

NATIVE, MISSING, COMPOSITE = OperatorSupport.NATIVE, OperatorSupport.MISSING, OperatorSupport.COMPOSITE
RELEASES = ("2.0.1", "2.1.2", "2.2.2", "2.3.1")


def history(*support: OperatorSupport | None, audited: str = "2.2.2") -> ReleaseHistory:
    return ReleaseHistory(RELEASES, audited, {"mode": support})


def advice(
    verdict: OverloadVerdict = OverloadVerdict.MISSING,
    releases: ReleaseHistory | None = None,
    reports: tuple[ReportResult, ...] = (),
    *,
    overloads: tuple[OverloadSummary, ...] = (),
    reason: str = "",
    simulated: bool = True,
    **fields: Any,
) -> OperatorAdvice:
    operator = OperatorSummary("aten::mode", verdict, fields.pop("dtypes", {}), (), 1, **fields)
    return advice_for(operator, reason, releases, reports, overloads, simulated=simulated)


def commands(answer: OperatorAdvice) -> list[str]:
    return [step.command for step in answer.steps if step.command]


def test_since_and_the_row_of_releases() -> None:
    answer = advice(releases=history(NATIVE, MISSING, OperatorSupport.PARTLY_NATIVE, COMPOSITE, audited="2.13.0"))
    assert answer.since == "No release from 2.13.0 to 2.15.0 runs all of it on mps."
    assert (answer.release, answer.row) == ("", "NMPC")


def test_an_operator_that_no_release_is_known_to_have() -> None:
    operator = OperatorSummary("mine::mode", OverloadVerdict.MISSING, {}, (), 1)
    answer = advice_for(operator, "", ReleaseHistory(RELEASES, "2.13.0", {}), (), simulated=True)
    assert answer.since == "Since which release is not known."
    assert advice().row == ""


def test_a_native_operator_needs_no_steps() -> None:
    answer = advice(
        OverloadVerdict.NATIVE, history(*(NATIVE,) * 4, audited="2.13.0"), simulated=False, grade=Grade.REAL_DEVICE
    )
    assert answer.works == (
        "Yes: right results from its own kernel on mps.",
        "Evidence: real device: a Mac computed it.",
    )
    assert answer.steps == ()


def test_lists_the_overloads_that_work_where_others_do_not() -> None:
    def overload(name: str, verdict: OverloadVerdict, executed: int = 1) -> OverloadSummary:
        return OverloadSummary(name, "aten::mode", "", None, verdict, "", executed=executed)

    plain = overload("aten::mode", OverloadVerdict.NATIVE)
    other = overload("aten::mode.dtype", OverloadVerdict.MISSING)
    answer = advice(overloads=(plain, other, overload("aten::mode.out", OverloadVerdict.UNREACHABLE, 0)))
    assert answer.works[0] == "In part, by overload: right: aten::mode; missing: aten::mode.dtype."
    assert advice(overloads=(other,)).works[0] == "No: mps has no kernel for it."


def test_simulated_advice_says_so() -> None:
    assert "The device was simulated: no Mac has shown this." in advice(simulated=True).works
    assert not any("simulated" in line for line in advice(simulated=False).works)


def test_a_missing_operator_has_steps_in_order_of_usefulness() -> None:
    cure = EagerComparison(CompiledVerdict.METAL, {"float32": CompiledVerdict.METAL}, cures=("float32",))
    status = RegistryStatus("implemented", "mode", "https://github.com/pytorch/pytorch/pull/1")
    answer = advice(releases=history(MISSING, audited="2.13.0"), registered=status, compiled=cure)
    assert commands(answer) == [
        "import mpsmith.kernels",
        "mpsmith trace train.py",
        "torch.compile(your_function)",
        "PYTORCH_ENABLE_MPS_FALLBACK=1 python train.py",
    ]
    assert answer.steps[-1].link == "https://github.com/pytorch/pytorch/pull/1"


def test_a_fallback_needs_no_variable() -> None:
    answer = advice(OverloadVerdict.FALLBACK, history(MISSING, audited="2.13.0"))
    assert not any("FALLBACK" in command for command in commands(answer))
    assert "mpsmith trace train.py" in commands(answer)


def test_a_dtype_gap_names_the_dtypes_that_are_right() -> None:
    dtypes = {"float32": OverloadVerdict.NATIVE, "bool": OverloadVerdict.DTYPE_GAP}
    answer = advice(OverloadVerdict.DTYPE_GAP, dtypes=dtypes, reason="refuses bool")
    assert "By dtype: native in float32; dtype gap in bool." in answer.works
    assert "refuses bool." in answer.works
    assert answer.steps[0].text == "Convert first: it is right in float32."


def test_partly_broken_operators_are_not_called_right() -> None:
    wrong = (CaseVerdict.WRONG,)
    dtypes = dict.fromkeys(("float32", "float16"), OverloadVerdict.NATIVE)
    beside = {"breakages": wrong, "dtypes": dtypes}
    answer = advice(OverloadVerdict.NATIVE, **beside, dtype_breakages={"float16": wrong})
    assert answer.works[:2] == (
        "Mostly: most calls tried are right on mps itself, and some are not.",
        "In some cases: wrong in float16.",
    )
    assert commands(answer) == ['result = f(x.cpu()).to("mps")']
    everywhere = advice(OverloadVerdict.NATIVE, **beside, dtype_breakages=dict.fromkeys(dtypes, wrong))
    assert "In some cases: wrong in every dtype tried." in everywhere.works


def test_an_open_upstream_report_is_shown_for_operators_that_work() -> None:
    def report(status: ReportStatus) -> ReportResult:
        return ReportResult(7, "https://x/7", "It is wrong.", "silent", ("aten::mode",), "2.0", status, 1)

    still = advice(OverloadVerdict.NATIVE, reports=(report(ReportStatus.STILL_WRONG),))
    assert [(step.text, step.link) for step in still.steps] == [
        ("Upstream report #7, still wrong: It is wrong.", "https://x/7")
    ]
    assert advice(OverloadVerdict.NATIVE, reports=(report(ReportStatus.RIGHT),)).steps == ()


def test_a_number_is_an_issue_of_pytorch() -> None:
    answer = advice(registered=RegistryStatus("missing", None, "#77764"))
    assert answer.steps[-1].link == "https://github.com/pytorch/pytorch/issues/77764"


@pytest.mark.parametrize("verdict", OverloadVerdict)
def test_every_failing_verdict_has_a_next_step(verdict: OverloadVerdict) -> None:
    answer = advice(verdict, history(MISSING, audited="2.13.0"), dtypes={"float32": OverloadVerdict.NATIVE})
    assert answer.works[0]
    if verdict is OverloadVerdict.REFERENCE_FAILED:
        return  # the call itself is not valid on any device
    assert bool(answer.steps) is not verdict.is_support
