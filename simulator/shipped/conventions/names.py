"""The overloads of an operator, derived from one name: functional, in-place and out= are planned alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from ..plan import Planner

Value = TypeVar("Value")


def functional_inplace_out(name: str, variant: str = "") -> tuple[str, str, str]:
    """Of ("exp", "") exp, exp_ and exp.out; of ("add", "Tensor") add.Tensor, add_.Tensor and add.out."""
    dotted = f".{variant}" if variant else ""
    return f"{name}{dotted}", f"{name}_{dotted}", f"{name}.out"


def table(rows: Iterable[tuple[Iterable[str], Value]], make: Callable[[Value], Planner]) -> dict[str, Planner]:
    """A table of planners from rows (overloads, what they differ by); `make` is called once a row."""
    planners: dict[str, Planner] = {}
    for overloads, value in rows:
        planner = make(value)
        planners.update(dict.fromkeys(overloads, planner))
    return planners
