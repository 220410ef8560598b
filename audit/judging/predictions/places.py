"""Models of releases' kernels for interpolation: neighbours, weights and gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .prediction import Model, Prediction, Ulp

# By how many elements the neighbours are away that antialiased interpolation gives the weight zero at the same size.
OF_LINEAR, OF_CUBIC = (1,), (-1, 1, 2)
# A weight below it is zero but for rounding.
LEAST_WEIGHT = 1e-6
# What a weight is off by, one less a distance from a centre that is itself rounded.
ULPS_OF_A_WEIGHT = 4.0


def upsample_linear(ulp: Ulp, input: Tensor, output_size: Sequence[int], *options: Any) -> Tensor | None:
    """At the same size, each element plus zero times the next ones; for the last one, zero times itself."""
    if tuple(output_size) != input.shape[2:]:
        return None
    for dim, size in enumerate(output_size, start=2):
        following = torch.arange(1, size + 1).clamp(max=size - 1)
        input = input + 0 * input.index_select(dim, following)
    return input


def antialiased(overload: str, away: Sequence[int]) -> Model:
    """The model of an antialiased interpolation that adds zero times the neighbours if a size stays the same."""

    def model(ulp: Ulp, input: Tensor, output_size: Sequence[int], *options: Any) -> Tensor:
        for dim, size in ((-2, output_size[0]), (-1, output_size[1])):
            if input.shape[dim] == size:
                input = sum((_neighbours(input, dim, step) for step in away), input)
        return getattr(torch.ops.aten, overload)(input, output_size, *options)  # type: ignore[no-any-return]

    return model


def _neighbours(input: Tensor, dim: int, step: int) -> Tensor:
    """Zero times the element `step` away, or zero outside of the input."""
    places = torch.arange(input.shape[dim]) + step
    outside = ((places < 0) | (places >= input.shape[dim])).view(-1, *[1] * (-1 - dim))
    return torch.where(outside, 0, 0 * input.index_select(dim, places.clamp(0, input.shape[dim] - 1)))


def bytes_bilinear(ulp: Ulp, input: Tensor, output_size: Sequence[int], aligned: bool, *scales: Any) -> Tensor | None:
    """The exact number rounded down or up."""
    if input.dtype is not torch.uint8:
        return None
    exact: Tensor = torch.ops.aten.upsample_bilinear2d(input.double(), output_size, aligned, *scales)
    return (exact.floor() if ulp.run == 0 else exact.ceil()).to(torch.uint8)


def one_column(overload: str) -> Model:
    """The model of an antialiased interpolation to width one, computed as the CPU does for height one."""

    def model(ulp: Ulp, input: Tensor, output_size: Sequence[int], *options: Any) -> Tensor | None:
        if output_size[1] != 1:
            return None
        turned = [*options[:1], *options[:0:-1]]
        rows = ulp(input.mT.contiguous()) if input.is_floating_point() else input.mT.contiguous()
        resized: Tensor = getattr(torch.ops.aten, overload)(rows, list(output_size[::-1]), *turned)
        return resized.mT

    return model


def upsample_bilinear2d_aa(ulp: Ulp, input: Tensor, size: Sequence[int], aligned: bool, *scales: Any) -> Tensor | None:
    """Elements at the edge of a window, whose weight is zero, are outside of it: windows end where floats round to."""
    if aligned is not True or min(size) < 2 or not input.is_floating_point():
        return None
    result = input.float()
    for dim in (-2, -1):
        weights = ulp(_linear_weights(input.shape[dim], size[dim]), ULPS_OF_A_WEIGHT)[..., None]
        rows = weights * result.transpose(dim, -2).unsqueeze(-3)
        result = torch.where(weights > 0, rows, 0).sum(-2).transpose(dim, -2)
    return ulp(result.to(input.dtype))


def _linear_weights(size: int, resized: int) -> Tensor:
    """A row of weights for each place of an antialiased bilinear interpolation with aligned corners."""
    scale = (size - 1) / (resized - 1)
    centres = scale * (torch.arange(resized, dtype=torch.float64) + 0.5)
    away = torch.arange(size) + 0.5 - centres[:, None]
    weights = (1 - away.abs() / max(scale, 1)).clamp(min=0)
    weights = torch.where(weights < LEAST_WEIGHT, 0, weights)
    return (weights / weights.sum(1, keepdim=True)).float()


def upsample_linear_past_the_next(
    ulp: Ulp, input: Tensor, output_size: Sequence[int] | None, aligned: bool, *scales: Any
) -> Tensor | None:
    """The second of two neighbours is at place + 1, a sum that float32 may round up to the one after the next."""
    if output_size is None or not input.is_floating_point():
        return None
    factors = (*(scales[0] if scales and isinstance(scales[0], Sequence) else scales), *[None] * len(output_size))
    result = input.float()
    for dim, wanted in reversed(list(enumerate(output_size, start=2))):
        size = input.shape[dim]
        places = _places(size, wanted, aligned, factors[dim - 2])
        weights = (places - places.floor()).view(-1, *[1] * (input.dim() - dim - 1))
        first, second = (at.long().clamp(max=size - 1) for at in (places, places + 1))
        result = weights * result.index_select(dim, second) + (1 - weights) * result.index_select(dim, first)
    return ulp(result.to(input.dtype))


def _places(size: int, wanted: int, aligned: bool, scale: float | None) -> Tensor:
    """The place in the input of each place of a linear interpolation, in float32."""
    steps = torch.arange(wanted, dtype=torch.float32)
    if aligned:
        return steps * (torch.tensor(size - 1.0) / max(wanted - 1, 1))
    step = torch.tensor(1 / scale if scale else size / wanted, dtype=torch.float32)
    return (step * (steps + 0.5) - 0.5).clamp(min=0)


def nearest_by_division(ulp: Ulp, input: Tensor, output_size: Sequence[int] | None, scale: Any = None) -> Any:
    """Places divided by the scale in float32; the CPU multiplies them by its reciprocal."""
    if output_size is None or not isinstance(scale, float) or scale <= 0:
        return None
    places = torch.arange(output_size[0], dtype=torch.float32) / torch.tensor(scale, dtype=torch.float32)
    return input.index_select(2, places.floor().long().clamp(max=input.shape[2] - 1))


PLACES = (
    Prediction("edges-without-weight", {"aten::_upsample_bilinear2d_aa": upsample_bilinear2d_aa}),
    Prediction(
        "neighbours-of-weight-zero",
        {
            **{f"aten::{name}": upsample_linear for name in ("upsample_linear1d", "upsample_bilinear2d")},
            "aten::_upsample_bilinear2d_aa": antialiased("_upsample_bilinear2d_aa", OF_LINEAR),
            "aten::_upsample_bicubic2d_aa": antialiased("_upsample_bicubic2d_aa", OF_CUBIC),
        },
    ),
    Prediction(
        "neighbours-past-the-next",
        {f"aten::upsample_{name}": upsample_linear_past_the_next for name in ("linear1d", "bilinear2d", "trilinear3d")},
    ),
    Prediction("places-by-a-division", {"aten::upsample_nearest1d": nearest_by_division}),
    Prediction("bytes-between-two-roundings", {"aten::upsample_bilinear2d": bytes_bilinear}, alternatives=2),
    Prediction(
        "antialiasing-into-one-column",
        {
            f"aten::{name}": one_column(name)
            for name in ("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa", "_upsample_lanczos2d_aa")
        },
    ),
)
