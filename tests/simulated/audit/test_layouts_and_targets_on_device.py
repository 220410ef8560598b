"""Faults of layouts and of written memory, put into operators that nobody listed: each is found by its source alone."""

from __future__ import annotations

import pytest
import torch

from mpsmith.audit.cases.sources import case_sources
from support.judged_groups import found

SOURCES = case_sources(())
pytestmark = pytest.mark.usefixtures("fallback_enabled")  # as the audit's first pass runs


def second_alone_at_an_offset(kernel, self, other):
    out = kernel(self, other)
    return out + 1 if other.storage_offset() and not self.storage_offset() else out


@pytest.mark.parametrize("operator", ["mv", "dot", "outer"])
def test_the_second_operand_alone_at_an_offset(operator: str) -> None:
    overload = {"outer": "mul.Tensor"}.get(operator, operator)
    assert "tensor 1 offset" in found(SOURCES["tensor layouts"], operator, overload, second_alone_at_an_offset)


def test_two_views_of_one_storage_in_a_comparison() -> None:
    def of_one_storage(kernel, self, other):
        shared = self.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
        return kernel(self, self) if shared and self.shape == other.shape else kernel(self, other)

    titles = found(SOURCES["tensor layouts"], "lt", "lt.Tensor", of_one_storage)
    assert "tensors 0 and 1: overlapping rows" in titles
    assert found(SOURCES["tensor layouts"], "lt", "lt.Tensor", of_one_storage, dtype="int64") != []


def test_a_dimension_other_than_the_last_is_not_contiguous() -> None:
    def last_is_contiguous(kernel, self, *args, **kwargs):
        out = kernel(self, *args, **kwargs)
        odd = self.dim() > 1 and self.stride(-1) == 1 and not self.is_contiguous()
        return out + 1 if odd else out

    assert "tensor 0 stepped rows" in found(SOURCES["tensor layouts"], "tril", "tril", last_is_contiguous)


def test_a_layout_of_an_overload_that_only_schemas_reach() -> None:
    def input_not_contiguous(kernel, grad, self, beta, threshold):
        return kernel(grad, self if self.is_contiguous() else self + 1, beta, threshold)

    assert found(SOURCES["schema tensor layouts"], "softplus_backward", "softplus_backward", input_not_contiguous)


def lost_unless_contiguous(kernel, self, *args, **kwargs):
    if self.is_contiguous():
        return kernel(self, *args, **kwargs)
    kernel(self.contiguous(), *args, **kwargs)
    return self


@pytest.mark.parametrize(("operator", "overload"), [("erfinv", "erfinv_"), ("masked_fill", "masked_fill_.Scalar")])
def test_a_result_in_place_is_lost_on_a_transposed_view(operator: str, overload: str) -> None:
    assert "in place transposed" in found(SOURCES["targets"], operator, overload, lost_unless_contiguous)


def test_a_result_in_place_is_lost_where_only_schemas_reach() -> None:
    titles = found(
        SOURCES["schema targets"], "index_fill_.int_Scalar", "index_fill_.int_Scalar", lost_unless_contiguous
    )
    assert "written transposed" in titles


def test_a_write_beside_a_slice_of_a_larger_tensor() -> None:
    def whole_rows(kernel, self, *args, **kwargs):
        out = kernel(self, *args, **kwargs)
        if self.storage_offset() and self.dim() > 1 and not self.is_contiguous():
            torch.as_strided(self, (1,), (1,), self.storage_offset() - 1).zero_()
        return out

    assert "in place slice of larger" in found(SOURCES["targets"], "tanh", "tanh_", whole_rows)


def test_out_in_every_other_row() -> None:
    def rows_ignored(kernel, self, *args, out, **kwargs):
        kernel(self, *args, out=out, **kwargs)
        if out.dim() > 1 and out.stride(-1) == 1 and not out.is_contiguous():
            out[1:] = 0
        return out

    assert "out= every other row" in found(SOURCES["targets"], "cumsum", "cumsum.out", rows_ignored)
