"""Faults of overloads that are called by name alone, in operators that no list names: `schema twins` finds them."""

from __future__ import annotations

import pytest

from mpsmith.audit.cases.sources import case_sources
from support.judged_groups import found

TWINS = case_sources(())["schema twins"]


pytestmark = pytest.mark.usefixtures("fallback_enabled")  # as the audit's first pass runs


def found_by_twins(overload: str, fault, dtype: str = "float32") -> list[str]:
    """The titles of the cases that show the fault, none of which is wrong without it."""
    return found(TWINS, overload, overload, fault, dtype=dtype)


def test_an_empty_tensor_in_place() -> None:
    def refuses_empty(kernel, self):
        if not self.numel():
            raise RuntimeError("empty grid")
        return kernel(self)

    assert found_by_twins("asinh_", refuses_empty) == ["empty"]


def test_integers_beyond_2_53_with_out() -> None:
    def through_float64(kernel, self, other, *, out):
        return kernel(self, other.cpu().double().long().to(other.device), out=out)

    titles = found_by_twins("bitwise_or.Tensor_out", through_float64, "int64")
    assert any("beyond 2^53 in tensor 1 alone" in title for title in titles)


def test_many_rows_of_a_reduction_with_out() -> None:
    def zeros_above_1024(kernel, self, dim, keepdim=False, *, min, min_indices):
        results = kernel(self, dim, keepdim, min=min, min_indices=min_indices)
        if self.dim() and self.shape[0] > 1_024:
            min.zero_()
        return results

    assert any("2,050 in the first dimension" in title for title in found_by_twins("min.dim_min", zeros_above_1024))


def test_an_expanded_gradient_of_a_backward_with_out() -> None:
    def reads_on(kernel, grad_output, self, *, approximate="none", grad_input):
        results = kernel(grad_output, self, approximate=approximate, grad_input=grad_input)
        if 0 in grad_output.stride():
            grad_input.add_(1)
        return results

    titles = found_by_twins("gelu_backward.grad_input", reads_on)
    assert titles
    assert all("expanded" in title for title in titles)
