"""Faults of overloads that draw, none of which an OpInfo need reach: each is seen in the cases about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from mpsmith.audit.cases.sources.schema import SchemaSource
from mpsmith.audit.cases.sources.schema_random import SchemaRandomSource
from support.judged_groups import found

SOURCE = SchemaRandomSource(SchemaSource())


def generator_is_lost(kernel: Any, *args: Any, generator: Any = None, **named: Any) -> Any:
    return kernel(*args, **named)


def rate_is_lost(kernel: Any, x: Any, lambd: float = 1.0, *, generator: Any = None) -> Any:
    return kernel(x, 1.0, generator=generator)


def keeps_what_is_to_be_dropped(kernel: Any, x: Any, p: float, train: Any) -> Any:
    return kernel(x, min(p, 0.999), train)


def zero_weights_are_drawn(
    kernel: Any, x: Any, samples: int, replacement: bool = False, *, generator: Any = None
) -> Any:
    return kernel(x + (x.sum() / 5000).to(x.dtype), samples, replacement, generator=generator)


def the_end_is_drawn(kernel: Any, x: Any, low: int, high: Any, *, generator: Any = None) -> Any:
    return kernel(x, low, None if high is None else high + 1, generator=generator)


def std_is_lost(kernel: Any, mean: Any, std: float = 1.0, *, generator: Any = None) -> Any:
    return kernel(mean, 1.0, generator=generator)


def one_number_is_fixed(kernel: Any, x: Any, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> Any:
    result = kernel(x, median, sigma, generator=generator)
    return result.fill_(median) if x.numel() == 1 else result


FAULTS: dict[str, tuple[str, Callable[..., Any], str]] = {
    "generator= is ignored": ("uniform_", generator_is_lost, "generator="),
    "a rate is lost": ("exponential_", rate_is_lost, "distribution: 4.0"),
    "p=1 keeps some": ("native_dropout", keeps_what_is_to_be_dropped, "certain: 1.0, True"),
    "a weight of zero is drawn": ("multinomial", zero_weights_are_drawn, "certain: (0, 0.5, 0, 1.5), 4, True"),
    "the end of a range is drawn": ("random_.from", the_end_is_drawn, "certain: 2, 6"),
    "a scale is lost": ("normal.Tensor_float", std_is_lost, "certain: 0"),
    "one number alone": ("cauchy_", one_number_is_fixed, "one at a time: -3.0, 0.5"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_seen_in_the_case_that_is_about_it(fault: str) -> None:
    operator, faulty, title = FAULTS[fault]
    assert title in found(SOURCE, operator, operator, faulty)


def test_a_gradient_with_another_mask_is_seen() -> None:
    def another_mask(kernel: Any, gradient: Any, mask: Any, scale: float) -> Any:
        return kernel(gradient, torch.roll(mask, 1), scale)

    assert found(SOURCE, "native_dropout", "native_dropout_backward", another_mask) == ["the gradient's mask"]
