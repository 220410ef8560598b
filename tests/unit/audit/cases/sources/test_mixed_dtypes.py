"""One tensor of a call in another dtype: which ones are tried, and what becomes of the values."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from mpsmith.audit.cases.sources.case_tensors import tensors_of
from mpsmith.audit.cases.sources.derived import VariedSource
from mpsmith.audit.cases.sources.mixed_dtypes import (
    MIXED_DTYPE_CALL_FACTOR,
    MIXED_DTYPE_FACTOR,
    each_as_scalar_tensor,
    each_in_others,
    in_dtype,
    one_in,
    others_of,
    out_in_others,
    with_numbers,
    with_three,
)
from mpsmith.audit.cases.sources.modules import ModuleSource
from mpsmith.audit.cases.sources.opinfo import OpInfoSource
from mpsmith.audit.cases.sources.schema import SchemaSource
from mpsmith.audit.cases.sources.write_targets import out_case
from mpsmith.audit.model.case import Case
from support.source_cases import cases_by_title

OPINFOS = OpInfoSource()


def dtypes(case: Case) -> list[str]:
    return [str(tensor.dtype).removeprefix("torch.") for tensor in tensors_of(case)]


def case_of(*args: object) -> Case:
    return Case(torch.add, args, elementwise=True)


@pytest.mark.parametrize(
    ("numbers", "dtype", "expected"),
    [
        ([0.4, -2.7], torch.int64, [1, -2]),
        ([0.0, 2.0], torch.bool, [False, True]),
        ([1.5, -2.5], torch.float16, [1.5, -2.5]),
        ([1 + 2j, 3j], torch.float32, [1.0, 0.0]),
        ([0, 7], torch.int32, [0, 7]),
    ],
)
def test_values_survive_as_far_as_the_dtype_has_them(numbers: list[Any], dtype: torch.dtype, expected: object) -> None:
    other = in_dtype(torch.tensor(numbers), dtype)
    assert (other.tolist(), other.dtype) == (expected, dtype)


def test_one_tensor_alone_is_in_another_dtype_and_refusals_count() -> None:
    x = torch.ones(2, requires_grad=True)
    case = one_in(case_of(x, torch.ones(2)), 1, torch.int64)
    assert case is not None
    assert dtypes(case) == ["float32", "int64"]
    assert (case.title, case.errors_count, case.elementwise) == ("tensor 1 int64", True, False)
    assert case.args[0].requires_grad
    assert one_in(case_of(x, x), 0, torch.float32) is None
    detached = one_in(case_of(x, x), 0, torch.int64)
    assert detached is not None
    assert not detached.args[0].requires_grad


def test_integers_beside_other_tensors_stay_integers() -> None:
    assert others_of(torch.int64, [torch.float32, torch.int64]) == (torch.int32,)
    assert others_of(torch.int64, [torch.int64]) == (torch.int32, torch.float32)
    assert others_of(torch.float32, [torch.float32]) == (torch.float16, torch.int64, torch.complex64)
    assert others_of(torch.float64, [torch.float64]) == ()


def test_each_tensor_is_tried_in_as_many_dtypes_as_asked_for() -> None:
    case = case_of(torch.ones(2), torch.ones(2))
    every = [varied.title for varied in each_in_others(case, 3)]
    assert every == [
        "tensor 0 float16",
        "tensor 0 int64",
        "tensor 0 complex64",
        "tensor 0 bool",
        "tensor 1 int64",
        "tensor 1 complex64",
        "tensor 1 float16",
        "tensor 1 bool",
    ]
    assert [v.title for v in each_in_others(case, 1, turn=1)] == ["tensor 0 int64", "tensor 1 complex64"]
    assert [v.title for v in each_in_others(case, 1, but=[0])] == ["tensor 1 int64"]


def test_each_operand_is_replaced_by_a_scalar_tensor_of_another_category() -> None:
    first, second = each_as_scalar_tensor(case_of(torch.ones(2), torch.full((2,), 3.0)), 0)
    assert (first.args[0].dim(), first.args[0].dtype, second.args[1].item()) == (0, torch.float16, 3)
    assert second.args[1].dtype is torch.int64
    assert list(each_as_scalar_tensor(case_of(torch.ones(2), 3), 0)) == []


def test_numbers_of_every_category_are_given() -> None:
    cases = list(with_numbers(case_of(torch.ones(2, dtype=torch.int64), torch.ones(2)), "add"))
    assert [case.args[1] for case in cases] == [True, 2, 2.5, 1 + 2j]
    assert list(with_numbers(case_of(torch.ones(2), torch.ones(2)), "exp")) == []


def test_lists_become_three_long() -> None:
    longer = with_three(Case(torch.cat, ([torch.ones(2), torch.zeros(1)], 0)))
    assert longer is not None
    assert [t.tolist() for t in longer.args[0]] == [[1, 1], [0], [0]]
    shorter = with_three(Case(torch.cat, ([torch.ones(2)] * 5, 0)))
    assert shorter is not None
    assert len(shorter.args[0]) == 3
    assert with_three(case_of(torch.ones(2))) is None


def test_out_is_of_another_dtype() -> None:
    given = out_case(case_of(torch.ones(2), torch.ones(2)), torch.add)
    assert given is not None
    dtypes = [case.kwargs["out"].dtype for case in out_in_others(*given, 2)]
    assert dtypes == [torch.float16, torch.int64]
    assert [case.title for case in out_in_others(*given, 1, turn=2)] == ["out= complex64"]


def test_operators_get_mixed_dtypes_plain_in_place_and_out() -> None:
    cases = cases_by_title(VariedSource(MIXED_DTYPE_FACTOR, OPINFOS), "add")
    assert {"tensor 0 int64", "tensor 1 float16", "number True", "number (1+2j)"} <= set(cases)
    assert any(title.startswith("out= ") for title in cases)
    assert any("0-dim" in title for title in cases)
    third = cases_by_title(VariedSource(MIXED_DTYPE_FACTOR, OPINFOS), "cat")
    assert {"tensor 2 complex64", "tensor 2 int64"} <= set(third)
    assert any(len(case.args[0]) > 2 for case in third.values())


def test_modules_and_schemas_get_mixed_dtypes_and_slices_of_another() -> None:
    modules, schemas = (
        VariedSource(MIXED_DTYPE_CALL_FACTOR, ModuleSource()),
        VariedSource(MIXED_DTYPE_CALL_FACTOR, SchemaSource()),
    )
    assert cases_by_title(modules, "nn.Linear", variant="train")
    assert cases_by_title(schemas, "native_layer_norm")
    copies = cases_by_title(schemas, "copy_")
    (of_source,) = [case for title, case in copies.items() if title.startswith("tensor 1 ")]
    assert not of_source.args[0].is_contiguous()
    assert of_source.args[0].dtype is not of_source.args[1].dtype
    (of_target,) = [case for title, case in copies.items() if title.endswith("slice of larger")]
    assert of_target.args[0].dtype is not torch.float32
    assert not of_target.args[0].is_contiguous()


def test_the_addend_of_a_product_is_0_dim_where_the_cpu_takes_it() -> None:
    schema = VariedSource(MIXED_DTYPE_CALL_FACTOR, SchemaSource())
    assert "tensor 0 0-dim float16" in cases_by_title(schema, "addr.out")
    assert not any("0-dim" in title for title in cases_by_title(schema, "addmm.out")), "the CPU refuses it"
    assert not any("0-dim" in title for title in cases_by_title(schema, "asin.out")), "it reads one tensor"
