"""The registry of corruptions, and functions that change results and arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .call import FaultyCall, host, map_tensors, on_device

Corruption = Callable[..., Any]
CORRUPTIONS: dict[str, Corruption] = {}


def corruption(function: Corruption) -> Corruption:
    """Register a corruption under its word: the function's name."""
    CORRUPTIONS[function.__name__] = function
    return function


def map_argument(call: FaultyCall, name: str, change: Callable[[Tensor], Tensor]) -> dict[str, Any]:
    """One argument with its tensors changed."""
    return {name: map_tensors(change, call.arguments[name])}


def map_arguments(call: FaultyCall, change: Callable[[Tensor], Tensor]) -> dict[str, Any]:
    """All arguments with their tensors changed."""
    return {name: map_tensors(change, value) for name, value in call.arguments.items()}


def changed_results(call: FaultyCall, change: Callable[[Tensor], Any]) -> Any:
    """The right results, each changed in place."""
    returned = call.run()
    for result in call.results(returned):
        if result.numel():
            change(host(result))
    return returned


def replaced_result(call: FaultyCall, make: Callable[[Tensor], Tensor]) -> Any:
    """The results with the first tensor replaced by another."""
    returned = call.run()
    if isinstance(returned, Tensor):
        return on_device(make(returned))
    if isinstance(returned, (list, tuple)) and returned and isinstance(returned[0], Tensor):
        return type(returned)([on_device(make(returned[0])), *returned[1:]])
    return returned


def corrupt(result: Tensor) -> None:
    """Change every element: flip booleans and bytes, add 1 to numbers, or half of them if that is more."""
    if result.dtype is torch.bool:
        result.logical_not_()
    elif result.is_floating_point() or result.is_complex():
        result.copy_(torch.where(result.isfinite(), result + result.abs() / 2 + 1, torch.zeros_like(result)))
    else:
        result.add_(1)


def corrupt_last(result: Tensor) -> None:
    """Change the last element."""
    corrupt(result[tuple(slice(size - 1, size) for size in result.shape)])
