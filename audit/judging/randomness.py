"""Compares which random number generators a call draws from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from ..model.case import Case
from .compare import Difference
from .operator_name import operator_name

State = Callable[[], Tensor]

# Composites with a dropout inside; what draws is an operator that they call.
HAVE_DROPOUT = frozenset({"scaled_dot_product_attention", "lstm", "gru", "rnn_tanh", "rnn_relu"})


class Draws:
    """Detects draws from the default generator of a device and from the generators among the arguments.

    Args:
        state: reads the state of the device's default generator.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._before = state()

    def after(self, arguments: Iterable[Any]) -> tuple[bool, ...]:
        """Whether the call drew from the default generator, and from each generator among the arguments.

        The generators among the arguments are fresh copies made by `move`, so only the call can have drawn from them.
        """
        given = [leaf for leaf in arguments if isinstance(leaf, torch.Generator)]
        return not torch.equal(self._before, self._state()), *map(_has_advanced, given)


def compare_draws_from(case: Case, mine: tuple[bool, ...], cpus: tuple[bool, ...]) -> Difference | None:
    """Compare from which generators the device and the CPU drew: the default one, or a given one.

    A generator that does not advance gives the next call the same numbers; one that advances needlessly changes the
    numbers of a seeded program. A random operator may draw where the CPU needs no number (`rrelu` without negatives).
    """
    if mine == cpus or (not any(cpus) and not never_draws(operator_name(case))):
        return None
    for position, (drawn, cpu_drawn) in enumerate(zip(mine, cpus, strict=True)):
        if drawn is not cpu_drawn:
            which = "the generator that it was given" if position else "the default generator"
            did = "draws from" if drawn else "does not advance"
            return Difference(f"{did} {which}, unlike the CPU")
    return None


def draws(overload: OpOverload[..., Any]) -> bool:
    """Whether torch tags an overload as drawing random numbers from a seeded generator."""
    return torch.Tag.nondeterministic_seeded in overload.tags


def draws_in_any_overload(name: str) -> bool:
    """Whether an ATen operator has an overload that draws random numbers; False for a name that ATen does not have."""
    packet = getattr(torch.ops.aten, name, None) if name else None
    return packet is not None and any(draws(getattr(packet, overload)) for overload in packet.overloads())


def never_draws(name: str) -> bool:
    """Whether an ATen operator is known to draw no random numbers."""
    decidable = bool(name) and hasattr(torch.ops.aten, name) and name not in HAVE_DROPOUT
    return decidable and not draws_in_any_overload(name)


@contextmanager
def generators_as_before() -> Iterator[None]:
    """Restore the default generators of the CPU and of mps afterwards."""
    before = torch.default_generator.get_state()
    on_device = torch.mps.get_rng_state() if torch.backends.mps.is_available() else None
    try:
        yield
    finally:
        torch.default_generator.set_state(before)
        if on_device is not None:
            torch.mps.set_rng_state(on_device)


def _has_advanced(generator: torch.Generator) -> bool:
    fresh = torch.Generator(generator.device).manual_seed(generator.initial_seed())
    return not torch.equal(generator.get_state(), fresh.get_state())
