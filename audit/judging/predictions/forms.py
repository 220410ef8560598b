"""Results of a release's host code whose shape or dtype is not the CPU's."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .prediction import ContiguousWrite, Model, Prediction, ReplacedResult, Ulp

aten = torch.ops.aten


def _of_no_complex_numbers(overload: str) -> Model:
    """The variance of an empty complex tensor has the complex dtype."""

    def model(ulp: Ulp, input: Tensor, *args: Any, **named: Any) -> Any:
        if not input.is_complex() or input.numel():
            return None
        result = getattr(aten, overload)(input, *args, **named)
        variance = ReplacedResult((result[0] if isinstance(result, tuple) else result).to(input.dtype))
        return (variance, None) if isinstance(result, tuple) else variance

    return model


def dropout_backward(ulp: Ulp, grad_output: Tensor, mask: Tensor, scale: float) -> Tensor | ReplacedResult | None:
    """The mask is read with the shape of the gradient; what follows a smaller mask in memory is unknown."""
    if mask.dtype is not torch.bool or mask.shape == grad_output.shape:
        return None
    size = grad_output.numel()
    behind = mask.new_full((max(size - mask.numel(), 0),), bool(ulp.run))
    kept = torch.cat([mask.flatten()[:size], behind]).view(grad_output.shape)
    result = torch.where(kept, grad_output * scale, 0)
    is_expanded = (result * mask).shape != result.shape
    return ReplacedResult(result) if is_expanded else result


def weight_norm(ulp: Ulp, input: Tensor, magnitude: Tensor, dim: int = 0) -> tuple[Tensor, None] | None:
    """A magnitude for each element counts for that element; the CPU reads as many as there are norms."""
    if magnitude.shape != input.shape or magnitude.numel() == input.shape[dim]:
        return None
    return ulp(input * ulp(magnitude / ulp(torch.norm_except_dim(input, 2, dim)))), None


def unique_dim(
    ulp: Ulp, input: Tensor, dim: int, sort: bool = True, inverse: bool = False, counts: bool = False
) -> tuple[ReplacedResult, ...] | None:
    """Rows with NaN come last, each by itself; the other rows are sorted. Outputs that were not requested are empty.

    On the CPU, comparisons with NaN leave the rows in no defined order, so that equal rows may not be merged.
    """
    if not input.is_floating_point() or not input.isnan().any():
        return None
    rows = input.movedim(dim, 0)
    flat = rows.reshape(len(rows), -1)
    order = torch.arange(len(flat))
    for column in reversed(range(flat.shape[1])):
        order = order[flat[order, column].argsort(stable=True)]
    ordered = flat[order]
    begins = torch.cat([order.new_ones(1), (ordered[1:] != ordered[:-1]).any(1)]).bool()
    places = begins.cumsum(0) - 1
    unique = ordered[begins].view(-1, *rows.shape[1:]).movedim(0, dim)
    empty = places.new_empty(0)
    back = torch.empty_like(places).scatter(0, order, places) if inverse else empty
    return ReplacedResult(unique), ReplacedResult(back), ReplacedResult(places.bincount() if counts else empty)


def max_pool_in_rows(
    ulp: Ulp, *args: Any, out: Tensor | None = None, indices: Tensor | None = None
) -> tuple[ContiguousWrite, Any] | None:
    """Maxima are written into the memory of `out` in rows; indices are, if it is in channels last, else not at all."""
    maxima, places = aten.max_pool2d_with_indices(*args)
    if out is None or indices is None or out.shape != maxima.shape or indices.shape != maxima.shape:
        return None
    is_last = out.dim() == 4 and out.is_contiguous(memory_format=torch.channels_last)
    return ContiguousWrite(maxima, out), ContiguousWrite(places, indices) if is_last else indices


FORMS = (
    Prediction("maxima-in-rows", {"aten::max_pool2d_with_indices": max_pool_in_rows}),
    Prediction("magnitudes-of-elements", {"aten::_weight_norm_interface": weight_norm}),
    Prediction("rows-with-nan-last", {"aten::unique_dim": unique_dim}),
    Prediction(
        "variances-stay-complex",
        {f"aten::{name}": _of_no_complex_numbers(name) for name in ("var", "std", "var_mean", "std_mean")},
    ),
    Prediction("masks-of-the-gradients-shape", {"aten::native_dropout_backward": dropout_backward}, alternatives=2),
)
