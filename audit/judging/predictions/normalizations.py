"""Models of releases' kernels for variances, and for NaN in the softmax of attention.

A variance is the mean of squares minus the square of the mean, which cancels. The kernel of layer_norm treats a
variance below 1e-6 as zero, that of group_norm a negative one.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .prediction import Prediction, Ulp

ULPS_OF_A_SUM = 2.0
LEAST_OF_A_LAYER = 1e-6


def _moments(values: Tensor, dims: tuple[int, ...], ulp: Ulp) -> tuple[Tensor, Tensor]:
    """Mean and variance in float; the variance is the difference of two means.

    The order in which a threadgroup adds moves each sum by more than its last rounding.
    """
    mean = ulp(values.mean(dims, keepdim=True), ULPS_OF_A_SUM)
    squares = ulp((values * values).mean(dims, keepdim=True), ULPS_OF_A_SUM)
    return mean, squares - mean * mean


def _scaled(values: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    values = values if weight is None else values * weight
    return values if bias is None else values + bias


def layer_norm(ulp: Ulp, input: Tensor, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    """The layer norm with the variance of `_moments`, in float."""
    dims = tuple(range(input.dim() - len(shape), input.dim()))
    values = input.float()
    mean, variance = _moments(values, dims, ulp)
    root = (torch.where(variance < LEAST_OF_A_LAYER, 0.0, variance) + eps).rsqrt()
    ulp.earlier["rows without variance"] = variance < LEAST_OF_A_LAYER
    return _scaled((values - mean) * root, weight, bias).to(input.dtype), mean.to(input.dtype), root.to(input.dtype)


def layer_norm_backward(ulp: Ulp, grad: Tensor, input: Tensor, shape: Any, *rest: Any) -> Any:
    """The input's gradient in rows whose variance counts as zero, rounded beside the largest in its row."""
    result = torch.ops.aten.native_layer_norm_backward(grad, input, shape, *rest)[0]
    rows = ulp.earlier.get("rows without variance")
    if rows is None or result is None or not rows.any() or rows.dim() != result.dim():
        return None
    largest = result.abs().amax(tuple(range(input.dim() - len(shape), input.dim())), keepdim=True)
    return [torch.where(rows, result + (ulp(largest) - largest), result)]


def group_norm(
    ulp: Ulp, input: Tensor, weight: Any, bias: Any, batch: int, channels: int, rest: int, groups: int, eps: float
) -> Any:
    """The group norm with the variance of `_moments`, in float."""
    values = input.float().reshape(batch, groups, -1)
    mean, variance = _moments(values, (2,), ulp)
    root = (variance.clamp(min=0) + eps).rsqrt()
    shape = (1, channels, *[1] * (input.dim() - 2))
    scale, shift = (None if parameter is None else parameter.view(shape) for parameter in (weight, bias))
    normal = _scaled(((values - mean) * root).reshape(input.shape), scale, shift)
    return normal.to(input.dtype), mean.view(batch, groups).to(input.dtype), root.view(batch, groups).to(input.dtype)


def attention(ulp: Ulp, query: Tensor, key: Tensor, value: Tensor, *rest: Any, **keywords: Any) -> Any:
    """Zero for a query with NaN: all its scores are NaN, and the kernel's maximum ignores NaN."""
    lost = query.isnan().any(-1, keepdim=True)
    if not lost.any():
        return None
    result, *others = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(query, key, value, *rest, **keywords)
    return (torch.where(lost, 0.0, ulp(result)), *[None] * len(others))


NORMALIZATIONS = (
    Prediction("attention-loses-nan", {"aten::_scaled_dot_product_flash_attention_for_cpu": attention}),
    Prediction(
        "variance-cancels",
        {
            "aten::native_layer_norm": layer_norm,
            "aten::native_layer_norm_backward": layer_norm_backward,
            "aten::native_group_norm": group_norm,
        },
    ),
)
