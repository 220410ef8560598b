"""Operators that the host computes by calling others: plans the inner call with that operator's own convention."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..call import Call
from ..plan import Declined, ReleaseKernels, Step


def inner(kernels: ReleaseKernels, overload: str, result: Tensor, **arguments: Any) -> list[Step]:
    """The steps of a call inside another; omitted arguments get their defaults.

    Raises:
        Declined: the overload has no convention, or its planner declines.
    """
    from . import PLANNERS  # the table is made of the modules that ask for this

    planner = PLANNERS.get(overload)
    if planner is None:
        raise Declined(f"it is built from {overload}, which no convention plans")
    name, _, variant = overload.partition(".")
    schema = getattr(getattr(torch.ops.aten, name), variant or "default")._schema
    defaults = {argument.name: argument.default_value for argument in schema.arguments}
    return list(planner(Call(overload, {**defaults, **arguments}, (result,)), kernels))
