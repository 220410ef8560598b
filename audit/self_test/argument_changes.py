"""Changes tensors among the arguments of a call; the arguments to change are given by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..model.nested import map_leaves

Arguments = dict[str, Any]


def changed_tensor(arguments: Arguments, name: str, change: Callable[[Tensor], Tensor | None]) -> bool:
    """Change the tensor, or the first fitting one of a list; `change` returns None if it cannot."""
    value = arguments.get(name)
    if isinstance(value, Tensor):
        made = change(value) if value.layout is torch.strided else None
        arguments[name] = value if made is None else made
        return made is not None
    if isinstance(value, (list, tuple)):
        for position, item in enumerate(value):
            made = change(item) if isinstance(item, Tensor) and item.layout is torch.strided else None
            if made is not None:
                arguments[name] = [*value[:position], made, *value[position + 1 :]]
                return True
    return False


def changed_together(arguments: Arguments, name: str, change: Callable[[Tensor], Tensor | None]) -> bool:
    """Change a tensor and all others of the same shape, so that their sizes still agree."""
    first = next((t for t in tensors_in(arguments.get(name))), None)
    if first is None:
        return False
    shape = first.shape
    failed = False

    def of_that_shape(leaf: Any) -> Any:
        nonlocal failed
        if not isinstance(leaf, Tensor) or leaf.shape != shape or leaf.layout is not torch.strided:
            return leaf
        made = change(leaf)
        failed |= made is None
        return leaf if made is None else made

    for argument in list(arguments):
        arguments[argument] = map_leaves(of_that_shape, arguments[argument])
    return not failed


def tensors_in(value: Any) -> list[Tensor]:
    """The strided tensors of an argument, including those in lists."""
    if isinstance(value, Tensor):
        return [value] if value.layout is torch.strided else []
    return [t for item in value for t in tensors_in(item)] if isinstance(value, (list, tuple)) else []


def is_integer(tensor: Tensor) -> bool:
    """Whether the dtype is an integer one; bool is not."""
    return not tensor.is_floating_point() and not tensor.is_complex() and tensor.dtype is not torch.bool
