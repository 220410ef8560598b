"""The tensors of a case by position, the case with some of them changed, and the CPU's result of a case.

A tensor's position counts all tensors among the arguments from left to right; one that is given twice counts twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import torch
from torch import Tensor

from ...judging.transfer import move
from ...model.case import Case
from ...model.nested import leaves, map_leaves
from ..calls.invocation import SchemaCall

# From a tensor and its position to the tensor in its place; the tensor itself if it stays.
TensorChange = Callable[[Tensor, int], Tensor]


def tensors_in(tree: Any) -> list[Tensor]:
    """The tensors in nested arguments, from left to right."""
    return [leaf for leaf in leaves(tree) if isinstance(leaf, Tensor)]


def tensors_of(case: Case) -> list[Tensor]:
    """The tensors among the arguments, by position."""
    return tensors_in((case.args, case.kwargs))


def strided_positions(case: Case) -> list[int]:
    """The positions of the strided tensors, which excludes sparse ones."""
    return [position for position, tensor in enumerate(tensors_of(case)) if tensor.layout is torch.strided]


def written_positions(case: Case) -> list[int]:
    """Which of a call's tensors its schema says are written."""
    written = list(leaves(case.call.written(case.args, case.kwargs))) if isinstance(case.call, SchemaCall) else []
    return [i for i, tensor in enumerate(tensors_of(case)) if any(tensor is target for target in written)]


def map_tensors(case: Case, change: TensorChange) -> Case:
    """The case with each tensor changed."""
    position = count()

    def changed(leaf: object) -> object:
        return change(leaf, next(position)) if isinstance(leaf, Tensor) else leaf

    args, kwargs = map_leaves(changed, (case.args, case.kwargs))
    return replace(case, args=args, kwargs=kwargs)


def with_tensors(case: Case, others: Mapping[int, Tensor], title: str) -> Case:
    """The case with other tensors at some positions."""
    return replace(map_tensors(case, lambda tensor, position: others.get(position, tensor)), title=title)


def with_one(case: Case, position: int, change: Callable[[Tensor], Tensor | None], title: str) -> Case | None:
    """The case with one tensor changed, or None if `change` gives None.

    The changed tensor requires a gradient if the original does and its dtype has one.
    """
    tensor = tensors_of(case)[position]
    other = change(tensor.detach())
    if other is None:
        return None
    differentiable = tensor.requires_grad and (other.is_floating_point() or other.is_complex())
    return with_tensors(case, {position: other.requires_grad_(differentiable)}, title)


def comparing_errors(case: Case) -> Case:
    """The case, marked: if the CPU refuses its inputs, the device must refuse them too."""
    return replace(case, errors_count=True)


# ---- on the CPU


def call_on_cpu(case: Case) -> Any:
    """The result of the call on copies of its inputs. Raises what the operator raises."""
    args, kwargs = move(case.args, case.kwargs, "cpu")
    return case.call(*args, **kwargs)


def accepts(case: Case) -> bool:
    """Whether the CPU accepts the call."""
    try:
        call_on_cpu(case)
    except Exception:
        return False
    return True


def tensors_on_cpu(case: Case) -> list[Tensor] | None:
    """The tensors in the result without gradients, or None if the CPU refuses the call."""
    try:
        with torch.no_grad():
            return tensors_in(call_on_cpu(case))
    except Exception:  # whatever the CPU raises
        return None


def result_elements_on_meta(case: Case) -> int:
    """The elements of the largest result, by a call on the meta device; 0 if the operator refuses that."""
    try:
        with torch.no_grad():
            args, kwargs = move(case.args, case.kwargs, "meta")
            return max((tensor.numel() for tensor in tensors_in(case.call(*args, **kwargs))), default=0)
    except Exception:  # it has no kernel there, or looks at values
        return 0
