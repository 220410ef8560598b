"""Other arguments paired with layouts, sizes, values and dtypes."""

from __future__ import annotations

import math

import pytest
import torch

from mpsmith.audit.cases.sources.argument_pairs import ARGUMENT_PAIR_FACTOR, combined
from mpsmith.audit.cases.sources.case_tensors import accepts, tensors_of
from mpsmith.audit.cases.sources.derived import VariedSource
from mpsmith.audit.cases.sources.schema import SchemaSource
from support.source_cases import cases_by_title, cases_of_group

SOURCE = VariedSource(ARGUMENT_PAIR_FACTOR, SchemaSource())


def test_all_arguments_change_at_once_and_the_tensors_with_them() -> None:
    cases = cases_by_title(SOURCE, "sum.dim_IntList", "float16")
    assert all(title.startswith("dim=") and "keepdim=" in title and "dtype=" in title for title in cases)
    assert {case.args[2] for case in cases.values()} == {True, False}
    words = " ".join(cases)
    assert all(level in words for level in ("over 1,024 rows", "over 65,536", "nan", "transposed", "dtype=torch.int64"))
    assert any(not case.args[0].is_contiguous() for case in cases.values())
    assert all(tensor.dtype is torch.float16 for case in cases.values() for tensor in tensors_of(case))


@pytest.mark.parametrize(("operator", "dtype"), [("add.out", "int64"), ("topk", "bfloat16"), ("index_select", "int32")])
def test_the_cpu_accepts_each_case(operator: str, dtype: str) -> None:
    cases = cases_of_group(SOURCE, operator, dtype)
    assert cases
    assert all(map(accepts, cases))


def test_written_tensors_are_not_expanded_and_keep_their_layout() -> None:
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
def test_overloads_without_a_trusted_cpu_kernel_are_left_out(operator: str) -> None:
    assert not list(SOURCE.groups_of({operator}))


def test_tensors_that_the_cpu_reads_as_contiguous_are_so() -> None:
    cases = cases_of_group(SOURCE, "_fused_sgd_", "float32")
    assert {case.kwargs["nesterov"] for case in cases} == {True, False}
    assert all(tensor.is_contiguous() for case in cases for tensor in tensors_of(case))
    assert any("nan" in case.title for case in cases)
