"""What the self-test makes of its audits: which faults are found, which meet, and when it passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.audit.findings.results import FaultyOverload
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome
from mpsmith.audit.self_test import whole_run
from mpsmith.audit.self_test.findings import FaultFinding, finding_of, new_failures
from mpsmith.audit.self_test.planted import PlantedFault, Trigger, packet_of
from mpsmith.audit.self_test.reach import CALLERS, Reach
from mpsmith.audit.self_test.rounds import LARGEST_ROUND, rounds_of
from mpsmith.audit.self_test.whole_run import MAX_MISATTRIBUTED, MIN_RECALL, SelfTest, SelfTestOptions, faults_of
from mpsmith.audit.store.records import StoredCase
from mpsmith.cli.printing import print_json
from mpsmith.cli.self_test import _as_json, _as_text
from mpsmith.reports.pages.recall import recall_document
from mpsmith.simulator.device.faults.fault import Fault
from support.json_document import documented


def planted(text: str, number: int = 0) -> PlantedFault:
    return PlantedFault(number, "wrong values", Fault.parse(text), Trigger("self=float32[3]", "one call"))


EXP = planted("aten::exp: values")


def stored(operator: str, verdict: CaseVerdict, position: int = 0, fallbacks: tuple[str, ...] = ()) -> StoredCase:
    key = GroupKey("opinfo", operator, "", "float32", "fallback")
    return StoredCase(1, key, position, Outcome(verdict, "forward", "3 of 3 elements differ", fallbacks), "")


def at_fault(overload: str, *entries: str) -> FaultyOverload:
    return FaultyOverload(overload, {CaseVerdict.WRONG: 2}, ("float32",), entries, "label", "differs")


WRONG = stored("exp", CaseVerdict.WRONG)


@pytest.mark.parametrize(
    ("failing", "blamed", "expected"),
    [
        ([], [], "missed"),
        ([], [at_fault("aten::exp", "exp")], "missed"),
        ([WRONG], [at_fault("aten::exp", "exp")], "found"),
        ([WRONG], [at_fault("aten::exp", "logsumexp")], "found"),
        ([WRONG], [at_fault("aten::sum", "exp")], "misattributed"),
        ([WRONG], [at_fault("aten::sum", "sum")], "misattributed"),
        ([WRONG], [], "misattributed"),
        ([stored("exp", CaseVerdict.FALLBACK, fallbacks=("aten::exp",))], [], "found"),
    ],
)
def test_found_misattributed_and_missed(failing: list[StoredCase], blamed: list[FaultyOverload], expected: str) -> None:
    assert finding_of(EXP, ("exp",), failing, blamed).result == expected


def test_a_continued_self_test_does_not_generate_its_faults_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [EXP, planted("aten::add.out: scaled(1.5, None) when dtype(self, float32) and offset(other)", number=3)]
    runs: list[int] = []
    monkeypatch.setattr(whole_run, "generated", lambda count, *others: runs.append(count) or made)
    options = SelfTestOptions(2, seed=5)
    assert faults_of(options, tmp_path, print) == faults_of(options, tmp_path, print) == made
    assert runs == [2]
    (tmp_path / "faults.json").write_text("[[0, ")  # killed while it wrote
    assert faults_of(options, tmp_path, print) == made
    assert runs == [2, 2]


def test_counts_blame_by_cases_of_the_faults_entries() -> None:
    named = [at_fault("aten::sum", "exp.variant"), at_fault("aten::sin", "sin")]
    assert finding_of(EXP, ("exp",), [WRONG], named).blamed == {"aten::sum": 2}


def test_accusations_are_new_unexplained_failures() -> None:
    cases = [stored("exp", verdict, position) for position, verdict in enumerate(CaseVerdict)]
    silent = {CaseVerdict.PASSED, CaseVerdict.SKIPPED, CaseVerdict.REFERENCE_FAILED}
    assert {case.outcome.verdict for case in new_failures(cases, {}, {})} == set(CaseVerdict) - silent
    wrong = next(case for case in cases if case.outcome.verdict is CaseVerdict.WRONG)
    assert new_failures([wrong], {(wrong.group, wrong.position): CaseVerdict.WRONG}, {}) == []
    assert new_failures([wrong], {(wrong.group, wrong.position): CaseVerdict.CRASH}, {}) == [wrong]
    assert new_failures([wrong], {}, {wrong.label: "a rule"}) == []


# ---- what is audited, and what meets

REACH = Reach(
    {
        "exp": frozenset({"aten::exp", "aten::exp.out"}),
        "exp_": frozenset({"aten::exp_"}),
        "nn.functional.softmax": frozenset({"aten::_softmax"}),
        "logsumexp": frozenset({"aten::exp", "aten::sum"}),
        "sum": frozenset({"aten::sum"}),
        "sin": frozenset({"aten::sin"}),
    }
)


def test_the_entries_of_a_fault_are_its_operators_and_some_that_call_it() -> None:
    assert REACH.entries(EXP) == ("exp", "exp_", "logsumexp")
    assert REACH.entries(planted("aten::_softmax: values")) == ("nn.functional.softmax",)


def test_audits_the_callers_with_the_fewest_overloads() -> None:
    callers = {f"f{n}": frozenset({"aten::exp", *(f"aten::g{i}" for i in range(n))}) for n in range(9)}
    assert Reach(callers).entries(EXP) == ("f0", "f1", "f2", "f3", "f4", "f5")
    assert CALLERS == 6


def test_faults_with_common_entries_are_in_different_rounds() -> None:
    faults = [
        planted(text, number)
        for number, text in enumerate(
            ["aten::exp: values", "aten::exp_: zeros", "aten::sum: values", "aten::sin: values", "aten::sin: zeros"]
        )
    ]
    rounds = rounds_of(faults, REACH)
    assert [[p.number for p in batch.faults] for batch in rounds] == [[0, 3], [1, 2, 4]]
    assert rounds[0].audited == ("exp", "exp_", "logsumexp", "sin")


def test_a_round_is_not_too_large() -> None:
    names = [f"f{n}" for n in range(130)]
    reach = Reach({name: frozenset({f"aten::{name}"}) for name in names})
    rounds = rounds_of([planted(f"aten::{name}: values", n) for n, name in enumerate(names)], reach)
    assert [len(batch.entries) for batch in rounds] == [60, 60, 10]
    assert LARGEST_ROUND == 60


@pytest.mark.parametrize(
    ("overload", "packet"),
    [
        ("aten::exp", "exp"),
        ("aten::exp_", "exp"),
        ("aten::exp.out", "exp"),
        ("aten::__ilshift__.Scalar", "__ilshift__"),
    ],
)
def test_the_operator_of_an_overload(overload: str, packet: str) -> None:
    assert packet_of(overload) == packet


# ---- the end


def finding(result: str) -> FaultFinding:
    return FaultFinding(EXP, result, 1, {"aten::sum": 1}, "exp:0: wrong", ("exp",))


def done(caught: int, misattributed: int = 0, missed: int = 0, alarms: int = 0, executed: int = 1) -> SelfTest:
    findings = [finding("found")] * caught + [finding("misattributed")] * misattributed + [finding("missed")] * missed
    return SelfTest(SelfTestOptions(len(findings), 7), findings, ["mul: wrong"] * alarms, 9, executed, 5, 1, 1.0)


def test_the_limits() -> None:
    assert (MIN_RECALL, MAX_MISATTRIBUTED) == (0.95, 0.02)


@pytest.mark.parametrize(
    ("test", "passes"),
    [
        (done(95, missed=5), True),
        (done(94, missed=6), False),
        (done(98, misattributed=2), True),
        (done(97, misattributed=3), False),
        (done(100, alarms=1), False),
        (done(100, executed=0), False),
        (done(0), False),
    ],
)
def test_when_it_passes(test: SelfTest, passes: bool) -> None:
    assert test.passed is passes


def test_every_form_shows_the_mark_and_the_missed_faults(capsys: pytest.CaptureFixture[str]) -> None:
    test = done(1, missed=1, alarms=1)
    text = _as_text(test)
    for part in (
        "SIMULATED",
        "seed 7",
        "missed: aten::exp: values",
        "self=float32[3]",
        "mul: wrong",
        "recall 50.0% (at least 95%), misattributed 0.0%",
    ):
        assert part in text
    print_json(_as_json(test))
    data = documented("self-test", capsys.readouterr().out)
    assert data["simulated"] is True
    assert data["passed"] is False
    assert data["recall"] == 0.5
    assert data["counts"] == {"wrong values": {"found": 1, "misattributed": 0, "missed": 1}}
    assert data["findings"][0]["fault"] == "aten::exp: values"
    page = recall_document(test).markdown()
    for part in ("**simulated**", "seed 7", "| wrong values | 1 | 0 | 1 |", "| missed | `aten::exp: values` |"):
        assert part in page


def test_the_table_ends_with_totals() -> None:
    assert "| all | 3 | 2 | 1 |" in recall_document(done(3, 2, 1)).markdown()
