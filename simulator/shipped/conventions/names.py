"""The names of an operator's functional, in-place and out= overloads, which have the same planner."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from ..plan import Planner

Value = TypeVar("Value")


def functional_inplace_out(name: str, variant: str = "") -> tuple[str, str, str]:
    """For ("exp", "") exp, exp_ and exp.out; for ("add", "Tensor") add.Tensor, add_.Tensor and add.out."""
    dotted = f".{variant}" if variant else ""
    return f"{name}{dotted}", f"{name}_{dotted}", f"{name}.out"


def table(rows: Iterable[tuple[Iterable[str], Value]], make: Callable[[Value], Planner]) -> dict[str, Planner]:
    """A table of planners from rows of overloads and a value; `make` makes one planner from each value."""
    planners: dict[str, Planner] = {}
    for overloads, value in rows:
        planner = make(value)
        planners.update(dict.fromkeys(overloads, planner))
    return planners
