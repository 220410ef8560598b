"""What each kind of case adds to what is known of an overload, read from the evidence itself."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mpsmith.audit.findings.attribution import SourceEntry
from mpsmith.audit.findings.case_attribution import evidence_of
from mpsmith.audit.findings.evidence import (
    CaseReference,
    DtypeFindings,
    RunEvidence,
    in_order_of_severity,
    lacks_kernel,
)
from mpsmith.audit.findings.run_data import read_run
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome
from mpsmith.audit.releases.surface.overloads import Dispatch
from mpsmith.audit.store.records import StoredCase
from mpsmith.audit.store.store import Store
from support.stores import begun, new_store
from support.surfaces import overload, surface

V = CaseVerdict


SURFACE = surface(
    overload("relu", Dispatch.NATIVE),
    overload("sum", Dispatch.NATIVE),
    overload("where", Dispatch.NATIVE),
    overload("mode", Dispatch.MISSING),
    overload("kron", Dispatch.COMPOSITE_IMPLICIT),
    overload("kron.out", Dispatch.COMPOSITE_IMPLICIT, "Tensor self, *, Tensor(a!) out"),
    overload("sparse_op", Dispatch.MISSING, sparse=True),
    overload("compressed_op", Dispatch.MISSING, sparse_compressed=True),
)
PASSED = Outcome(V.PASSED)
Read = Callable[..., RunEvidence]


class Run:
    """A run under construction."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.recording = begun(store)
        self.id = self.recording.run.id

    def case(
        self,
        operator: str,
        *outcomes: Outcome,
        calls: dict[str, bool] | None = None,
        dtype: str = "float32",
        mode: str = "fallback",
        source: str = "opinfo",
        inputs: str = "",
    ) -> None:
        key = GroupKey(source, operator, "", dtype, mode)
        self.recording.add(key, *outcomes, calls=calls, done=False, inputs=inputs)

    def evidence(self, *, simulated: bool = True) -> RunEvidence:
        data = read_run(self.store, self.recording.run)
        run = replace(data.run, environment={**data.run.environment, "simulated": simulated})
        return evidence_of(replace(data, run=run), SURFACE)

    def cases(self, name: str, dtype: str = "float32", *, simulated: bool = True) -> dict[CaseVerdict, int]:
        counts = self.evidence(simulated=simulated).overloads[f"aten::{name}"].dtypes[dtype].cases
        return {verdict: n for verdict, n in counts.items() if n}


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with new_store(tmp_path) as store:
        yield Run(store)


def outcome(verdict: CaseVerdict, *fallbacks: str, **fields: object) -> Outcome:
    return Outcome(verdict, fallbacks=tuple(f"aten::{name}" for name in fallbacks), **fields)  # type: ignore[arg-type]


# ---- the dtype that a case counts under


@pytest.mark.parametrize(
    ("inputs", "source", "dtype"),
    [
        ("offset: (int64[3, 6](offset 3), int64[3], None, … 7 in all)", "schema planned pairs", "int64"),
        ("([bool[2], complex64[]], int64[1])", "schema", "complex64"),
        ("(int64[2], bfloat16[2])", "opinfo", "bfloat16"),
        ("(int64[2], dtype=torch.bfloat16)", "opinfo", "bfloat16"),
        ("([2, 3])", "opinfo", "bfloat16"),
        ("(int64[2])", "modules", "bfloat16"),  # its parameters are of the dtype
    ],
)
def test_a_refused_call_counts_under_the_dtype_of_its_tensors(run: Run, inputs: str, source: str, dtype: str) -> None:
    run.case("relu", outcome(V.DTYPE_GAP), calls={"relu": True}, dtype="bfloat16", source=source, inputs=inputs)
    run.case("relu", PASSED, calls={"relu": True}, dtype="bfloat16", source=source)
    dtypes = run.evidence().overloads["aten::relu"].dtypes
    assert dtypes[dtype].cases[V.DTYPE_GAP] == 1
    assert dtypes["bfloat16"].cases[V.PASSED] == 1
    assert {*dtypes} == {dtype, "bfloat16"}


def test_a_wrong_call_counts_under_the_dtype_of_its_group(run: Run) -> None:
    run.case("relu", outcome(V.WRONG), calls={"relu": True}, dtype="int64", inputs="([float32[1]])")
    assert {*run.evidence().overloads["aten::relu"].dtypes} == {"int64"}  # as do the passes of such calls


# ---- passes of other entries clear an overload


def ambiguous(run: Run) -> None:
    """A wrong result of an entry that calls two overloads, neither of them its namesake."""
    run.case("masked.mean", outcome(V.WRONG, max_error=2.0), PASSED, calls={"where": True, "sum": True})


def test_passes_of_the_same_entry_clear_no_overload(run: Run) -> None:
    ambiguous(run)
    assert run.cases("where") == run.cases("sum") == {V.WRONG: 1, V.PASSED: 1}


def test_passes_of_another_entry_clear_an_overload(run: Run) -> None:
    ambiguous(run)
    run.case("where", PASSED, calls={"where": True})
    assert run.cases("where") == {V.PASSED: 2}
    assert run.cases("sum") == {V.WRONG: 1, V.PASSED: 1}
    assert list(run.evidence().overloads["aten::sum"].shared) == ["aten::where"]
    assert run.evidence().overloads["aten::sum"].entries == {"masked.mean"}


def test_passes_of_another_entry_do_not_clear_an_overload_at_fault_elsewhere(run: Run) -> None:
    ambiguous(run)
    run.case("where", PASSED, outcome(V.CRASH), calls={"where": True})
    assert run.cases("where") == {V.WRONG: 1, V.PASSED: 2, V.CRASH: 1}


@pytest.mark.parametrize("verdict", [V.CRASH, V.TIMEOUT, V.WRONG, V.DTYPE_GAP, V.REFERENCE_FAILED])
def test_every_fault_without_an_operators_name_keeps_its_overload_from_being_cleared(
    run: Run, verdict: CaseVerdict
) -> None:
    run.case("where", PASSED, outcome(verdict), calls={"where": True})
    assert run.evidence().overloads["aten::where"].at_fault is (verdict is not V.REFERENCE_FAILED)


def test_when_all_are_cleared_the_finding_is_listed_with_its_worst_case(run: Run) -> None:
    ambiguous(run)
    run.case("masked.mean", outcome(V.WRONG, max_error=7.0), outcome(V.CRASH))
    run.case("where", PASSED, calls={"where": True})
    run.case("sum", PASSED, calls={"sum": True})
    listed = run.evidence().unattributed
    entry = SourceEntry("opinfo", "masked.mean", "")
    assert {key: findings.cases for key, findings in listed.items()} == {
        (entry, "float32", V.WRONG): {V.WRONG: 2},
        (entry, "float32", V.CRASH): {V.CRASH: 1},
    }
    assert listed[entry, "float32", V.WRONG].worst[V.WRONG].max_error == 7.0
    assert run.evidence().overloads["aten::where"].shared == {}


def test_unknown_name_is_unattributed(run: Run) -> None:
    run.case("nosuch", outcome(V.CRASH), outcome(V.CRASH))
    ((key, findings),) = run.evidence().unattributed.items()
    assert key == (SourceEntry("opinfo", "nosuch", ""), "float32", V.CRASH)
    assert findings.cases == {V.CRASH: 2}


# ---- credit


def test_overloads_that_an_entry_called_are_credited_with_its_passes(run: Run) -> None:
    run.case("relu", PASSED, PASSED, Outcome(V.SKIPPED), calls={"relu": True, "sum": False})
    assert run.cases("relu") == run.cases("sum") == {V.PASSED: 2}
    overloads = run.evidence().overloads
    assert overloads["aten::relu"].outermost
    assert not overloads["aten::sum"].outermost
    assert overloads["aten::sum"].passed_in == {"relu"}
    assert overloads["aten::relu"].other_verdicts == set()


def test_calls_that_the_cpu_also_refuses_are_not_evidence(run: Run) -> None:
    refusal = outcome(V.PASSED, compared="errors")
    run.case("relu", PASSED, refusal, refusal, calls={"relu": True, "sum": False})
    run.case("relu", refusal, calls={"relu": True, "sum": False}, dtype="int64")
    assert run.cases("relu") == {V.PASSED: 1, V.REFERENCE_FAILED: 2}
    assert run.cases("relu", "int64") == {V.REFERENCE_FAILED: 1}
    assert (run.cases("sum"), run.cases("sum", "int64")) == ({V.PASSED: 1}, {})


def test_an_outermost_kernel_ran_even_where_something_else_fell_back(run: Run) -> None:
    run.case("relu", PASSED, outcome(V.FALLBACK, "mode"), calls={"relu": True, "mode": True, "sum": False})
    assert run.cases("relu") == {V.PASSED: 2}
    assert run.cases("sum") == {V.PASSED: 1}, "called inside, perhaps on the CPU"
    assert run.cases("mode") == {V.FALLBACK: 1}, "what is named is not credited"


def test_a_fallback_alone_is_not_evidence_for_inner_calls(run: Run) -> None:
    run.case("mode", outcome(V.FALLBACK, "mode"), Outcome(V.SKIPPED), calls={"mode": True, "sum": False})
    overload = run.evidence().overloads["aten::sum"]
    assert overload.other_verdicts == {V.FALLBACK}
    assert overload.passed_in == set()
    assert run.cases("sum") == {}


def test_a_composite_operator_is_credited_with_passes_alone(run: Run) -> None:
    run.case("x", PASSED, outcome(V.FALLBACK, "mode"), calls={"kron": True, "relu": True})
    assert run.cases("kron") == {V.PASSED: 1}
    assert run.cases("relu") == {V.PASSED: 2}


@pytest.mark.parametrize(("simulated", "inside"), [(True, True), (False, False)])
def test_an_operator_without_a_kernel_inside_a_simulated_kernel_ran_on_the_cpu(
    run: Run, simulated: bool, inside: bool
) -> None:
    run.case("relu", PASSED, calls={"relu": True, "mode": False})
    assert run.evidence(simulated=simulated).overloads["aten::mode"].inside_simulation is inside
    assert run.cases("mode", simulated=simulated) == ({} if inside else {V.PASSED: 1})


def test_called_by_the_user_it_is_credited_on_any_device(run: Run) -> None:
    run.case("mode", PASSED, calls={"mode": True})
    run.case("mode", PASSED, calls={"mode": False}, dtype="int8")
    assert run.cases("mode") == {V.PASSED: 1}
    assert run.evidence().overloads["aten::mode"].outermost


@pytest.mark.parametrize(
    ("name", "lacks"),
    [("relu", False), ("mode", True), ("kron", False), ("sparse_op", False), ("compressed_op", False)],
)
def test_lacks_kernel(name: str, lacks: bool) -> None:
    assert lacks_kernel(SURFACE.by_name[f"aten::{name}"]) is lacks


# ---- named operators


def test_fallbacks_and_refusals_are_counted_by_name(run: Run) -> None:
    run.case("a", outcome(V.FALLBACK, "mode", "sum"), outcome(V.PASSED, "mode"))
    run.case("b", outcome(V.MISSING, "sum", "mode"), dtype="int8", mode="strict")
    fallbacks = run.evidence().fallbacks
    assert (fallbacks["aten::mode"].fell_back, fallbacks["aten::mode"].refused) == (2, 1)
    assert (fallbacks["aten::sum"].fell_back, fallbacks["aten::sum"].refused) == (2, 0)
    assert fallbacks["aten::mode"].dtypes == {"float32", "int8"}
    assert fallbacks["aten::mode"].entries == {"a", "b"}
    example = fallbacks["aten::mode"].example
    assert example is not None
    assert example.label.endswith(":0"), "the first"
    assert run.cases("mode") == {V.FALLBACK: 2}
    assert run.cases("mode", "int8") == {V.MISSING: 1}


def test_a_composite_operator_whose_parts_fell_back_did_too(run: Run) -> None:
    run.case("kron", outcome(V.FALLBACK, "mode", "sum"), calls={"kron": True, "mode": False})
    assert run.cases("kron") == {V.FALLBACK: 1}
    assert list(run.evidence().overloads["aten::kron"].inner_fallbacks) == ["aten::mode", "aten::sum"]


def test_a_composite_operator_whose_part_was_refused_did_not_run_either(run: Run) -> None:
    run.case("kron", outcome(V.MISSING, "mode"), calls={"kron": True}, mode="strict")
    assert run.cases("kron") == {V.FALLBACK: 1}


def test_without_an_answer_of_the_cpu_a_case_that_fell_back_says_nothing_about_its_operator(run: Run) -> None:
    run.case("kron", outcome(V.REFERENCE_FAILED, "mode"), calls={"kron": True})
    assert run.cases("kron") == {}
    assert run.cases("mode") == {V.FALLBACK: 1}


@pytest.mark.parametrize(
    ("operator", "calls", "result"),
    [
        ("relu", {"relu": True}, outcome(V.FALLBACK, "mode")),
        ("kron", {"kron": True, "kron.out": True}, outcome(V.FALLBACK, "mode")),
        ("kron", {"kron": True}, outcome(V.FALLBACK, "mode", stage="backward")),
        ("kron", {"kron": True}, outcome(V.FALLBACK, "mode_backward")),
        ("kron", {"kron": True}, outcome(V.FALLBACK, "kron")),
    ],
    ids=["not composite", "two suspects", "in the backward", "a backward operator", "named itself"],
)
def test_a_fallback_is_not_attributed_to_another_operator(
    run: Run, operator: str, calls: dict[str, bool], result: Outcome
) -> None:
    run.case(operator, result, calls=calls)
    assert run.evidence().overloads[f"aten::{operator}"].inner_fallbacks == {}


def test_one_forward_operator_among_those_that_fell_back_is_enough(run: Run) -> None:
    run.case("kron", outcome(V.FALLBACK, "mode_backward", "mode"), calls={"kron": True})
    assert list(run.evidence().overloads["aten::kron"].inner_fallbacks) == ["aten::mode_backward", "aten::mode"]


def test_backward_operators_are_attributed_to_an_entry_that_is_an_overload(run: Run) -> None:
    run.case("kron.out", outcome(V.FALLBACK, "mode_backward"), calls={"kron.out": True}, source="schema")
    assert list(run.evidence().overloads["aten::kron.out"].inner_fallbacks) == ["aten::mode_backward"]


def test_a_fault_in_a_case_that_fell_back_is_attributed_to_both(run: Run) -> None:
    run.case("relu", outcome(V.WRONG, "mode"), calls={"relu": True})
    assert run.cases("relu") == {V.WRONG: 1}
    assert run.cases("mode") == {V.FALLBACK: 1}


def test_a_missing_operator_without_a_name_is_attributed_to_the_suspects(run: Run) -> None:
    run.case("kron", outcome(V.MISSING), outcome(V.FALLBACK), outcome(V.REFERENCE_FAILED), calls={"kron": True})
    assert run.cases("kron") == {V.MISSING: 1, V.FALLBACK: 1, V.REFERENCE_FAILED: 1}


# ---- the worst case and the totals


def stored(error: float | None, number: int = 1) -> StoredCase:
    key = GroupKey("opinfo", "relu", "", "float32", "strict")
    return StoredCase(99, key, number, Outcome(V.WRONG, "backward", "differs", max_error=error), "(x)")


def test_a_case_reference_has_the_stored_fields() -> None:
    reference = CaseReference.of(stored(2.0, 7))
    assert (reference.label, reference.mode) == ("opinfo:relu:float32:7:strict", "strict")
    assert (reference.verdict, reference.stage) == (V.WRONG, "backward")
    assert (reference.message, reference.inputs, reference.max_error) == ("differs", "(x)", 2.0)
    assert [CaseReference.of(stored(error)).max_error for error in (math.inf, math.nan, None)] == [None, None, None]


@pytest.mark.parametrize(
    ("errors", "worst"), [((1.0, 3.0, 2.0), 2), ((3.0, None, 9.0), 2), ((None, None), 1), ((2.0, 2.0), 1)]
)
def test_the_worst_case_is_kept_and_of_equal_ones_the_first(errors: tuple[float | None, ...], worst: int) -> None:
    alone, together = DtypeFindings(), DtypeFindings()
    for number, error in enumerate(errors, 1):
        alone.add(V.WRONG, stored(error, number))
        other = DtypeFindings()
        other.add(V.WRONG, stored(error, number))
        together.add_all(other)
    for findings in (alone, together):
        assert findings.worst[V.WRONG].label == f"opinfo:relu:float32:{worst}:strict"
        assert findings.cases == {V.WRONG: len(errors)}


def test_totals_by_mode_dtype_and_reason(run: Run) -> None:
    run.case("relu", PASSED, PASSED, Outcome(V.SKIPPED, message="too large"), calls={"relu": True})
    run.case("sum", Outcome(V.SKIPPED, message="too large"), outcome(V.PASSED, "mode"), dtype="int8")
    run.case("sum", outcome(V.MISSING, "mode"), dtype="int8", mode="strict")
    evidence = run.evidence()
    assert evidence.by_mode() == {"fallback": {V.PASSED: 3, V.SKIPPED: 2}, "strict": {V.MISSING: 1}}
    assert evidence.by_dtype() == {
        "float32": {V.PASSED: 2, V.SKIPPED: 1},
        "int8": {V.PASSED: 1, V.SKIPPED: 1, V.MISSING: 1},
    }
    assert evidence.skips() == {"too large": 2}
    of_sum = evidence.entries[SourceEntry("opinfo", "sum", "")]["int8"].cases
    assert +of_sum == Counter({V.PASSED: 1, V.SKIPPED: 1, V.MISSING: 1}), "each case once"


def test_counts_are_shown_from_the_most_severe_down_without_zeros() -> None:
    counts = {V.PASSED: 2, V.CRASH: 1, V.WRONG: 0, V.FALLBACK: 3}
    assert list(in_order_of_severity(counts).items()) == [(V.CRASH, 1), (V.FALLBACK, 3), (V.PASSED, 2)]
