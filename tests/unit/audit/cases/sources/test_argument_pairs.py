"""Other arguments paired with layouts, sizes, values and dtypes."""

from __future__ import annotations

import math

import pytest
import torch

from mpsmith.audit.cases.covering.pairs import Pair
from mpsmith.audit.cases.sources.argument_pairs import (
    ARGUMENT_PAIR_FACTOR,
    at_further_pairs,
    combined,
    made_at,
    pairs_at,
)
from mpsmith.audit.cases.sources.case_tensors import accepts, tensors_of
from mpsmith.audit.cases.sources.derived import VariedSource
from mpsmith.audit.cases.sources.schema import SchemaSource
from mpsmith.audit.cases.sources.variations import variations_of_call
from mpsmith.audit.model.case import Case
from mpsmith.audit.model.group import GroupKey
from support.source_cases import cases_by_title, cases_of_group

SOURCE = VariedSource(ARGUMENT_PAIR_FACTOR, SchemaSource())


def test_all_arguments_change_at_once_and_the_tensors_with_them() -> None:
    cases = cases_by_title(SOURCE, "sum.dim_IntList", "float16")
    together = [title for title in cases if "dim=" in title and "keepdim=" in title and "dtype=" in title]
    assert len(together) > 5
    assert {case.args[2] for case in cases.values() if len(case.args) > 2} == {True, False}
    assert all(tensor.dtype is torch.float16 for case in cases.values() for tensor in tensors_of(case))


def test_each_level_of_tensors_is_paired_in_some_dtype() -> None:
    titles = {
        key.dtype: " ".join(cases_by_title(SOURCE, "sum.dim_IntList", key.dtype))
        for key in SOURCE.groups_of({"sum.dim_IntList"})
    }
    for level in ("over 1,024 rows", "over 65,536", "nan", "infinities", "transposed", "stepped", "offset"):
        assert any(level in title for title in titles.values())


def test_each_case_brings_a_pair_that_none_before_it_has() -> None:
    met: set[Pair] = set()
    key = GroupKey(SOURCE.name, "topk", "", "float32", "fallback")
    for case in cases_of_group(SOURCE, "topk"):
        brought = pairs_at(key, case)
        assert brought - met
        met |= brought


def test_what_the_cpu_refuses_together_is_tried_one_level_at_a_time() -> None:
    def call(tensor: torch.Tensor, flag: bool) -> torch.Tensor:
        if tensor.storage_offset() and tensor.isnan().any():
            raise ValueError
        return tensor

    case = Case(call, (torch.rand(3, 4), True), title="flag=True")
    variations = variations_of_call("neg", "float32", case)
    levels = {"layout": ["offset"], "values": ["nan"]}
    key = GroupKey(SOURCE.name, "neg", "", "float32", "fallback")
    made = [varied.title for varied in at_further_pairs(key, [case], variations, levels, set())]
    assert made == ["flag=True, offset", "flag=True, nan"]
    assert list(at_further_pairs(key, [case], variations, levels, pairs_at(key, case))) != []
    assert list(at_further_pairs(key, [], variations, levels, set())) == []


@pytest.mark.parametrize(("dtype", "is_made"), [(torch.int64, False), (torch.float32, True)])
def test_what_becomes_an_integer_has_no_special_values(dtype: torch.dtype, is_made: bool) -> None:
    case = Case(torch.cumsum, (torch.rand(3, 4), 0), {"dtype": dtype})
    variations = variations_of_call("cumsum", "float32", case)
    assert (made_at(case, variations, {"values": "nan"}) is not None) is is_made
    assert made_at(case, variations, {"layout": "offset"}) is not None


@pytest.mark.parametrize(("operator", "dtype"), [("add.out", "int64"), ("topk", "bfloat16"), ("index_select", "int32")])
def test_the_cpu_accepts_each_case(operator: str, dtype: str) -> None:
    cases = cases_of_group(SOURCE, operator, dtype)
    assert cases
    assert all(map(accepts, cases))


def test_what_is_written_is_not_expanded_and_keeps_its_layout() -> None:
    for case in cases_of_group(SOURCE, "add.out"):
        assert case.kwargs["out"].is_contiguous()
    for case in cases_of_group(SOURCE, "add_.Tensor"):
        assert 0 not in case.args[0].stride()


def test_an_index_keeps_its_range() -> None:
    for case in cases_of_group(SOURCE, "index_select", "int64"):
        source, dim, index = case.args
        assert 0 <= int(index.min()) <= int(index.max()) < source.shape[dim]


def test_one_argument_at_a_time_is_not_finite() -> None:
    values = {"alpha": [1, 2.0, math.inf, math.nan], "beta": [1, 0.5, -math.inf]}
    rows = [combined(values, turn) for turn in range(12)]
    assert {sum(not math.isfinite(value) for value in row.values()) for row in rows} == {0, 1}
    assert {row["alpha"] for row in rows if math.isfinite(row["alpha"])} == {1, 2.0}


def test_overloads_whose_cpu_kernel_divides_integers_by_zero_have_no_integers() -> None:
    dtypes = {key.dtype for key in SOURCE.groups_of({"avg_pool2d"})}
    assert "float32" in dtypes
    assert not any("int" in dtype for dtype in dtypes)


@pytest.mark.parametrize("operator", ["_fused_adam_", "_fused_adagrad_.tensor_lr", "_upsample_lanczos2d_aa.out"])
def test_overloads_whose_cpu_kernel_does_not_say_what_is_right_are_left_out(operator: str) -> None:
    assert not list(SOURCE.groups_of({operator}))


def test_tensors_that_the_cpu_reads_as_contiguous_are_so() -> None:
    cases = cases_of_group(SOURCE, "_fused_sgd_", "float32")
    assert {case.kwargs["nesterov"] for case in cases} == {True, False}
    assert all(tensor.is_contiguous() for case in cases for tensor in tensors_of(case))
    assert any("nan" in case.title for case in cases)
