"""The most frequent value along a dimension, the smallest of several, and its last index."""

from __future__ import annotations

import torch

from ..runtime.operands import wrap_dim
from ..runtime.outputs import refuse_internal_overlap, require_dtype, resize_output
from ..runtime.rows import fill_on_cpu, is_too_long, launch_rows, row_group
from ..runtime.shader import METAL_TYPES, Shader

_shader = Shader(__file__)
# A group of 256 threads finds the longest run of a row; each of its threads waits about so seldom.
_ELEMENTS_OF_STEP = 16


def mode(self: torch.Tensor, dim: int = -1, keepdim: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """`mode`: values and int64 indices, new tensors without the dimension (of size 1 with `keepdim`)."""
    dim, shape = _reduced(self, dim, keepdim)
    values = torch.empty(shape, dtype=self.dtype, device=self.device)
    indices = torch.empty(shape, dtype=torch.int64, device=self.device)
    _fill(self, dim, values, indices)
    return values, indices


def mode_values(
    self: torch.Tensor, dim: int = -1, keepdim: bool = False, *, values: torch.Tensor, indices: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """`mode.values`, into given outputs of any strides."""
    require_dtype(values, self.dtype, "mode")
    require_dtype(indices, torch.int64, "mode")
    dim, shape = _reduced(self, dim, keepdim)
    for output in (values, indices):
        resize_output(output, shape)
        refuse_internal_overlap(output)
    if values.is_contiguous() and indices.is_contiguous():
        _fill(self, dim, values, indices)
        return values, indices
    found = mode(self, dim, keepdim)
    return values.copy_(found[0]), indices.copy_(found[1])


def _reduced(x: torch.Tensor, dim: int, keepdim: bool) -> tuple[int, list[int]]:
    """The dimension, counted from the front, and the shape of the result."""
    dim = wrap_dim(dim, max(x.dim(), 1))
    if x.dim() == 0:  # of any dtype, as on the CPU
        return 0, []
    if x.dtype not in METAL_TYPES or x.dtype.is_complex:
        raise NotImplementedError(f"mode is not implemented for {x.dtype} on mps")
    if x.shape[dim] == 0:
        raise IndexError(f"mode(): Expected reduction dim {dim} to have non-zero size.")
    shape = list(x.shape)
    shape[dim : dim + 1] = [1] if keepdim else []
    return dim, shape


def _fill(x: torch.Tensor, dim: int, values: torch.Tensor, indices: torch.Tensor) -> None:
    """Sort along `dim` with torch's own kernel, then find the longest run of every row; outputs are contiguous."""
    if values.numel() == 0:
        return
    if x.dim() == 0:
        values.copy_(x)
        indices.zero_()
        return
    if x.dtype == torch.bool:
        found = torch.empty(values.shape, dtype=torch.uint8, device=x.device)
        _fill(x.to(torch.uint8), dim, found, indices)
        values.copy_(found)
        return
    if is_too_long("mode", x.shape[dim] // _ELEMENTS_OF_STEP, f"rows of {x.shape[dim]} elements"):
        fill_on_cpu((values, indices), torch.mode, x, dim)
        return
    rows = x.movedim(dim, -1).contiguous()
    ordered, positions = torch.sort(rows, dim=-1, stable=True)
    size = rows.shape[-1]
    kernel = _shader.kernel(f"mode_{METAL_TYPES[x.dtype]}", x.device)
    operands = (values, indices, ordered.contiguous(), positions.contiguous(), size)
    launch_rows(kernel, values.numel(), row_group(size), *operands, int32=True)


KERNELS = (("aten::mode", mode), ("aten::mode.values", mode_values))
