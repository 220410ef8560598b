"""The form of a proposed fault for an overload: a corruption with its conditions, chosen by a seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING

from ...simulator.device.faults.fault import Term, Value

if TYPE_CHECKING:
    from .schemas import Facts

Proposal = tuple[Term, tuple[Term, ...]]
# Returns None for an overload that cannot have such a fault.
Propose = Callable[["Facts", Random], "Proposal | None"]

FLOATS = ("float32", "float16", "bfloat16")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")


def term(name: str, *arguments: Value) -> Term:
    """A term of a fault's text."""
    return Term(name, arguments)


def read(facts: Facts) -> tuple[str, ...]:
    """The tensors whose values are read: inputs, and what an in-place call reads."""
    return (*facts.inputs, *(name for name in facts.written if not facts.random))


def any_name(names: Sequence[str], rng: Random) -> str | None:
    """A name at random, or None if there are none."""
    return rng.choice(list(names)) if names else None


def wrongly(name: str, rng: Random) -> Term:
    """A fault that ignores an argument's strides or offset, or gives any wrong values."""
    return rng.choice([term("reads_as_contiguous", name), term("values"), term("last_element")])


def wrong_values(name: str, rng: Random) -> Term:
    """Some wrong values."""
    return rng.choice([term("values"), term("last_element"), term("zeros")])
