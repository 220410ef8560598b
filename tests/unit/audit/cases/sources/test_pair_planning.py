"""Which calls are planned for pairs of levels that no case was at."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
import torch

from mpsmith.audit.cases.calls.invocation import SchemaCall
from mpsmith.audit.cases.covering.levels import levels_of
from mpsmith.audit.cases.covering.pairs import Level
from mpsmith.audit.cases.sources.opinfo import OpInfoSource
from mpsmith.audit.cases.sources.planned_pairs import Planned, at_levels, calls_of
from mpsmith.audit.cases.sources.schema import SchemaSource
from mpsmith.audit.findings.pairs_seen import argument_levels
from mpsmith.audit.model.case import Case
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome
from support import pair_planning
from support.stores import begun, new_store, opinfo

SOURCE = OpInfoSource()
GROUPS = [opinfo("clamp"), opinfo("clamp", dtype="int64")]


def test_a_call_is_planned_for_pairs_that_the_cpu_accepts() -> None:
    calls = calls_of(SOURCE, GROUPS[0]) | calls_of(SOURCE, GROUPS[1])
    arguments = {level for call in calls.values() for level in argument_levels(levels_of(call))}
    levels = {("layout", "transposed"), ("dtype", "int64"), ("values", "nan")}
    wanted = set(product(arguments, levels))
    planned = list(pair_planning.planned_for({"opinfo": SOURCE}, GROUPS, wanted))
    assert planned
    for row in planned:
        assert levels & {*levels_of(at_levels(SOURCE, row, calls[row.call])), ("dtype", row.dtype)}
    assert any(("values", "nan") in row.levels and row.dtype == "float32" for row in planned)
    assert {row.base.dtype for row in planned} == {"float32", "int64"}, "integers have other special values"
    assert len(wanted) < len(arguments), "what is brought is not open any more"


def test_pairs_planned_before_the_process_died_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = Planned(GROUPS[0], "0a1b2c3d", "int64", (("layout", "offset"), ("size", "over 65,536")))

    def dying(*_: object):
        yield planned
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(pair_planning, "planned_for", dying)
    assert pair_planning.in_separate_process() == (planned,)


def test_open_are_the_pairs_of_all_levels_that_no_case_was_at(tmp_path: Path) -> None:
    first, second, contiguous, transposed = ("0", "1"), ("0", "2"), ("layout", "contiguous"), ("layout", "transposed")
    recording = begun(store := new_store(tmp_path))
    refused = CaseVerdict.REFERENCE_FAILED
    rows = [(GROUPS[0], CaseVerdict.PASSED, (first, contiguous)), (GROUPS[1], CaseVerdict.PASSED, (second, transposed))]
    for key, verdict, levels in (*rows, (opinfo("clamp", dtype="uint8"), refused, (first, transposed))):
        recording.add(key, Outcome(verdict))
        store.add_covered(store.groups(recording.run.id)[-1].id, 0, {0: levels})
    wanted, groups = pair_planning.open_pairs(store, recording.run.id)
    assert [key.dtype for key in groups["clamp"]] == ["float32", "int64", "uint8"]
    of_dtypes = {(first, ("dtype", "int64")), (second, ("dtype", "float32"))}
    assert wanted == {"clamp": {(second, contiguous), *of_dtypes}}, "the CPU refuses the first of transposed tensors"


def test_a_call_gets_another_dtype_only_where_all_of_its_tensors_go_with_it() -> None:
    key = GroupKey("schema", "add.Tensor", "", "float32", "fallback")
    planned = Planned(key, "", "int64", ())
    given = torch.ones(2)
    for other, expected in ((given, torch.int64), (given > 0, torch.bool), (given.half(), None)):
        case = Case(SchemaCall("aten::add.Tensor"), (given, other))
        changed = pair_planning._in_other_dtype(SchemaSource(), planned, case)
        assert (changed and changed.args[1].dtype) == expected


def test_of_calls_with_the_same_arguments_the_first_that_the_cpu_accepts_is_varied() -> None:
    refused, accepted = (Case(torch.mul, (torch.ones(shape), torch.ones(3))) for shape in (2, (2, 3)))
    transposed = ("layout", "transposed")
    wanted = {(("given", "2"), own) for own in (transposed, ("values", "infinities"), ("dtype", "float16"))}

    def levels(**calls: Case) -> dict[str, set[Level]]:
        varied = pair_planning._calls_in(SOURCE, opinfo("mul"), "float32", calls, wanted, set())
        return {call.planned.call: call.levels for call in varied}

    assert levels(refused=refused, accepted=accepted, again=accepted).keys() == {"accepted"}
    assert not levels(written=replace(accepted, form="in place"))
    special = levels(special=replace(accepted, values="nan"))
    assert special == {"special": {transposed}}, "at other values, or in another dtype, it has others"


@pytest.mark.parametrize(
    ("operator", "factors"),
    [("mul", pair_planning.FACTORS), ("_fused_adam_", ("dtype", "values")), ("grid_sampler_2d", ())],
)
def test_factors_depend_on_the_operator(operator: str, factors: tuple[str, ...]) -> None:
    assert pair_planning._factors(operator) == factors


def test_a_planned_call_brings_its_pairs_only_where_the_cpu_accepts_it() -> None:
    planned = Planned(opinfo("mul"), "", "float32", (("layout", "transposed"),))
    for length, accepted in ((3, True), (2, False)):
        case = Case(torch.mul, (torch.ones(2, 3), torch.ones(length)))
        pairs = pair_planning._brought(SOURCE, planned, case)
        assert ((("given", "2"), ("layout", "transposed")) in pairs) is accepted


def test_a_call_that_writes_one_element_in_several_places_has_no_reference() -> None:
    for weight in (torch.ones(1).expand(3, 4), torch.ones(3, 4)):
        case = Case(torch.nn.functional.embedding, (torch.tensor([0]), weight), {"max_norm": 1.0})
        assert pair_planning._is_defined(case) is weight.is_contiguous()


def test_no_call_whose_special_values_become_integers_is_planned() -> None:
    inputs = torch.tensor([torch.nan, 1.0])
    for dtype in (torch.int64, torch.float16):
        case = Case(SchemaCall("aten::sign.out"), (inputs,), {"out": torch.empty(2, dtype=dtype)}, values="nan")
        assert pair_planning._converts_to_integers(case) is not dtype.is_floating_point
