"""Models of grid_sampler for coordinates that are NaN, infinite or huge, and for inputs that are not finite.

Coordinates are computed in float. As an index, a coordinate saturates, NaN becomes 0, and the neighbour of the largest
index wraps. Padding is applied to each neighbour separately; weights come from the coordinate without padding.
"""

from __future__ import annotations

import math
from itertools import product

import torch
from torch import Tensor

from .prediction import Prediction, Ulp

BILINEAR, NEAREST, BICUBIC = 0, 1, 2
ZEROS, BORDER, REFLECTION = 0, 1, 2
INT_LIMIT = 2**31


def grid_sampler(ulp: Ulp, input: Tensor, grid: Tensor, mode: int, padding: int, aligned: bool) -> Tensor | None:
    """The samples in 2 or 3 dimensions. For bicubic ones it predicts only zero for a NaN coordinate."""
    sizes = list(input.shape[:1:-1])
    if _has_no_reflection(sizes, padding, aligned):
        return None
    if mode == BICUBIC:
        sampled = torch.ops.aten.grid_sampler_2d(input, grid.nan_to_num(0.0), mode, padding, aligned)
        return torch.where(grid.isnan().any(-1).unsqueeze(1), 0.0, sampled)
    places = _places(grid, sizes, aligned)
    values = input.float().flatten(2)
    if mode == NEAREST:
        at = _as_int32(_padded(places, sizes, padding, aligned).round())
        return _values_at(values, at, sizes, _inside(at, sizes)).to(input.dtype)
    first, total = _as_int32(places.floor()), torch.zeros(())
    for corner in product((0, 1), repeat=len(sizes)):
        at = _wrapped_int32(first + torch.tensor(corner))
        inside = _inside(at, sizes) | (at == -INT_LIMIT) & (first == INT_LIMIT - 1)
        if padding != ZEROS:
            at, inside = _padded_index(at, sizes, padding, aligned), torch.ones_like(inside)
        weight = _shares(places - first.float(), corner).prod(-1)
        share = ulp(_values_at(values, at, sizes, inside) * weight[:, None])
        total = total + torch.where(inside.all(-1)[:, None], share, 0)
    return total.to(input.dtype)


def grid_gradients(
    ulp: Ulp, grad: Tensor, input: Tensor, grid: Tensor, mode: int, padding: int, aligned: bool, mask: list[bool]
) -> list[Tensor] | None:
    """The gradients of `grid_sampler` that the mask selects; neighbours outside of the input are ignored."""
    sizes = list(input.shape[:1:-1])
    if mode == BICUBIC or _has_no_reflection(sizes, padding, aligned):
        return None
    places = _places(grid, sizes, aligned)
    values, of_input, of_grid = (
        input.float().flatten(2),
        torch.zeros_like(input).float().flatten(2),
        torch.zeros(grid.shape),
    )
    if mode == NEAREST:
        at = _as_int32(_padded(places, sizes, padding, aligned).round())
        _add_at(of_input, at, sizes, grad.float())
        return _requested_gradients(of_input.view(input.shape).to(input.dtype), of_grid.to(grid.dtype), mask)
    places, factors = _padded_with_factors(places, sizes, padding, aligned)
    first = _as_int32(places.floor())
    for corner in product((0, 1), repeat=len(sizes)):
        at = _wrapped_int32(first + torch.tensor(corner))
        inside = _inside(at, sizes)
        shares = _shares(places - first.float(), corner)
        _add_at(of_input, at, sizes, grad.float() * shares.prod(-1)[:, None])
        products = _values_at(values, at, sizes, inside) * grad.float()
        for dim, far in enumerate(corner):
            others = torch.cat([shares[..., :dim], shares[..., dim + 1 :]], -1).prod(-1)
            share = (products * others[:, None]).sum(1) * (1 if far else -1)
            of_grid[..., dim] += torch.where(inside.all(-1), ulp(share), 0)
    return _requested_gradients(of_input.view(input.shape).to(input.dtype), (of_grid * factors).to(grid.dtype), mask)


def _requested_gradients(of_input: Tensor, of_grid: Tensor, mask: list[bool]) -> list[Tensor]:
    return [gradient for gradient, wanted in zip((of_input, of_grid), mask, strict=True) if wanted]


def _has_no_reflection(sizes: list[int], padding: int, aligned: bool) -> bool:
    return padding == REFLECTION and aligned and 1 in sizes


def _places(grid: Tensor, sizes: list[int], aligned: bool) -> Tensor:
    """The grid's coordinates as positions in the input, in elements; x is first in the last dimension."""
    above, size = grid.float() + 1, torch.tensor(sizes, dtype=torch.float32)
    if aligned:
        return above * 0.5 * (size - 1)
    return (above.double() * size - 1).float() * 0.5


def _as_int32(values: Tensor) -> Tensor:
    return values.double().nan_to_num(0.0).clamp(-INT_LIMIT, INT_LIMIT - 1).long()


def _wrapped_int32(index: Tensor) -> Tensor:
    return (index + INT_LIMIT) % (2 * INT_LIMIT) - INT_LIMIT


def _inside(at: Tensor, sizes: list[int]) -> Tensor:
    return (at >= 0) & (at < torch.tensor(sizes))


def _padded(places: Tensor, sizes: list[int], padding: int, aligned: bool) -> Tensor:
    """The positions after padding; NaN becomes 0 unless the padding is zeros."""
    if padding == ZEROS:
        return places
    if padding == REFLECTION:
        places = _reflected(places, sizes, aligned)[0]
    return places.nan_to_num(0.0).clamp(min=0).minimum(torch.tensor(sizes) - 1)


def _reflected(places: Tensor, sizes: list[int], aligned: bool) -> tuple[Tensor, Tensor]:
    """The reflected positions, and the signs of their derivatives."""
    low, span = (0.0, torch.tensor(sizes) - 1) if aligned else (-0.5, torch.tensor(sizes))
    size = (places - low).abs()
    rest = size.fmod(span.float())
    back = _as_int32((size / span).floor()) % 2 == 1
    return torch.where(back, span - rest, rest) + low, torch.where(back == (places < low), 1.0, -1.0)


def _padded_with_factors(places: Tensor, sizes: list[int], padding: int, aligned: bool) -> tuple[Tensor, Tensor]:
    """The positions after padding, with NaN unchanged, and their derivatives by the grid."""
    last = torch.tensor(sizes) - 1.0
    factors = ((last if aligned else last + 1) / 2).expand(places.shape)
    if padding == REFLECTION:
        places, signs = _reflected(places, sizes, aligned)
        factors = factors * signs
    if padding != ZEROS:
        factors = torch.where((places <= 0) | (places >= last), 0, factors)
        places = places.clamp(min=0).minimum(last)
    return places, factors


def _padded_index(at: Tensor, sizes: list[int], padding: int, aligned: bool) -> Tensor:
    last = torch.tensor(sizes) - 1
    if padding == BORDER:
        return at.clamp(min=0).minimum(last)
    span = last if aligned else last + 1
    rest = at % span
    back = (at - rest).abs() // span % 2 == 1
    return torch.where(back, last - rest, rest)


def _shares(far: Tensor, corner: tuple[int, ...]) -> Tensor:
    """The weight of a corner in each dimension."""
    return torch.where(torch.tensor(corner) == 1, far, 1 - far)


def _flat(at: Tensor, sizes: list[int], channels: int) -> Tensor:
    strides = torch.tensor([1, *sizes[:-1]]).cumprod(0)
    return (
        torch.where(_inside(at, sizes).all(-1), (at * strides).sum(-1), 0).flatten(1)[:, None].expand(-1, channels, -1)
    )


def _values_at(values: Tensor, at: Tensor, sizes: list[int], inside: Tensor) -> Tensor:
    """Each channel's values at these positions: zero unless `inside`, NaN where memory beyond the input is read."""
    taken = values.gather(2, _flat(at, sizes, values.shape[1])).view(at.shape[0], values.shape[1], *at.shape[1:-1])
    taken = torch.where(_inside(at, sizes).all(-1)[:, None], taken, math.nan)
    return torch.where(inside.all(-1)[:, None], taken, 0)


def _add_at(target: Tensor, at: Tensor, sizes: list[int], added: Tensor) -> None:
    added = torch.where(_inside(at, sizes).all(-1)[:, None], added, 0)
    target.scatter_add_(2, _flat(at, sizes, target.shape[1]), added.flatten(2))


GRID_SAMPLING = (
    Prediction(
        "grid-sampler-takes-nan-for-a-place",
        {"aten::grid_sampler_2d": grid_sampler, "aten::grid_sampler_3d": grid_sampler},
        nan_is_any_non_finite=True,
    ),
    Prediction(
        "grid-gradients-inside-alone",
        {"aten::grid_sampler_2d_backward": grid_gradients, "aten::grid_sampler_3d_backward": grid_gradients},
    ),
)
