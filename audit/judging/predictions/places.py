"""What kernels of releases make of places between elements: neighbours, weights and gradients of interpolation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor

from .prediction import Model, Prediction, Ulp

# By how many elements the neighbours are away that antialiased interpolation gives the weight zero at the same size.
OF_LINEAR, OF_CUBIC = (1,), (-1, 1, 2)


def upsample_linear1d(ulp: Ulp, input: Tensor, output_size: Sequence[int], *options: Any) -> Tensor | None:
    """At the same size the element and zero times the next one, the last one's own."""
    if output_size[0] != input.shape[-1]:
        return None
    return input + 0 * torch.cat([input[..., 1:], input[..., -1:]], -1)


def antialiased(overload: str, away: Sequence[int]) -> Model:
    """The model of an antialiased interpolation that multiplies neighbours by zero where a size stays the same."""

    def model(ulp: Ulp, input: Tensor, output_size: Sequence[int], *options: Any) -> Tensor:
        for dim, size in ((-2, output_size[0]), (-1, output_size[1])):
            if input.shape[dim] == size:
                input = sum((_neighbours(input, dim, step) for step in away), input)
        return getattr(torch.ops.aten, overload)(input, output_size, *options)  # type: ignore[no-any-return]

    return model


def _neighbours(input: Tensor, dim: int, step: int) -> Tensor:
    """Zero times the elements that are `step` away, where there are any."""
    places = torch.arange(input.shape[dim]) + step
    outside = ((places < 0) | (places >= input.shape[dim])).view(-1, *[1] * (-1 - dim))
    return torch.where(outside, 0, 0 * input.index_select(dim, places.clamp(0, input.shape[dim] - 1)))


def one_column(overload: str) -> Model:
    """The model of an antialiased interpolation into a width of one: each row by itself, as the CPU does for a row."""

    def model(ulp: Ulp, input: Tensor, output_size: Sequence[int], *options: Any) -> Tensor | None:
        if output_size[1] != 1:
            return None
        turned = [*options[:1], *options[:0:-1]]
        resized: Tensor = getattr(torch.ops.aten, overload)(input.mT.contiguous(), list(output_size[::-1]), *turned)
        return resized.mT

    return model


def grid_gradients(
    ulp: Ulp, grad: Tensor, input: Tensor, grid: Tensor, mode: int, padding: int, aligned: bool, mask: Any = None
) -> Any:
    """Neighbours outside of the input are left out; a place that is NaN is between the first and the second element."""
    if mode != 0 or padding != 0:
        return None
    sizes = [float(size) for size in input.shape[:1:-1]]
    factors = torch.tensor([size - 1 if aligned else size for size in sizes]) / 2
    places = grid.float() * factors + torch.tensor([(size - 1) / 2 for size in sizes])
    first = places.nan_to_num(0.0, 2.0**30, -(2.0**30)).clamp(-(2.0**30), 2.0**30).floor().long()
    rows = input.float().flatten(2)
    of_input, of_grid = torch.zeros_like(rows), torch.zeros(grid.shape)
    for corner in product((0, 1), repeat=len(sizes)):
        at = first + torch.tensor(corner)
        inside = ((at >= 0) & (at < torch.tensor(sizes).long())).all(-1)
        strides = torch.tensor(sizes).long().cumprod(0).roll(1)
        strides[0] = 1
        index = torch.where(inside, (at * strides).sum(-1), 0).flatten(1)[:, None].expand(-1, input.shape[1], -1)
        shares = torch.stack(
            [1 - (places - at)[..., d] if not c else 1 + (places - at)[..., d] for d, c in enumerate(corner)], -1
        )
        given = torch.where(inside[:, None], grad.float() * shares.prod(-1)[:, None], 0).flatten(2)
        of_input.scatter_add_(2, index, given)
        values = (rows.gather(2, index) * grad.float().flatten(2)).view(grad.shape)
        for dim, far in enumerate(corner):
            others = torch.cat([shares[..., :dim], shares[..., dim + 1 :]], -1).prod(-1)
            share = (values * others[:, None]).sum(1) * (1 if far else -1)
            of_grid[..., dim] += torch.where(inside, ulp(share), 0)
    return of_input.view(input.shape).to(input.dtype), (of_grid * factors).to(grid.dtype)


PLACES = (
    Prediction(
        "neighbours-of-weight-zero",
        {
            "aten::upsample_linear1d": upsample_linear1d,
            "aten::_upsample_bilinear2d_aa": antialiased("_upsample_bilinear2d_aa", OF_LINEAR),
            "aten::_upsample_bicubic2d_aa": antialiased("_upsample_bicubic2d_aa", OF_CUBIC),
        },
    ),
    Prediction(
        "antialiasing-into-one-column",
        {
            f"aten::{name}": one_column(name)
            for name in ("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa", "_upsample_lanczos2d_aa")
        },
    ),
    Prediction(
        "grid-gradients-inside-alone",
        {"aten::grid_sampler_2d_backward": grid_gradients, "aten::grid_sampler_3d_backward": grid_gradients},
    ),
)
