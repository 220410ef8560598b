"""Faults of calls that mix dtypes, in operators that no list names: each is found by its source alone."""

from __future__ import annotations

import pytest
import torch

from mpsmith.audit.cases.sources import case_sources
from support.judged_groups import found

SOURCES = case_sources(())
pytestmark = pytest.mark.usefixtures("fallback_enabled")  # as the audit's first pass runs


@pytest.mark.parametrize(("operator", "overload"), [("sub", "sub.Tensor"), ("atan2", "atan2")])
def test_an_integer_before_a_floating_operand(operator: str, overload: str) -> None:
    def truncates(kernel, self, other, **kwargs):
        mixed = not self.is_floating_point() and other.is_floating_point()
        return kernel(self, other.trunc() if mixed else other, **kwargs)

    titles = found(SOURCES["mixed dtypes"], operator, overload, truncates)
    assert "tensor 0 int64" in titles


def test_a_cat_that_ignores_the_dtype_of_its_third_tensor() -> None:
    def two_looked_at(kernel, tensors, dim=0):
        out = kernel(tensors, dim)
        return out.to(torch.promote_types(tensors[0].dtype, tensors[min(1, len(tensors) - 1)].dtype))

    assert found(SOURCES["mixed dtypes"], "cat", "cat", two_looked_at)


def test_a_number_of_a_higher_category() -> None:
    def number_truncated(kernel, self, other):
        out = kernel(self, other)
        return out.trunc() if not self.is_floating_point() and out.is_floating_point() else out

    assert found(SOURCES["mixed dtypes"], "remainder", "remainder.Tensor", number_truncated, dtype="int64")


def test_in_place_with_another_dtype() -> None:
    def other_read_as_its_own(kernel, self, other, *args, **kwargs):
        return kernel(self, other + 1 if other.dtype is not self.dtype else other, *args, **kwargs)

    assert found(SOURCES["mixed dtypes"], "maximum", "maximum", other_read_as_its_own)
    assert found(SOURCES["mixed dtypes"], "mul", "mul_.Tensor", other_read_as_its_own)


def test_a_copy_into_a_slice_of_another_dtype() -> None:
    def strides_lost(kernel, self, src, *args, **kwargs):
        out = kernel(self, src, *args, **kwargs)
        if self.dtype is not src.dtype and not self.is_contiguous():
            self[..., -1] = 0
        return out

    assert (
        found(SOURCES["schema mixed dtypes"], "masked_scatter_", "masked_scatter_", lambda k, s, m, v: k(s, m, v)) == []
    )
    assert found(SOURCES["schema mixed dtypes"], "hypot_", "hypot_", strides_lost)


def test_an_index_of_int32() -> None:
    def int32_off_by_one(kernel, self, dim, index):
        out = kernel(self, dim, index)
        return out.flip(0) if index.dtype is torch.int32 else out

    assert "tensor 1 int32" in found(SOURCES["mixed dtypes"], "index_select", "index_select", int32_off_by_one)
