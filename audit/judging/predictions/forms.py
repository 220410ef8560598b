"""Results of a release's host code whose shape or dtype is not the CPU's."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .prediction import Instead, Model, Prediction, Ulp

aten = torch.ops.aten


def _of_no_complex_numbers(overload: str) -> Model:
    """The variance of no elements has their complex dtype."""

    def model(ulp: Ulp, input: Tensor, *args: Any, **named: Any) -> Any:
        if not input.is_complex() or input.numel():
            return None
        result = getattr(aten, overload)(input, *args, **named)
        variance = Instead((result[0] if isinstance(result, tuple) else result).to(input.dtype))
        return (variance, None) if isinstance(result, tuple) else variance

    return model


def dropout_backward(ulp: Ulp, grad_output: Tensor, mask: Tensor, scale: float) -> Tensor | Instead | None:
    """The mask is read in the shape of the gradient, which the result has; what is behind a smaller one is unknown."""
    if mask.dtype is not torch.bool or mask.shape == grad_output.shape:
        return None
    size = grad_output.numel()
    behind = mask.new_full((max(size - mask.numel(), 0),), bool(ulp.run))
    kept = torch.cat([mask.flatten()[:size], behind]).view(grad_output.shape)
    result = torch.where(kept, grad_output * scale, 0)
    is_expanded = (result * mask).shape != result.shape
    return Instead(result) if is_expanded else result


FORMS = (
    Prediction(
        "variances-stay-complex",
        {f"aten::{name}": _of_no_complex_numbers(name) for name in ("var", "std", "var_mean", "std_mean")},
    ),
    Prediction("masks-of-the-gradients-shape", {"aten::native_dropout_backward": dropout_backward}, alternatives=2),
)
