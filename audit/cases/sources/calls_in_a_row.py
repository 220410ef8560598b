"""Several calls of one operator in a row on the same tensors, as one case: every result counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ...model.nested import map_leaves
from ..calls.binding import Binding
from .forms import copied

Call = Callable[..., Any]
Inputs = tuple[tuple[Any, ...], dict[str, Any]]
# From the inputs of the case to those of one of its calls.
Step = Callable[[tuple[Any, ...], dict[str, Any]], Inputs]


class ConsecutiveCalls:
    """Calls an operator once for each step, on copies of the tensors where it writes into them.

    Args:
        operator: what is called.
        steps: what each call gets, made from what the first one gets.
        copies: whether each call gets its own tensors.
    """

    __name__ = "in a row"

    def __init__(self, operator: Call, steps: Sequence[Step], *, copies: bool) -> None:
        self._operator = operator
        self._steps = steps
        self._copies = copies

    def __call__(self, *args: Any, **kwargs: Any) -> list[Any]:
        """The results in the order of the calls."""
        results = []
        for step in self._steps:
            step_args, step_kwargs = step(args, kwargs)
            if self._copies:
                step_args, step_kwargs = copied(step_args), copied(step_kwargs)
            results.append(self._operator(*step_args, **step_kwargs))
        return results


def unchanged(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Inputs:
    """The call as it is."""
    return args, kwargs


def with_others(name: str, others: Mapping[str, Any]) -> Step:
    """The call with other plain values for some arguments of the overload `name`."""

    def step(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Inputs:
        return Binding(name, args, kwargs).with_others(others)

    return step


def in_dtype(before: torch.dtype, after: torch.dtype) -> Step:
    """The call with its tensors of one dtype in another: the same shapes and numbers."""

    def change(leaf: Any) -> Any:
        return leaf.to(after) if isinstance(leaf, Tensor) and leaf.dtype is before else leaf

    return lambda args, kwargs: (map_leaves(change, args), map_leaves(change, kwargs))


def scaled(step: Step, factor: float) -> Step:
    """The step with all floating tensors multiplied by a number."""

    def change(leaf: Any) -> Any:
        is_scaled = isinstance(leaf, Tensor) and (leaf.is_floating_point() or leaf.is_complex())
        return leaf * factor if is_scaled else leaf

    def scaled_step(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Inputs:
        return step(map_leaves(change, args), map_leaves(change, kwargs))

    return step if factor == 1 else scaled_step
