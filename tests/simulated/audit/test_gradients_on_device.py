"""Faults of backwards, and of samples that want no gradient: each is found by its source alone."""

from __future__ import annotations

import pytest

from mpsmith.audit.cases.sources import case_sources
from support.judged_groups import found, wrong_cases

SOURCES = case_sources(())
pytestmark = pytest.mark.usefixtures("fallback_enabled")  # as the audit's first pass runs


@pytest.mark.parametrize(
    ("operator", "overload"),
    [("nn.functional.softplus", "softplus_backward"), ("nn.functional.elu", "elu_backward")],
)
def test_a_backward_that_is_wrong_for_an_expanded_cotangent(operator: str, overload: str) -> None:
    def expanded_read_as_contiguous(kernel, grad, *args, **kwargs):
        return kernel(grad * 2 if 0 in grad.stride() else grad, *args, **kwargs)

    titles = found(SOURCES["gradients"], operator, overload, expanded_read_as_contiguous)
    assert "gradients of the outputs as of a sum" in titles


def test_a_backward_with_only_the_weight_wanting_its_gradient() -> None:
    def of_layer_norm(kernel, grad, x, shape, mean, rstd, weight, bias, mask):
        first, second, third = kernel(grad, x, shape, mean, rstd, weight, bias, mask)
        return first, second / 2 if list(mask) == [False, True, False] else second, third

    titles = found(SOURCES["gradients"], "nn.functional.layer_norm", "native_layer_norm_backward", of_layer_norm)
    assert "gradient of tensor 1 alone" in titles


def test_a_backward_that_is_wrong_for_zeros() -> None:
    def zero_cotangent(kernel, grad, output, *args):
        gradient = kernel(grad, output, *args)
        return gradient + 1 if not bool(grad.any()) else gradient

    titles = found(SOURCES["gradients"], "softmax", "_softmax_backward_data", zero_cotangent, variant="")
    assert titles == ["gradients of the outputs zero"]


def test_an_embedding_that_is_wrong_only_without_gradients() -> None:
    def ignores_renorm(kernel, self, indices, max_norm, norm_type):
        return self

    titles = found(SOURCES["samples without gradients"], "nn.functional.embedding", "embedding_renorm_", ignores_renorm)
    assert titles
    assert wrong_cases(SOURCES["opinfo"], "nn.functional.embedding") == []


def test_a_module_whose_weight_gradient_is_wrong_alone() -> None:
    def of_linear(kernel, x, grad, weight, mask):
        first, second, third = kernel(x, grad, weight, mask)
        return first, second * 2 if list(mask) == [False, True, False] else second, third

    titles = found(SOURCES["module gradients"], "nn.Linear", "linear_backward", of_linear, variant="train")
    assert any(title.endswith(" alone") for title in titles)
