"""The rows of an operator's covering arrays as cases, and each level put into effect."""

from __future__ import annotations

from itertools import combinations

import pytest
import torch
from torch import Tensor

from mpsmith.audit.cases.covering.levels import levels_of
from mpsmith.audit.cases.covering.pairs import pairs_of
from mpsmith.audit.cases.sources import variations
from mpsmith.audit.cases.sources.derived import VariedSource
from mpsmith.audit.cases.sources.opinfo import OpInfoSource
from mpsmith.audit.cases.sources.pairs import PAIR_FACTOR, distinct_flags, models_of
from mpsmith.audit.model.case import Case, make_cases
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.selection import Samples

OPINFOS = OpInfoSource()
SOURCE = VariedSource(PAIR_FACTOR, OPINFOS)
FLOATING = ("float32", "float16", "bfloat16", "complex64")


def cases(operator: str, dtype: str) -> list[Case]:
    key = GroupKey("pairs", operator, "", dtype, "fallback")
    return list(make_cases(SOURCE, key, Samples.DEFAULT, 0).values())


def seen(operator: str, dtypes: tuple[str, ...]) -> set[object]:
    """The pairs of levels that the cases of an operator are at."""
    return {pair for dtype in dtypes for case in cases(operator, dtype) for pair in pairs_of(levels_of(case))}


def test_every_pair_of_dtype_layout_size_values_and_gradient_is_seen() -> None:
    levels = {
        "dtype": [f"{dtype}, {dtype}" for dtype in ("float32", "float16", "bfloat16")],
        "layout": ["contiguous", "transposed", "offset", "stepped", "expanded", "channels last"],
        "size": ["small", "over 1,024 rows", "over 65,536"],
        "values": ["plain", "nan", "infinities", "largest finite"],
        "gradient": ["none", "all", "subset"],
    }
    levels["dtype"] = ["float32", "float16", "bfloat16"]  # of two tensors alike: named once
    wanted = {
        tuple(sorted(((factor, a), (other, b))))
        for (factor, of_one), (other, of_other) in combinations(levels.items(), 2)
        for a in of_one
        for b in of_other
        if not ({factor, other} == {"values", "gradient"} and "plain" not in (a, b) and "none" not in (a, b))
    }
    assert wanted - seen("hypot", ("float32", "float16", "bfloat16")) == set()


def test_in_place_and_out_are_paired_on_their_own() -> None:
    pairs = seen("hypot", ("float32", "float16", "bfloat16"))
    for form in ("in place", "out= transposed"):
        for dtype in ("float32", "float16", "bfloat16"):
            assert (("dtype", dtype), ("form", form)) in pairs
        for values in ("plain", "nan", "infinities", "largest finite"):
            assert (("form", form), ("values", values)) in pairs
        for layout in ("contiguous", "transposed", "stepped"):
            assert (("form", form), ("layout", layout)) in pairs


def test_the_flags_of_samples_are_paired_with_layouts() -> None:
    pairs = seen("amax", ("float32", "float16", "bfloat16"))
    for layout in ("contiguous", "transposed", "offset", "stepped", "expanded", "channels last"):
        assert (("keepdim", "True"), ("layout", layout)) in pairs


def test_an_operator_costs_a_few_dozen_cases() -> None:
    assert 30 <= sum(len(cases("hypot", dtype)) for dtype in ("float32", "float16", "bfloat16")) <= 60


def test_cases_are_the_same_every_time() -> None:
    first, again = ([(case.title, str(case.args)) for case in cases("hypot", "float16")] for _ in range(2))
    assert first == again


def test_integers_get_neither_nan_nor_gradients() -> None:
    rows = [dict(levels_of(case)) for case in cases("bitwise_and", "int16")]
    assert {levels["values"] for levels in rows} == {"plain", "extreme integers"}
    assert {levels["gradient"] for levels in rows} == {"none"}


def test_models_leave_out_levels_that_an_operator_lacks() -> None:
    op = OPINFOS.opinfo(GroupKey("opinfo", "nn.functional.conv2d", "", "float32", "fallback"))
    (functional,) = (dict(model) for model in models_of(op, ("float32", "float16")))
    assert functional["dtype"] == ("float32", "float16")
    assert functional["values"] == functional["size"] == ("plain",)
    assert functional["gradient"] == ("plain", "all", "subset")


def test_the_samples_that_are_varied_differ_in_flags() -> None:
    made = [Case(torch.sum, (torch.rand(2, 3),), {"keepdim": keepdim}) for keepdim in (False, False, True, True)]
    assert distinct_flags(made, 4) == [made[0], made[2]]
    assert distinct_flags(made, 1) == [made[0]]
    assert distinct_flags([Case(torch.sum, (torch.rand(0),))], 4) == []


# ---- levels put into effect


def binary(**fields: object) -> Case:
    case = Case(torch.add, (torch.rand(2, 3), torch.rand(2, 3)), differentiable=True)
    for tensor in case.args:
        tensor.requires_grad_()
    for name, value in fields.items():
        setattr(case, name, value)
    return case


def test_one_tensor_gets_a_layout_and_keeps_its_values_and_gradient() -> None:
    case = binary()
    changed = variations.first_in_layout(case, variations.LAYOUTS["transposed"])
    assert changed is not None
    assert [t.stride() for t in changed.args] == [(1, 2), (3, 1)]
    assert [t.requires_grad for t in changed.args] == [True, True]
    assert torch.equal(changed.args[0], case.args[0])
    changed = variations.others_in_layout(case, variations.LAYOUTS_OF_OTHERS["expanded"])
    assert changed is not None
    assert [t.stride() for t in changed.args] == [(3, 1), (0, 1)]


def test_a_layout_that_no_tensor_can_have_is_none() -> None:
    assert variations.first_in_layout(binary(), variations.LAYOUTS["channels last"]) is None
    assert variations.others_in_layout(Case(torch.exp, (torch.rand(2, 3),)), variations.LAYOUTS["offset"]) is None


@pytest.mark.parametrize(
    ("size", "shape", "expected"),
    [
        ("over 1,024 rows", (2, 3), (1026, 3)),
        ("over 65,536", (2, 3), (257, 257)),
        ("over 65,536", (2, 3, 4), (2, 182, 182)),
        ("over 65,536", (2, 3, 4, 5), (2, 2, 129, 129)),
    ],
)
def test_a_size_keeps_the_number_of_dimensions(size: str, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    changed = variations.resized(Case(torch.exp, (torch.rand(shape),)), variations.SIZES[size])
    assert changed is not None
    assert changed.args[0].shape == expected
    assert dict(levels_of(changed))["size"] == size


def test_shapes_that_broadcast_are_made_one_where_the_operator_is_elementwise() -> None:
    args = (torch.rand(4, 1, 3), torch.rand(5, 1), torch.tensor(2.0))
    wanted = variations.SIZES["over 1,024 rows"]
    changed = variations.resized(Case(torch.addcmul, args, elementwise=True), wanted)
    assert changed is not None
    assert [t.shape for t in changed.args] == [(2, 513, 3), (2, 513, 3), ()]
    assert variations.resized(Case(torch.addcmul, args), wanted) is None


def test_plain_values_remain_between_special_ones() -> None:
    change = variations.special_values(torch.float32)["infinities"]
    changed = change(Case(torch.add, (torch.ones(8), torch.ones(8, dtype=torch.int64))))
    assert changed is not None
    inf = float("inf")
    assert changed.args[0].tolist() == [inf, 1, 1, -inf, 1, 1, inf, 1]
    assert changed.args[1].tolist() == [1] * 8
    assert changed.values == "infinities"
    assert change(Case(torch.add, (torch.ones(8, dtype=torch.int64),))) is None


def test_a_subset_of_the_inputs_requires_a_gradient() -> None:
    changed = variations.with_one_gradient(binary())
    assert changed is not None
    assert [t.requires_grad for t in changed.args] == [False, True]
    assert (
        variations.with_one_gradient(Case(torch.exp, (torch.rand(2, requires_grad=True),), differentiable=True)) is None
    )


def test_in_place_writes_into_the_layout_that_is_there() -> None:
    case = variations.called_in_place(Case(torch.add, (torch.ones(3, 2).t(), torch.ones(2, 3))), Tensor.add_)
    assert case is not None
    first = case.args[0]
    result, same = case.call(*case.args)
    assert same
    assert first.stride() == (1, 2)
    assert result.tolist() == first.tolist() == [[2.0] * 3] * 2


def test_forms_that_write_come_in_many_dimensions_and_conjugated() -> None:
    written = [case for case in cases("hypot", "float32") if "out=" in case.title or "in place" in case.title]
    assert {case.args[0].dim() for case in written} == {4, 6}
    products = [case for case in cases("add", "complex64") if "out=" in case.title or "in place" in case.title]
    assert any("others conjugated" in case.title and case.args[1].is_conj() for case in products)
