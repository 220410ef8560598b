"""Calls of the sizes that choose a kernel: the CPU accepts each, in every dtype, and none repeats another."""

from __future__ import annotations

import pytest
import torch

from mpsmith.audit.cases.sources.case_tensors import accepts
from mpsmith.audit.cases.sources.kernel_sizes import HEAD_SIZES, SHAPED, KernelSizeSource, WrittenCalls
from mpsmith.audit.model.case import make_cases
from mpsmith.audit.model.selection import Samples

SOURCE = KernelSizeSource()


def titles(operator: str, dtype: str) -> list[str]:
    (key,) = [key for key in SOURCE.groups() if (key.operator, key.dtype) == (operator, dtype)]
    return [case.title for case in make_cases(SOURCE, key, Samples.DEFAULT, 0).values()]


@pytest.mark.parametrize("row", SHAPED, ids=lambda row: str(row.operator))
def test_the_cpu_accepts_each_call(row: WrittenCalls) -> None:
    for dtype in row.dtypes:
        cases = list(row.calls(getattr(torch, dtype)))
        assert cases
        assert len({case.title for case in cases}) == len(cases)
        assert [case.title for case in cases if not accepts(case)] == []


def test_a_group_is_found_in_every_mode() -> None:
    from dataclasses import replace

    key = replace(next(iter(SOURCE.groups())), mode="strict")
    assert len(make_cases(SOURCE, key, Samples.DEFAULT, 0)) == 55


def test_attention_has_the_head_sizes_that_kernels_exist_for() -> None:
    assert HEAD_SIZES == (64, 96, 128, 256)
    made = titles("scaled_dot_product_attention", "float16")
    assert len(made) == 49
    assert "heads of 256, 2 queries, 1,100 keys, causal" in made


def test_the_first_call_has_nan_once_more() -> None:
    attention = ("scaled_dot_product_attention", "float32")
    (key,) = [key for key in SOURCE.groups() if (key.operator, key.dtype) == attention]
    cases = list(make_cases(SOURCE, key, Samples.DEFAULT, 0).values())
    assert cases[-1].title == f"NaN in {cases[0].title}"
    assert int(cases[-1].args[0].isnan().sum()) == 1
    assert not any(case.args[0].isnan().any() for case in cases[:-1])
    assert not [title for title in titles("sort", "int8") if "NaN" in title]
    assert not [title for title in titles("grid_sampler_2d", "float32") if "NaN" in title]  # gradients are compared


def test_a_row_longer_than_sixteen_bits_count_is_sorted() -> None:
    assert {"1 by 66,000", "stable, 1 by 66,000", "1,800 by 4 over 0"} <= set(titles("sort", "int8"))
