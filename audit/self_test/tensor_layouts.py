"""Tensors with the same values in a different layout; None if a tensor is too small for it."""

from __future__ import annotations

import torch
from torch import Tensor


def as_transposed(tensor: Tensor) -> Tensor | None:
    """The tensor with its two longest dimensions swapped in memory."""
    if sum(size > 1 for size in tensor.shape) < 2:
        return None
    first, last = [d for d in range(tensor.dim()) if tensor.size(d) > 1][:: sum(s > 1 for s in tensor.shape) - 1][:2]
    return tensor.transpose(first, last).contiguous().transpose(first, last)


def as_stepped(tensor: Tensor) -> Tensor | None:
    """Every other element of a tensor twice as wide."""
    if tensor.dim() == 0 or tensor.size(-1) < 2:
        return None
    wide = torch.ones((*tensor.shape[:-1], 2 * tensor.size(-1)), dtype=tensor.dtype)
    view = wide[..., ::2]
    return view.copy_(tensor)


def as_inner_strided(tensor: Tensor) -> Tensor | None:
    """The left part of a wider tensor."""
    if tensor.dim() < 2 or tensor.size(-1) < 1 or tensor.numel() == tensor.size(-1):
        return None
    wide = torch.ones((*tensor.shape[:-1], tensor.size(-1) + 3), dtype=tensor.dtype)
    return wide[..., : tensor.size(-1)].copy_(tensor)


def at_offset(tensor: Tensor) -> Tensor | None:
    """The tensor at a storage offset of three."""
    if tensor.numel() == 0:
        return None
    flat = torch.ones(tensor.numel() + 5, dtype=tensor.dtype)
    return flat[3 : 3 + tensor.numel()].view(tensor.shape).copy_(tensor)


def as_expanded(tensor: Tensor) -> Tensor | None:
    """The first element of a dimension repeated."""
    longer = [d for d in range(tensor.dim()) if tensor.size(d) > 1]
    if not longer:
        return None
    return tensor.narrow(longer[0], 0, 1).clone().expand(tensor.shape)


def in_one_storage(tensors: list[Tensor]) -> list[Tensor]:
    """The tensors one after the other in one storage."""
    buffer = torch.cat([t.reshape(-1) for t in tensors])
    views, start = [], 0
    for tensor in tensors:
        views.append(buffer[start : start + tensor.numel()].view(tensor.shape))
        start += tensor.numel()
    return views
