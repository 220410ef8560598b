"""Faults of arguments, of the kinds that users found, in operators that no list names: each is seen in its cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from mpsmith.audit.cases.sources.arguments import ArgumentSource
from mpsmith.audit.cases.sources.schema import SchemaSource
from support.faulty_kernels import faulty_kernel
from support.judged_groups import found

SOURCE = ArgumentSource(SchemaSource())


def largest_is_lost(kernel: Any, x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    return kernel(x, k, dim, True, sorted)


def order_is_lost(kernel: Any, x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    return kernel(x, k, dim, largest, True)


def negative_dim_is_lost(kernel: Any, x: Any, dim: int, *rest: Any, **named: Any) -> Any:
    return kernel(x, max(dim, 0), *rest, **named)


def beta_multiplies_nan(kernel: Any, x: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return kernel(x, a, b, beta=1, alpha=alpha) * 1 + (beta - 1) * x


def out_of_range_returns(kernel: Any, x: Any, dim: int, index: Any) -> Any:
    return kernel(x, dim, index.clamp(0, x.shape[dim] - 1))


def a_reduction_is_lost(kernel: Any, x: Any, target: Any, reduction: int = 1, *rest: Any) -> Any:
    return kernel(x, target, 1 if reduction == 2 else reduction, *rest)


class CachedByText:
    """Keeps the number of the first call whose text has the same two digits."""

    def __init__(self) -> None:
        self._numbers: dict[str, float] = {}

    def __call__(self, kernel: Any, x: Any, a: Any, b: Any, *, value: Any = 1) -> Any:
        return kernel(x, a, b, value=self._numbers.setdefault(f"{value:.2g}", value))


class CachedByShape:
    """Keeps the flag of the first call with the same shapes."""

    def __init__(self) -> None:
        self._flags: dict[Any, bool] = {}

    def __call__(self, kernel: Any, x: Any, weights: Any, align: bool, *rest: Any) -> Any:
        return kernel(x, weights, self._flags.setdefault(x.shape, align), *rest)


FAULTS: dict[str, tuple[str, Callable[..., Any], str]] = {
    "a flag is lost": ("topk", largest_is_lost, "largest=False"),
    "the order is lost": ("topk", order_is_lost, "sorted=False"),
    "a negative dim is lost": ("cumprod", negative_dim_is_lost, "dim=-1"),
    "beta=0 multiplies NaN": ("baddbmm", beta_multiplies_nan, "beta=0, NaN in self"),
    "an index out of range returns": ("index_select", out_of_range_returns, "index[-1]=100000"),
    "an enumerated value is lost": ("mse_loss", a_reduction_is_lost, "reduction=2"),
    "a number is kept by its text": ("addcmul", CachedByText(), "numbers near each other: value"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_seen_in_the_case_that_is_about_it(fault: str) -> None:
    operator, faulty, title = FAULTS[fault]
    assert title in found(SOURCE, operator, operator, faulty)


def test_what_is_kept_by_shape_is_seen_by_calls_in_a_row() -> None:
    operator = "upsample_bilinear2d"
    titles = found(SOURCE, operator, operator, CachedByShape())
    assert any(title.startswith("in a row: ") for title in titles)


def test_the_device_is_whole_again_after_a_fault() -> None:
    x = torch.ones(3, device="mps")
    with faulty_kernel("exp", lambda kernel, given: kernel(given) + 1):
        assert x.exp()[0].item() > 3
    assert x.exp()[0].item() < 3
