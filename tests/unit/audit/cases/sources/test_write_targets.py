"""Targets of in-place and out= calls: where they stand, what surrounds them, and that a stray write shows."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from mpsmith.audit.cases.calls.invocation import SchemaCall
from mpsmith.audit.cases.sources.derived import VariedSource
from mpsmith.audit.cases.sources.opinfo import OpInfoSource
from mpsmith.audit.cases.sources.schema import SchemaSource
from mpsmith.audit.cases.sources.write_targets import (
    MARGIN,
    SCHEMA_TARGET_FACTOR,
    TARGET_FACTOR,
    at_an_offset,
    channels_last,
    every_other_element,
    every_other_row,
    expanded,
    in_place_case,
    out_case,
    schema_case,
    slice_of_larger,
    storage_around,
    transposed,
    with_placed_targets,
    written_in,
)
from mpsmith.audit.model.case import Case
from support.source_cases import cases_by_title

OPINFOS = OpInfoSource()


@pytest.mark.parametrize(
    ("place", "shape", "stride", "offset"),
    [
        (at_an_offset, (2, 3), (3, 1), MARGIN),
        (transposed, (2, 3), (1, 2), MARGIN),
        (every_other_element, (2, 3), (6, 2), MARGIN),
        (every_other_row, (2, 3), (6, 1), MARGIN),
        (slice_of_larger, (2, 3), (5, 1), MARGIN + 6),
        (channels_last, (2, 3, 4, 5), (60, 1, 15, 3), MARGIN),
    ],
)
def test_a_target_has_its_values_strides_and_offset(place, shape, stride, offset) -> None:
    x = torch.randn(shape)
    target = place(x)
    assert torch.equal(target, x)
    assert (target.stride(), target.storage_offset()) == (stride, offset)
    whole = torch.empty(0).set_(target.untyped_storage())
    assert whole.sum().item() == pytest.approx(x.sum().item() + whole.numel() - x.numel(), abs=1e-4)
    rest = storage_around(target)
    assert sorted(rest.unique().tolist()) == [0.0, 1.0]
    assert int((rest == 0).sum()) == x.numel()


def test_an_expanded_target_has_room_for_all_elements() -> None:
    target = expanded(torch.randn(3, 2))
    assert target is not None
    assert target.stride() == (0, 1)
    assert target.untyped_storage().nbytes() == 4 * (6 + 2 * MARGIN)
    assert int((storage_around(target) == 0).sum()) == 2
    assert expanded(torch.randn(1, 2)) is None
    assert transposed(torch.randn(2)) is None
    assert slice_of_larger(torch.tensor(1.0)) is None


def test_in_place_writes_the_first_argument_in_every_place() -> None:
    case = Case(torch.add, (torch.ones(2, 3, requires_grad=True), torch.ones(2, 3)), differentiable=True)
    called, targets = in_place_case(case, torch.Tensor.add_)
    assert targets == [0]
    cases = {c.title: c for c in with_placed_targets(called, targets)}
    assert set(cases) == {
        "in place transposed",
        "in place at an offset",
        "in place every other element",
        "in place every other row",
        "in place slice of larger",
        "in place expanded",
    }
    case = cases["in place slice of larger"]
    assert (case.form, case.errors_count, case.differentiable) == ("in place slice of larger", True, False)
    result, targets_after, storages = case.call(*case.args)
    assert result.tolist() == targets_after[0].tolist() == [[2.0] * 3] * 2
    assert int((storages[0] == 0).sum()) == 6
    refused = cases["in place expanded"]
    with pytest.raises(RuntimeError, match="single memory location"):
        refused.call(*refused.args)


def test_a_list_of_targets_is_placed_whole() -> None:
    case = Case(torch._foreach_add, ([torch.ones(2, 3), torch.ones(())], 1))
    called, targets = in_place_case(case, torch._foreach_add_)
    assert targets == [0, 1]
    varied = written_in(called, targets, transposed)
    assert varied is not None
    assert [t.stride() for t in varied.args[0]] == [(1, 2), ()]
    assert varied.call(*varied.args)[1][0].tolist() == [[2.0] * 3] * 2


def test_a_lost_result_and_a_write_outside_the_target_are_detected() -> None:
    def lost(target: Tensor, other: Tensor) -> Tensor:
        target.contiguous().add_(other)
        return target

    def astray(target: Tensor, other: Tensor) -> Tensor:
        target.add_(other)
        torch.empty(0).set_(target.untyped_storage())[MARGIN - 1] = 7
        return target

    results = []
    for operator in (torch.Tensor.add_, lost, astray):
        called, targets = in_place_case(Case(torch.add, (torch.ones(2, 3), torch.ones(2, 3))), operator)
        varied = written_in(called, targets, every_other_row)
        assert varied is not None
        results.append(varied.call(*varied.args))
    right, of_lost, of_astray = results
    assert not torch.equal(of_lost[1][0], right[1][0])
    assert torch.equal(of_astray[1][0], right[1][0])
    assert not torch.equal(of_astray[2][0], right[2][0])


def test_memory_around_a_resized_target_is_not_compared() -> None:
    def grows_for_a_while(target: Tensor) -> Tensor:
        return target.resize_(50).resize_(2, 3)

    called, targets = in_place_case(Case(torch.abs, (torch.ones(2, 3),)), grows_for_a_while)
    varied = written_in(called, targets, at_an_offset)
    assert varied is not None
    _, copies, storages = varied.call(*varied.args)
    assert (copies[0].shape, storages[0].shape) == ((2, 3), (0,))


def test_out_is_given_in_the_shape_of_the_result() -> None:
    given = out_case(Case(torch.mm, (torch.ones(2, 3), torch.ones(3, 4))), torch.mm)
    assert given is not None
    varied = written_in(*given, transposed)
    assert varied is not None
    assert (varied.kwargs["out"].shape, varied.kwargs["out"].stride()) == ((2, 4), (1, 2))
    assert varied.call(*varied.args, **varied.kwargs)[1][0].tolist() == [[3.0] * 4] * 2
    several = out_case(Case(torch.max, (torch.ones(2, 3), 1)), torch.max)
    assert several is not None
    assert several[1] == [1, 2]
    assert [t.dtype for t in several[0].kwargs["out"]] == [torch.float32, torch.int64]
    assert out_case(Case(torch.mm, (torch.ones(2, 3), torch.ones(2, 3))), torch.mm) is None
    assert out_case(Case(torch.equal, (torch.ones(2), torch.ones(2))), torch.equal) is None


def test_the_written_arguments_of_a_schema_call_are_its_targets() -> None:
    x = torch.ones(2, 3)
    given = schema_case(Case(SchemaCall("aten::add_.Tensor"), (x, x + 1)))
    assert given is not None
    assert (given[1], given[0].title) == ([0], "written")
    grown = schema_case(Case(SchemaCall("aten::add.out"), (x, x + 1), {"out": torch.empty(0)}))
    assert grown is not None
    assert (grown[1], grown[0].kwargs["out"].shape, grown[0].title) == ([2], (2, 3), "out=")
    assert schema_case(Case(SchemaCall("aten::add.Tensor"), (x, x))) is None
    assert schema_case(Case(SchemaCall("aten::mm.out"), (x, x), {"out": x})) is None


def test_operators_are_written_into_everywhere_and_other_dtypes_in_turn() -> None:
    cases = cases_by_title(VariedSource(TARGET_FACTOR, OPINFOS), "add")
    assert {
        "in place transposed",
        "in place expanded",
        "tensors 0 and 1: halves",
        "out= every other row",
        "out= slice of larger",
        "out= expanded",
    } <= set(cases)
    assert any(title.startswith("tensor 1 ") for title in cases)
    in_place = [
        title
        for title in cases_by_title(VariedSource(TARGET_FACTOR, OPINFOS), "add", "int64")
        if title.startswith("in place")
    ]
    assert len(in_place) == 2
    assert cases_by_title(VariedSource(TARGET_FACTOR, OPINFOS), "_foreach_add")


def test_schemas_that_write_are_written_into_transposed_and_in_another_place() -> None:
    source = VariedSource(SCHEMA_TARGET_FACTOR, SchemaSource())
    for operator, how in (("add_.Tensor", "written"), ("add.out", "out="), ("_fused_adam_", "written")):
        titles = [title for title in cases_by_title(source, operator) if title.startswith(how)]
        assert titles[0] == f"{how} transposed"
        assert len(titles) == 2 + (titles[1] == f"{how} expanded")
    assert {"written transposed", "written expanded", "written at an offset"} <= set(cases_by_title(source, "copy_"))
