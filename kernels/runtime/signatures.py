"""Keeps what was checked and computed for a call by its signature: a program has few, the same in every step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch

_MOST_PLANS = 4096
_Plan = TypeVar("_Plan")
# Where `planned` takes too long for many tensors, a function builds a signature itself, with its plan function in it.
plans: dict[Any, Any] = {}


def planned(make: Callable[..., _Plan], tensors: Iterable[torch.Tensor | None], *numbers: Any) -> _Plan:
    """What `make(*tensors, *numbers)` returns, kept for the next call of the same signature.

    `make`: checks and plans by dtypes, shapes, strides and devices alone: calls at other offsets get its plan.
    `numbers`: hashable arguments other than tensors, of types that the operator's schema fixes: 1 == 1.0 == True.
    """
    signature = make, tuple([None if x is None else (x.dtype, x.shape, x.stride(), x.get_device()) for x in tensors])
    plan: _Plan | None = plans.get((signature, numbers))
    return keep((signature, numbers), make(*tensors, *numbers)) if plan is None else plan


def keep(signature: Any, plan: _Plan) -> _Plan:
    """Keep a plan, and return it."""
    if len(plans) >= _MOST_PLANS:
        plans.clear()
    plans[signature] = plan
    return plan
