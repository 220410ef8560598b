"""Distances between all pairs of rows of a matrix, and their backward; sums in float32."""

from __future__ import annotations

import torch

from ...metal_limits import SIMD_WIDTH
from ..runtime.operands import FLOATING, not_implemented, require_device, require_scalar_type, require_sizes
from ..runtime.rows import short_launches
from ..runtime.shader import METAL_TYPES, Shader

_shader = Shader(__file__)
_VECTOR_BYTES = 16
_LONG_ROW = 64  # from this many elements on a SIMD group shares a row


def pdist_forward(self: torch.Tensor, p: float = 2.0) -> torch.Tensor:
    """`_pdist_forward`: the p-norm distances of the n (n - 1) / 2 pairs of the n rows of `self`, in order."""
    _check_rows(self)
    rows, columns = self.shape
    out = torch.empty(rows * (rows - 1) // 2, dtype=self.dtype, device=self.device)
    if not out.numel():
        return out
    if not columns:
        return out.zero_()
    if self.dtype not in FLOATING:
        raise not_implemented("pdist", self.dtype)
    suffix = METAL_TYPES[self.dtype]
    x = self.contiguous()
    lanes = _VECTOR_BYTES // x.element_size()
    in_vectors = columns % lanes == 0 and x.storage_offset() % lanes == 0
    is_long = columns >= _LONG_ROW
    kernel = _shader.kernel(f"pdist_{'large_' * is_long}{suffix}", self.device)
    across, group = (rows * SIMD_WIDTH, (SIMD_WIDTH, 1)) if is_long else (rows, (SIMD_WIDTH, 8))
    for part in short_launches(rows, rows * columns):
        shape = [rows, columns, part.start, int(in_vectors)]
        kernel(out, x, float(p), shape, threads=(across, part.stop - part.start), group_size=group)
    return out


def pdist_backward(grad: torch.Tensor, self: torch.Tensor, p: float, pdist: torch.Tensor) -> torch.Tensor:
    """`_pdist_backward`, of the shape of `self`; zero where a distance is zero."""
    _check_rows(self)
    require_device(self, {"grad": grad, "pdist": pdist}, "_pdist_backward")
    rows, columns = self.shape
    if self.dtype not in FLOATING:
        raise not_implemented("pdist_backward", self.dtype)
    result = torch.empty(self.shape, dtype=self.dtype, device=self.device)
    if rows < 2 or not columns:
        return result.zero_()
    for name, x in (("grad", grad), ("pdist", pdist)):
        require_scalar_type(x, self.dtype)
        require_sizes(x, [rows * (rows - 1) // 2], name)
    kernel = _shader.kernel(f"pdist_backward_{METAL_TYPES[self.dtype]}", self.device)
    operands = (result, grad.contiguous(), self.contiguous(), pdist.contiguous(), float(p))
    for part in short_launches(rows, rows * columns):
        shape = [rows, columns, part.start]
        kernel(*operands, shape, threads=(columns, part.stop - part.start), group_size=(SIMD_WIDTH, 8))
    return result


def _check_rows(x: torch.Tensor) -> None:
    """`torch.pdist` refuses a negative p; the operators that it calls accept any, also on the CPU."""
    if x.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {x.dim()}D")


KERNELS = (("aten::_pdist_forward", pdist_forward), ("aten::_pdist_backward", pdist_backward))
