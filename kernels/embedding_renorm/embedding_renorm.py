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
_DTYPES = FLOATING | {torch.complex64}


def embedding_renorm_(self: torch.Tensor, indices: torch.Tensor, max_norm: float, norm_type: float) -> torch.Tensor:
    """`embedding_renorm_`: scales each row in `indices` at most once.

    `self`: (rows, columns), of any strides, floating or complex64. `indices`: int64 or int32 of any shape; one out of
    range changes nothing and gives torch.AcceleratorError at the next synchronisation, from torch 2.11 on.
    """
    require_device(self, {"indices": indices}, "embedding_renorm_")
    shape = self.shape
    if len(shape) != 2:
        raise RuntimeError(
            f"Expected 2-dimensional tensor, but got {self.dim()}-dimensional tensor for argument #1 'self' "
            "(while checking arguments for embedding_renorm_)"
        )
    if indices.dtype != torch.int64 and indices.dtype != torch.int32:
        raise RuntimeError(f"Expected 'indices' to be Long or Int, but got {indices.dtype}")
    require_supported(self, "embedding_renorm_", _DTYPES)
    refuse_internal_overlap(self)
    count, (rows, columns), strides = indices.numel(), shape, self.stride()
    if not (count and rows and columns):
        return self
    if is_too_long("embedding_renorm_", columns // MOST_THREADS, "{} columns", columns):
        fill_on_cpu([self], torch.ops.aten.embedding_renorm_, self, indices, max_norm, norm_type)
        return self
    listed = indices if indices.dim() == 1 else indices.reshape(-1)
    ordered, _ = torch.sort(listed if listed.dtype == torch.int64 else listed.long())
    is_narrow = columns <= LARGEST_32_BIT and (columns - 1) * strides[1] <= LARGEST_32_BIT
    lanes = _neighbours(self, columns, strides) if norm_type == 2 and is_narrow else 1
    form = "vectors_" if lanes > 1 else "" if is_narrow else "64_"
    kernel = _shader.kernel(f"embedding_renorm_{form}{METAL_TYPES[self.dtype]}", self.device)
    operands = (self, ordered, [float(max_norm), float(norm_type)], [columns, rows, *strides])
    # One SIMD group for each of many short rows: no group waits for another.
    group = group_of_many_rows(count, columns // lanes, simd_groups=1)
    launch_rows(kernel, count, group, *operands, reports=True)
    return self


def _neighbours(x: torch.Tensor, columns: int, strides: tuple[int, ...]) -> int:
    """The elements that a thread can move at a time: 16 bytes, if the rows are aligned to and made of such vectors."""
    lanes = _VECTOR_BYTES // x.element_size()
    is_aligned = not (columns % lanes or strides[0] % lanes or x.storage_offset() % lanes)
    return lanes if strides[1] == 1 and is_aligned else 1


KERNELS = (("aten::embedding_renorm_", embedding_renorm_),)
# What torch's own `renorm` on mps refuses.
_REFUSED = frozenset({torch.complex64})
OVERRIDES = (
    ("aten::renorm", renorm, _REFUSED),
    ("aten::renorm_", renorm_, _REFUSED),
    ("aten::renorm.out", renorm_out, _REFUSED),
)
