"""The same values in the layouts that tensors come in, on any device."""

from __future__ import annotations

from typing import Literal, get_args

import torch

Layout = Literal["contiguous", "transposed", "sliced", "offset", "expanded"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)


def laid_out(values: torch.Tensor, layout: Layout) -> torch.Tensor:
    """A tensor of the shape of `values` in a layout, with memory of its own.

    transposed: first and last dimension exchanged in memory. sliced: every second element of a larger tensor, from its
    middle on. offset: contiguous, but from an odd element on. expanded: the first of the first dimension for all of it.
    A tensor with too few dimensions or elements for a layout comes out contiguous.
    """
    if layout == "expanded" and values.dim() and values.shape[0] > 1:
        return values[:1].clone().expand(values.shape)
    if values.numel() == 0:
        return values.clone()
    if layout == "transposed" and values.dim() > 1:
        return values.transpose(0, -1).contiguous().transpose(0, -1)
    if layout == "sliced" and values.dim():
        wide = values.new_zeros((*values.shape[:-1], 2 * values.shape[-1] + 3))
        view = wide[..., 3::2]
        view.copy_(values)
        return view
    if layout == "offset":
        flat = values.new_zeros(values.numel() + 3)[3:]
        flat.copy_(values.reshape(-1))
        return flat.view(values.shape)
    return values.clone(memory_format=torch.contiguous_format)


def placed(tensor: torch.Tensor, device: str) -> torch.Tensor:
    """A copy on `device` with the same strides and offset, its whole memory included."""
    memory = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage()).clone()
    return memory.to(device).as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
