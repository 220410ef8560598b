"""Models of how a release's host code and kernels compute embedding_bag and its gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..arguments import storage_of
from .prediction import Prediction, ReplacedResult, Ulp

_SUM, _MEAN, _MAX = 0, 1, 2
# scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx
_DEFAULTS = (False, _SUM, False, None, False, -1)


def bag_sizes(ulp: Ulp, weight: Tensor, indices: Tensor, offsets: Tensor, *rest: Any) -> tuple[Any, ...] | None:
    """Bags and their numbers of indices, also if no gradient needs them; the maxima only with mode="max"."""
    given = [*rest, *_DEFAULTS[len(rest) :]]
    mode, includes_last, padding = given[1], given[4], given[5]
    if includes_last or not offsets.numel():
        return None
    ends = torch.cat([offsets[1:], offsets.new_tensor([indices.numel()])])
    bags = zip(offsets.tolist(), ends.tolist(), strict=True)
    sizes = torch.tensor([int((indices[first:end] != padding).sum()) for first, end in bags], dtype=indices.dtype)
    numbers = ReplacedResult(_bags(indices, offsets)) if mode == _SUM else None
    return None, numbers, sizes, None if mode == _MAX else ReplacedResult(indices.new_empty(0))


def bags_in_rows(ulp: Ulp, weight: Tensor, indices: Tensor, offsets: Tensor, *rest: Any) -> tuple[Any, ...] | None:
    """Indices and offsets are read as if they were contiguous."""
    if indices.is_contiguous() and offsets.is_contiguous():
        return None
    rows = [_read_as_contiguous(tensor) for tensor in (indices, offsets)]
    sizes = bag_sizes(ulp, weight, *rows, *rest)
    try:
        output, bags, _, maxima = torch.ops.aten._embedding_bag(weight, *rows, *rest)
    except RuntimeError:  # what is between the elements is not a valid index or offset
        return None
    if sizes is None:
        return None
    read = _bags(*rows)
    return ulp(output), read if bags.numel() else ReplacedResult(read), sizes[2], sizes[3] or maxima


def _read_as_contiguous(numbers: Tensor) -> Tensor:
    """The elements that follow the first one in the storage, with zeros after its end."""
    stored = storage_of(numbers)[numbers.storage_offset() :][: numbers.numel()]
    return torch.cat([stored, stored.new_zeros(numbers.numel() - stored.numel())])


def gradient(
    ulp: Ulp, grad: Tensor, indices: Tensor, bags: Tensor, sizes: Tensor, maxima: Tensor, rows: int, *rest: Any
) -> Tensor | None:
    """A bag whose given size is zero gets no gradient, and scale_grad_by_freq is ignored."""
    _, mode, weights, padding = (*rest, -1)[:4]
    if mode == _MAX or bags.shape != indices.shape:
        return None
    counts = sizes[bags]
    counted = (counts != 0) & (indices != padding)
    rows_of_grad = grad[bags]
    if mode == _MEAN:
        rows_of_grad = rows_of_grad / counts.unsqueeze(-1)
    elif weights is not None:
        rows_of_grad = rows_of_grad * weights.unsqueeze(-1)
    return grad.new_zeros(rows, grad.shape[1]).index_add(0, indices[counted], rows_of_grad[counted])


def gradient_by_offsets(
    ulp: Ulp, grad: Tensor, indices: Tensor, offsets: Tensor, bags: Tensor, sizes: Tensor, *rest: Any
) -> Tensor | None:
    """As `gradient`; if no bag indices are given, they are computed from the offsets."""
    maxima, rows, scale, mode, sparse, *others = rest
    bags = bags if bags.numel() else _bags(indices, offsets)
    return None if sparse else gradient(ulp, grad, indices, bags, sizes, maxima, rows, scale, mode, *others)


def _bags(indices: Tensor, offsets: Tensor) -> Tensor:
    return (offsets.unsqueeze(-1) <= torch.arange(indices.numel())).sum(0) - 1


def gradient_of_weights(
    ulp: Ulp, grad: Tensor, weight: Tensor, indices: Tensor, offsets: Tensor, *rest: Any
) -> Tensor | None:
    """The kernel reads bag indices in the dtype of the indices; the forward wrote them in that of the offsets."""
    if indices.dtype is not torch.int32 or offsets.dtype is not torch.int64:
        return None
    return ulp(grad[_bags(indices, offsets).view(torch.int32)[: indices.numel()]] * weight[indices]).sum(-1)


EMBEDDING_BAGS = (
    Prediction(
        "bag-sizes-always-returned", {f"aten::_embedding_bag{suffix}": bag_sizes for suffix in ("", "_forward_only")}
    ),
    Prediction("bags-in-rows", {f"aten::_embedding_bag{suffix}": bags_in_rows for suffix in ("", "_forward_only")}),
    Prediction(
        "no-gradient-for-bags-of-size-zero",
        {"aten::_embedding_bag_dense_backward": gradient, "aten::_embedding_bag_backward": gradient_by_offsets},
    ),
    Prediction("bag-indices-read-as-int32", {"aten::_embedding_bag_per_sample_weights_backward": gradient_of_weights}),
)
