"""Predicts results that are off by a few ULP, which grow because a later step, such as a gradient, cancels digits."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .prediction import Model, Prediction, Ulp

# Within what Metal's mathematics promises.
ULPS_OF_A_FUNCTION = 4.0
_FUNCTIONS = ("erfinv", "sigmoid", "special_erfcx", "tan", "tanh")


def rounded(overload: str) -> Model:
    """The model of a function whose results are off by a few ULP."""

    def model(ulp: Ulp, input: Tensor, *args: Any, **kwargs: Any) -> Tensor | None:
        result = getattr(torch.ops.aten, overload)(input, *args, **kwargs)
        return ulp(result, ULPS_OF_A_FUNCTION) if result.is_floating_point() or result.is_complex() else None

    return model


def each_rounded(overload: str) -> Model:
    """As `rounded`, for each tensor of a list."""

    def model(ulp: Ulp, inputs: list[Tensor], *args: Any, **kwargs: Any) -> Any:
        return [rounded(overload)(ulp, tensor) for tensor in inputs]

    return model


ROUNDED_RESULTS = (
    Prediction(
        "rounded-before-digits-cancel",
        {f"aten::{name}": rounded(name) for name in _FUNCTIONS}
        | {f"aten::_foreach_{name}": each_rounded(name) for name in ("sigmoid", "tan", "tanh")},
    ),
)
