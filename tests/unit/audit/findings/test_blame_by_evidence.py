"""Who answers for a case that broke: the call that was found wrong inside it, or what is known of other cases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mpsmith.audit.findings.attribution import SourceEntry
from mpsmith.audit.findings.case_attribution import evidence_of
from mpsmith.audit.findings.evidence import RunEvidence
from mpsmith.audit.findings.faulty_overloads import at_fault, message_at_fault
from mpsmith.audit.findings.run_data import read_run
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.verdicts import AtFault, CaseVerdict, Outcome
from mpsmith.audit.releases.surface.overloads import Dispatch
from mpsmith.audit.store.store import Store
from support.stores import Recording, begun, new_store
from support.surfaces import overload, surface

V = CaseVerdict
SURFACE = surface(
    *(overload(name, Dispatch.NATIVE) for name in ("sub", "cat", "stack", "exp", "up1", "up2")),
    overload("rsub", Dispatch.COMPOSITE_EXPLICIT),
)
DIFFER = Outcome(V.WRONG, "forward", "3 of 4 elements differ", max_error=5.0)
PASSED = Outcome(V.PASSED)
SUB = AtFault("aten::sub", "(float32[3])", "2 of 3 elements differ")


class Run:
    """A run under construction."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.recording: Recording = begun(store)

    def case(
        self,
        operator: str,
        *outcomes: Outcome,
        calls: dict[str, bool] | None = None,
        inside: dict[int, AtFault | None] | None = None,
        dtype: str = "float32",
    ) -> None:
        key = GroupKey("opinfo", operator, "", dtype, "fallback")
        self.recording.add(key, *outcomes, calls=calls, done=False)
        (group,) = [group.id for group in self.store.groups(self.recording.run.id) if group.key == key]
        for position, fault in (inside or {}).items():
            self.store.add_inner_fault(group, position, fault)

    def evidence(self, rules: dict[str, str] | None = None, unknown_on_mac: tuple[str, ...] = ()) -> RunEvidence:
        return evidence_of(read_run(self.store, self.recording.run), SURFACE, rules or {}, unknown_on_mac)

    def wrong(self, dtype: str = "float32") -> dict[str, int]:
        """The number of wrong cases of each overload that has any."""
        counts = {name: o.dtypes[dtype].cases[V.WRONG] for name, o in self.evidence().overloads.items()}
        return {name.removeprefix("aten::"): count for name, count in counts.items() if count}


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with new_store(tmp_path) as store:
        yield Run(store)


def test_a_case_is_attributed_to_the_wrong_call_and_not_to_its_caller(run: Run) -> None:
    run.case("stack", DIFFER, PASSED, calls={"stack": True, "sub": False}, inside={0: SUB})
    assert run.wrong() == {"sub": 1}
    findings = run.evidence().overloads["aten::sub"].dtypes["float32"]
    assert findings.cases == {V.WRONG: 1, V.PASSED: 1}
    assert message_at_fault(findings.worst[V.WRONG]) == "2 of 3 elements differ, called with (float32[3])"


def test_cases_that_say_the_same_have_the_same_cause(run: Run) -> None:
    another = Outcome(V.WRONG, "forward", "17 of 20 elements differ")
    run.case("stack", DIFFER, another, calls={"stack": True}, inside={0: SUB})
    assert run.wrong() == {"sub": 2}


def test_a_case_that_says_the_same_and_has_no_wrong_call_has_the_same_cause(run: Run) -> None:
    run.case("stack", DIFFER, DIFFER, calls={"stack": True}, inside={0: SUB, 1: None})
    assert run.wrong() == {"sub": 2}


def test_unexamined_case_has_the_cause_of_its_entry(run: Run) -> None:
    run.case("stack", DIFFER, Outcome(V.CRASH, "forward", "SIGSEGV"), calls={"stack": True}, inside={0: SUB})
    assert run.evidence().overloads["aten::sub"].dtypes["float32"].cases == {V.WRONG: 1, V.CRASH: 1}


def test_the_cause_of_most_cases_is_taken(run: Run) -> None:
    cat = AtFault("aten::cat", "", "")
    run.case("stack", DIFFER, DIFFER, DIFFER, DIFFER, calls={"stack": True}, inside={0: SUB, 1: cat, 2: cat})
    assert run.wrong() == {"sub": 1, "cat": 3}


def test_without_a_wrong_call_a_case_is_attributed_to_the_suspects(run: Run) -> None:
    run.case("stack", DIFFER, calls={"stack": True, "sub": False}, inside={0: None})
    assert run.wrong() == {"stack": 1}


def test_a_case_is_not_attributed_to_a_caller_of_a_faulty_overload(run: Run) -> None:
    run.case("sub", DIFFER, calls={"sub": True}, inside={0: SUB})
    run.case("rsub", DIFFER, calls={"rsub": True, "sub": False}, inside={0: None})
    assert run.wrong() == {"sub": 1}
    assert run.evidence().overloads["aten::sub"].explains == {"rsub": 1}


def test_a_case_is_attributed_to_a_kernel_if_all_other_calls_were_right(run: Run) -> None:
    run.case("sub", DIFFER, calls={"sub": True}, inside={0: SUB})
    run.case("exp", DIFFER, calls={"exp": True, "sub": True}, inside={0: None})
    assert run.wrong() == {"sub": 1, "exp": 1}


def test_another_dtype_or_an_overload_that_is_not_called_explains_nothing(run: Run) -> None:
    run.case("sub", DIFFER, calls={"sub": True}, inside={0: SUB}, dtype="float16")
    run.case("rsub", DIFFER, calls={"rsub": True, "sub": False}, inside={0: None})
    assert run.wrong() == {"rsub": 1}
    run.case("sub", DIFFER, calls={"sub": True}, inside={0: SUB})
    run.case("cat", DIFFER, calls={"cat": True})
    assert run.wrong() == {"sub": 1, "cat": 1}


def test_unexamined_case_is_explained_by_a_fault_with_another_dtype(run: Run) -> None:
    run.case("sub", DIFFER, calls={"sub": True}, inside={0: SUB}, dtype="float16")
    run.case("stack", Outcome(V.CRASH, "forward", "SIGSEGV"), calls={"stack": True, "sub": False})
    assert run.evidence().overloads["aten::sub"].explains == {"stack": 1}
    assert not run.evidence().overloads["aten::stack"].dtypes["float32"].cases[V.CRASH]


def test_of_several_suspects_a_case_is_attributed_to_the_one_at_fault_elsewhere(run: Run) -> None:
    run.case("up1", DIFFER, calls={"up1": True}, inside={0: AtFault("aten::up2", "", "")})
    run.case("up2", PASSED, calls={"up2": True})
    run.case("interpolate", DIFFER, calls={"up1": True, "up2": True})
    assert run.wrong() == {"up2": 2}
    assert not run.evidence().overloads["aten::up2"].shared


def test_case_with_a_rule_stays_with_its_suspects(run: Run) -> None:
    run.case("stack", DIFFER, calls={"stack": True}, inside={0: SUB})
    evidence = run.evidence({"opinfo:stack:float32:0": "a rule"})
    assert evidence.overloads["aten::stack"].dtypes["float32"].cases[V.WRONG] == 1
    assert "aten::sub" not in evidence.overloads
    assert at_fault(evidence) == ()


def test_case_counts_for_no_overload_where_a_mac_is_unknown(run: Run) -> None:
    run.case("stack", DIFFER, DIFFER, PASSED, calls={"stack": True}, inside={0: SUB})
    rules = {"opinfo:stack:float32:0": "unknown", "opinfo:stack:float32:1": "a rule"}
    evidence = run.evidence(rules, ("unknown",))
    assert evidence.overloads["aten::stack"].dtypes["float32"].cases == {V.WRONG: 1, V.PASSED: 1}
    assert evidence.entries[SourceEntry("opinfo", "stack", "")]["float32"].cases == {V.WRONG: 2, V.PASSED: 1}


def test_the_overloads_at_fault_are_listed_the_certain_and_most_serious_first(run: Run) -> None:
    run.case("stack", *[DIFFER] * 2, calls={"stack": True}, inside={0: SUB})
    run.case("sub", DIFFER, calls={"sub": True, "exp": False}, inside={0: None}, dtype="int8")
    run.case("cat", *[DIFFER] * 4, calls={"cat": True}, dtype="bool")
    run.case("exp", Outcome(V.CRASH, "forward", "SIGSEGV"), calls={"exp": True})
    run.case("masked", *[DIFFER] * 9, calls={"up1": True, "up2": True})
    listed = at_fault(run.evidence())
    assert [(f.overload, f.total, f.or_one_of) for f in listed] == [
        ("aten::exp", 1, ()),
        ("aten::cat", 4, ()),
        ("aten::sub", 3, ()),
        ("aten::up1", 9, ("aten::up2",)),
        ("aten::up2", 9, ("aten::up1",)),
    ]
    sub = listed[2]
    assert (sub.cases, sub.dtypes, sub.entries) == ({V.WRONG: 3}, ("float32", "int8"), ("stack", "sub"))
    assert (sub.example, sub.message, sub.call) == ("opinfo:stack:float32:0", SUB.message, SUB.call)


def test_at_fault_round_trip(run: Run) -> None:
    run.case("stack", DIFFER, DIFFER, DIFFER, inside={0: SUB, 1: None})
    looks = [(case.looked_inside, case.at_fault) for case in run.store.cases(run.recording.run.id)]
    assert looks == [(True, SUB), (True, None), (False, None)]
