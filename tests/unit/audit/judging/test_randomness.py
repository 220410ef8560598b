"""Which generators a call has drawn from, and what is said of it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from mpsmith.audit.judging.compare import Difference
from mpsmith.audit.judging.randomness import Draws, compare_draws_from, generators_as_before
from mpsmith.audit.model.case import Case


def draws_of(call: Any, *inputs: Any) -> tuple[bool, ...]:
    draws = Draws(torch.default_generator.get_state)
    call(*inputs)
    return draws.after(inputs)


def test_the_default_generator_and_each_that_is_given_are_watched() -> None:
    first, other = torch.Generator().manual_seed(1), torch.Generator().manual_seed(2)
    assert draws_of(torch.ones, 2) == (False,)
    assert draws_of(torch.rand, 2) == (True,)
    assert draws_of(lambda *_: None, first, other) == (False, False, False)
    assert draws_of(lambda *_: torch.rand(2, generator=other), first, other) == (False, False, True)


@pytest.mark.parametrize(
    ("mine", "cpus", "said"),
    [
        ((False,), (False,), None),
        ((True, True), (True, True), None),
        ((True,), (False,), "draws from the default generator, unlike the CPU"),
        ((False,), (True,), "does not advance the default generator, unlike the CPU"),
        ((False, True), (False, False), "draws from the generator that it was given, unlike the CPU"),
        ((False, False), (False, True), "does not advance the generator that it was given, unlike the CPU"),
        ((True, False), (False, True), "draws from the default generator, unlike the CPU"),
    ],
)
def test_a_device_draws_where_the_cpu_does(mine: Any, cpus: Any, said: str | None) -> None:
    expected = None if said is None else Difference(said)
    assert compare_draws_from(Case(torch.neg), mine, cpus) == expected


@pytest.mark.parametrize("call", [torch.rrelu, torch.bernoulli, torch.Tensor.uniform_, torch.vmap, lambda: 0])
def test_an_operator_that_draws_by_nature_may_draw_where_the_cpu_needs_no_number(call: Any) -> None:
    assert compare_draws_from(Case(call), (True,), (False,)) is None
    assert compare_draws_from(Case(call), (False,), (True,)) is not None
    assert compare_draws_from(Case(call), (True, False), (False, True)) is not None


def test_generators_are_left_as_they_were() -> None:
    before = torch.default_generator.get_state()
    with generators_as_before():
        torch.manual_seed(1)
        torch.rand(3)
    assert torch.equal(before, torch.default_generator.get_state())
