"""Indices out of range, for the operators whose CPU kernels look: there the device must refuse them too.

Which do is in `audit.model.out_of_range`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from ...model.out_of_range import argument_with_indices

# Far beyond any size and far below; just below zero, which some operators count from the end.
OUT_OF_RANGE = (100_000, -100_000, -1)


def out_of_range(operator: str, arguments: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The call with one index replaced: a title and the argument that is another.

    Args:
        operator: the overload without its namespace, "index_select.out".
        arguments: the call's arguments by name.
    """
    name = argument_with_indices(operator)
    if name is None or name not in arguments:
        return
    for number in OUT_OF_RANGE:
        changed = _with_last(arguments[name], number)
        if changed is not None:
            yield f"{name}[-1]={number}", {name: changed}


def _with_last(value: Any, number: int) -> Any:
    """The index tensor, or the list with the first one of its index tensors, with `number` as its last element."""
    if isinstance(value, list):
        for place, item in enumerate(value):
            changed = _with_last(item, number)
            if changed is not None:
                return [*value[:place], changed, *value[place + 1 :]]
        return None
    if not isinstance(value, Tensor) or value.dtype not in (torch.int64, torch.int32) or not value.numel():
        return None
    flat = value.detach().clone().contiguous().flatten()
    flat[-1] = number
    return flat.view(value.shape)
