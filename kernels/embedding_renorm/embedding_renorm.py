"""Scales rows of an embedding in place if their norm is too large."""

from __future__ import annotations

import torch

from ..runtime.layout import LARGEST_32_BIT
from ..runtime.operands import FLOATING, require_device, require_supported
from ..runtime.outputs import refuse_internal_overlap
from ..runtime.rows import MOST_THREADS, fill_on_cpu, group_of_many_rows, is_too_long, launch_rows
from ..runtime.shader import METAL_TYPES, Shader
from .complex_slices import renorm, renorm_, renorm_out

_shader = Shader(__file__)
_VECTOR_BYTES = 16


def embedding_renorm_(self: torch.Tensor, indices: torch.Tensor, max_norm: float, norm_type: float) -> torch.Tensor:
    """`embedding_renorm_`: scales each row in `indices` at most once.

    `self`: (rows, columns), of any strides, floating or complex64. `indices`: int64 or int32 of any shape; one out of
    range changes nothing and gives torch.AcceleratorError at the next synchronisation, from torch 2.11 on.
    """
    require_device(self, {"indices": indices}, "embedding_renorm_")
    if self.dim() != 2:
        raise RuntimeError(
            f"Expected 2-dimensional tensor, but got {self.dim()}-dimensional tensor for argument #1 'self' "
            "(while checking arguments for embedding_renorm_)"
        )
    if indices.dtype not in (torch.int64, torch.int32):
        raise RuntimeError(f"Expected 'indices' to be Long or Int, but got {indices.dtype}")
    require_supported(self, "embedding_renorm_", (*FLOATING, torch.complex64))
    refuse_internal_overlap(self)
    if indices.numel() == 0 or self.numel() == 0:
        return self
    if is_too_long("embedding_renorm_", self.shape[1] // MOST_THREADS, f"{self.shape[1]} columns"):
        fill_on_cpu([self], torch.ops.aten.embedding_renorm_, self, indices, max_norm, norm_type)
        return self
    ordered, _ = torch.sort(indices.reshape(-1).to(torch.int64))
    lanes = _neighbours(self) if norm_type == 2 else 1
    form = "vectors_" if lanes > 1 else "" if _reach(self) <= LARGEST_32_BIT else "64_"
    kernel = _shader.kernel(f"embedding_renorm_{form}{METAL_TYPES[self.dtype]}", self.device)
    geometry = [self.shape[1], self.shape[0], *self.stride()]
    operands = (self, ordered, [float(max_norm), float(norm_type)], geometry)
    # One SIMD group for each of many short rows: no group waits for another.
    group = group_of_many_rows(ordered.numel(), self.shape[1] // lanes, simd_groups=1)
    launch_rows(kernel, ordered.numel(), group, *operands, reports=True)
    return self


def _neighbours(x: torch.Tensor) -> int:
    """The elements that a thread can move at a time: 16 bytes, if the rows are aligned to and made of such vectors."""
    lanes = _VECTOR_BYTES // x.element_size()
    are_beside = x.stride(1) == 1 and _reach(x) <= LARGEST_32_BIT
    is_aligned = all(count % lanes == 0 for count in (x.shape[1], x.stride(0), x.storage_offset()))
    return lanes if are_beside and is_aligned else 1


def _reach(x: torch.Tensor) -> int:
    """The larger of the length of a row and the largest offset in it."""
    return max(x.shape[1], (x.shape[1] - 1) * x.stride(1))


KERNELS = (("aten::embedding_renorm_", embedding_renorm_),)
# What torch's own `renorm` on mps refuses.
_REFUSED = frozenset({torch.complex64})
OVERRIDES = (
    ("aten::renorm", renorm, _REFUSED),
    ("aten::renorm_", renorm_, _REFUSED),
    ("aten::renorm.out", renorm_out, _REFUSED),
)
