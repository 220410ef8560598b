"""Calls whose CPU kernel ignores strides and reads memory as contiguous; the device uses the strides."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...model.nested import map_leaves
from .prediction import Model, Prediction, Ulp

_OVERLOADS = (
    *("_fused_adagrad", "adaptive_max_pool3d", "adaptive_max_pool3d_backward", "fractional_max_pool2d"),
    *("fractional_max_pool2d_backward", "fractional_max_pool3d", "fractional_max_pool3d_backward", "narrow_copy"),
)


def of_contiguous_tensors(overload: str) -> Model:
    """The model of a call whose result is the CPU's for contiguous copies of the tensors."""

    def model(ulp: Ulp, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = map_leaves(_contiguous, (args, kwargs))
        return getattr(torch.ops.aten, overload)(*args, **kwargs)

    return model


def _contiguous(leaf: Any) -> Any:
    return leaf.contiguous() if isinstance(leaf, Tensor) else leaf


MEMORY_ORDER = (
    Prediction(
        "cpu-takes-memory-for-rows", {f"aten::{overload}": of_contiguous_tensors(overload) for overload in _OVERLOADS}
    ),
)
