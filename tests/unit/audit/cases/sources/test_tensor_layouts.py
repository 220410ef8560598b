"""One tensor at a time in another layout, and two in one storage: which cases there are, and what is in them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from mpsmith.audit.cases.sources.case_tensors import tensors_of, with_one, with_tensors
from mpsmith.audit.cases.sources.derived import VariedSource
from mpsmith.audit.cases.sources.layouts import expanded, offset, stepped, stepped_rows, swapped_in_front, transposed
from mpsmith.audit.cases.sources.modules import ModuleSource
from mpsmith.audit.cases.sources.opinfo import OpInfoSource
from mpsmith.audit.cases.sources.schema import SchemaSource
from mpsmith.audit.cases.sources.shared_storage import (
    SHARED,
    halves,
    overlapping_rows,
    own_transpose,
    pairs_in_one_storage,
    same_tensor,
    sharing,
)
from mpsmith.audit.cases.sources.tensor_layouts import (
    ALONE,
    TENSOR_LAYOUT_FACTOR,
    alone_in,
    each_alone,
    each_in_turn,
    filled,
)
from mpsmith.audit.model.case import Case
from support.source_cases import cases_of_group

OPINFOS = OpInfoSource()


def case_of(*args: object, **kwargs: object) -> Case:
    return Case(torch.add, args, dict(kwargs))


# ---- one tensor


def test_tensors_are_counted_from_left_to_right_through_lists_and_keywords() -> None:
    a, b, c = torch.ones(1), torch.ones(2), torch.ones(3)
    case = case_of([a, 1], b, out=c)
    assert [t.numel() for t in tensors_of(case)] == [1, 2, 3]
    other = with_tensors(case, {1: torch.zeros(5)}, "five")
    assert [t.numel() for t in tensors_of(other)] == [1, 5, 3]
    assert other.title == "five"
    assert [t.numel() for t in tensors_of(case)] == [1, 2, 3]


def test_one_tensor_is_changed_and_requires_a_gradient_as_before() -> None:
    case = case_of(torch.ones(2, 3, requires_grad=True), torch.ones(2, 3))
    first = with_one(case, 0, lambda t: t * 2, "")
    assert first is not None
    assert (first.args[0].tolist(), first.args[0].requires_grad) == ([[2.0] * 3] * 2, True)
    second = with_one(case, 1, lambda t: t * 2, "")
    assert second is not None
    assert (second.args[0] is case.args[0], second.args[1].requires_grad) == (True, False)
    integers = with_one(case, 0, lambda t: t.long(), "")
    assert integers is not None
    assert not integers.args[0].requires_grad
    assert with_one(case, 0, lambda t: None, "") is None


def test_one_tensor_alone_is_in_the_layout_and_refusals_count() -> None:
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    case = alone_in(case_of(x, y), 1, transposed)
    assert case is not None
    assert [t.stride() for t in case.args] == [(3, 1), (1, 2)]
    assert torch.equal(case.args[1], y)
    assert (case.title, case.errors_count) == ("tensor 1 transposed", True)
    assert alone_in(case_of(x, torch.ones(())), 1, transposed) is None


@pytest.mark.parametrize(
    ("layout", "shape", "stride"),
    [
        (stepped_rows, (2, 3), (6, 1)),
        (stepped, (2, 3), (6, 2)),
        (swapped_in_front, (2, 3, 4), (4, 8, 1)),
        (expanded, (2, 3), (0, 1)),
    ],
)
def test_layouts_have_these_strides(layout, shape: tuple[int, ...], stride: tuple[int, ...]) -> None:
    x = torch.randn(shape)
    varied = layout(x)
    assert varied.stride() == stride
    assert torch.equal(varied, x if layout is not expanded else x[:1].expand(shape))


def test_behind_an_expanded_tensor_is_room_for_all_of_it() -> None:
    varied = expanded(torch.randn(4, 5))
    assert varied is not None
    assert varied.untyped_storage().nbytes() == 4 * 20


def test_each_tensor_is_tried_in_each_layout_that_it_can_have() -> None:
    titles = {case.title for case in each_alone(case_of(torch.randn(2, 3), torch.randn(3)))}
    of_matrix = ("transposed", "offset", "expanded", "stepped", "stepped rows", "negative view")
    of_vector = ("offset", "expanded", "stepped", "negative view")
    assert titles == {f"tensor 0 {n}" for n in of_matrix} | {f"tensor 1 {n}" for n in of_vector}


def test_in_turn_each_tensor_gets_one_layout_and_every_layout_its_turn() -> None:
    case = case_of(torch.randn(2, 3, 4, 5), torch.randn(2, 3, 4, 5))
    by_turn = [[c.title for c in each_in_turn(case, start)] for start in range(len(ALONE))]
    assert all(len(titles) == 2 for titles in by_turn)
    first = {titles[0] for titles in by_turn}
    assert first == {f"tensor 0 {e.__name__.replace('_', ' ')}" for e in ALONE if e.__name__ != "conjugate_view"}
    assert [c.title for c in each_in_turn(case, 0)] == ["tensor 0 transposed", "tensor 1 offset"]
    assert [c.title for c in each_in_turn(case, 0, but=[0])] == ["tensor 1 offset"]


# ---- one storage


def storages(case: Case) -> set[int]:
    return {t.untyped_storage()._cdata for t in tensors_of(case)}


def test_two_tensors_share_a_storage_in_each_way() -> None:
    x = torch.arange(4.0).view(2, 2)
    cases = list(pairs_in_one_storage([case_of(x, x + 10)]))
    assert len(cases) == len(SHARED) == 5
    assert all(len(storages(case)) == 1 for case in cases)
    same, half, rows, transpose, lazy = (case.args for case in cases)
    assert same[0] is same[1]
    assert (half[0].tolist(), half[1].tolist()) == (x.tolist(), (x + 10).tolist())
    assert half[0].storage_offset() == 4
    assert (rows[0].tolist(), rows[1].tolist()) == ([[0, 1], [2, 3]], [[10, 11], [0, 1]])
    assert torch.equal(transpose[1], x.mT)
    assert lazy[1].is_neg()
    assert torch.equal(lazy[1], -x)


def test_operands_that_broadcast_are_made_equal_for_it() -> None:
    case = case_of(torch.ones(2, 3), torch.zeros(3))
    assert [c.title for c in pairs_in_one_storage([case])] == ["tensors 0 and 1: halves"]
    case.elementwise = True
    titles = [c.title for c in pairs_in_one_storage([case])]
    assert len(titles) == 4
    assert "tensors 0 and 1: overlapping rows" in titles


def test_only_tensors_that_fit_together_share_a_storage() -> None:
    x = torch.ones(2, 3)
    assert sharing(case_of(x, torch.ones(2, 3, dtype=torch.int64)), halves) is None
    assert sharing(case_of(x, torch.ones(4)), same_tensor) is None
    assert sharing(case_of(x, torch.ones(2, 3)), own_transpose) is None
    assert sharing(case_of(x, torch.ones(0)), halves) is None
    assert sharing(case_of(torch.ones(()), torch.ones(())), overlapping_rows) is None
    third = sharing(case_of(x, 2, torch.ones(2, 3, dtype=torch.int64), torch.zeros(4)), halves)
    assert third is not None
    assert third.title == "tensors 0 and 2: halves"


def test_integers_that_may_be_places_keep_their_values() -> None:
    case = case_of(torch.tensor([0, 2]), torch.tensor([1, 1]))
    assert [c.title for c in pairs_in_one_storage([case])] == ["tensors 0 and 1: halves"]
    case.elementwise = True
    assert "tensors 0 and 1: same tensor" in [c.title for c in pairs_in_one_storage([case])]


def test_views_of_one_storage_require_gradients_as_the_tensors_did() -> None:
    x, y = torch.ones(2, 3, requires_grad=True), torch.ones(2, 3)
    case = sharing(case_of(x, y), overlapping_rows)
    assert case is not None
    assert [t.requires_grad for t in case.args] == [True, False]
    assert all(t.is_leaf for t in case.args)


# ---- the source


def test_a_call_without_elements_gets_some_where_no_other_is_remembered() -> None:
    empty, full = case_of(torch.ones(0, 3), torch.ones(0, 3)), case_of(torch.ones(2), torch.ones(2))
    assert filled([empty, full]) == [full]
    (grown,) = filled([empty])
    assert [t.shape for t in grown.args] == [(2, 3, 4), (2, 3, 4)]
    assert grown.args[0].flatten()[:5].tolist() == [0, 2, 4, 6, 1]
    assert grown.args[1].flatten()[:5].tolist() == [1, 4, 7, 3, 6]
    other = case_of(torch.ones(0, 3), torch.ones(0))
    assert filled([other]) == [other]
    assert filled([]) == []


def test_several_samples_of_an_operator_are_varied() -> None:
    cases = cases_of_group(VariedSource(TENSOR_LAYOUT_FACTOR, OPINFOS), "add")
    titles = [case.title for case in cases]
    assert {"tensor 0 transposed", "tensor 1 offset", "tensors 0 and 1: overlapping rows"} <= set(titles)
    assert len({tuple(t.dim() for t in tensors_of(case)) for case in cases}) > 1


def test_half_integers_and_complex_are_varied_in_turn() -> None:
    source = VariedSource(TENSOR_LAYOUT_FACTOR, OPINFOS)
    assert {key.dtype for key in source.groups()} == {"float32", "float16", "int64", "complex64"}
    assert 0 < len(cases_of_group(source, "add", "int64")) < len(cases_of_group(source, "add"))


def test_modules_and_schemas_are_varied_unless_they_write() -> None:
    modules, schemas = (
        VariedSource(TENSOR_LAYOUT_FACTOR, ModuleSource()),
        VariedSource(TENSOR_LAYOUT_FACTOR, SchemaSource()),
    )
    assert len(cases_of_group(modules, "nn.BatchNorm2d", variant="train")) >= 3
    titles = [case.title for case in cases_of_group(schemas, "native_layer_norm")]
    assert len({"transposed", "offset", "stepped"} & set(titles)) == 1
    assert any(title.startswith("tensor 1 ") for title in titles)


def test_an_offset_tensor_starts_off_a_boundary() -> None:
    varied: Tensor = offset(torch.ones(2, 3))
    assert varied.storage_offset() == 3


def test_a_pointwise_call_of_shapes_that_do_not_broadcast_is_put_into_one_storage_as_it_is() -> None:
    """`equal` compares any two shapes, and torch calls it pointwise."""
    unequal = Case(torch.equal, (torch.ones(3, 3), torch.ones(1, 2)), {}, elementwise=True)
    shapes = [[tensor.shape for tensor in tensors_of(case)] for case in pairs_in_one_storage([unequal])]
    assert shapes
    assert all(pair == [(3, 3), (1, 2)] for pair in shapes)
