"""Copies in another order: channels shuffled between groups, and a part of a tensor written to an output."""

from __future__ import annotations

import torch

from ..runtime.layout import Layout, launch_elements, layout_of, memory_format_of
from ..runtime.operands import require_device
from ..runtime.outputs import on_meta, overlaps, refuse_internal_overlap, resize_output
from ..runtime.shader import Shader
from ..runtime.signatures import planned

_shader = Shader(__file__)
# Elements are moved as unsigned integers of their size, contiguous neighbours as 16 bytes.
_MOVED_AS = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}
_VECTOR_BYTES = 16
_PARTS = 4  # of rearrange.metal: the elements that a thread moves if neighbours are not contiguous


def channel_shuffle(self: torch.Tensor, groups: int) -> torch.Tensor:
    """`channel_shuffle`: transposes the channels as a matrix of (groups, channels / groups)."""
    strides, layout = planned(_shuffled, (self,), groups)
    if self.numel() == 0:
        return torch.ops.aten.alias.default(self)  # type: ignore[no-any-return]
    out = torch.empty_strided(self.shape, strides, dtype=self.dtype, device=self.device)
    _launch(out, self, layout)
    return out


def _shuffled(x: torch.Tensor, groups: int) -> tuple[tuple[int, ...], Layout]:
    """The strides of the result, and its layout with that of `x`. Raises what the CPU raises."""
    if x.dim() <= 2:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(x.shape)}")
    channels = x.shape[1]
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if channels % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        )
    out, each = torch.empty(x.shape, device="meta", memory_format=memory_format_of(x)), channels // groups
    source = on_meta(x).unflatten(1, (groups, each)).transpose(1, 2)
    return out.stride(), layout_of([out.unflatten(1, (each, groups)), source])  # type: ignore[no-untyped-call]


def narrow_copy_out(self: torch.Tensor, dim: int, start: int, length: int, *, out: torch.Tensor) -> torch.Tensor:
    """`narrow_copy.out`: `length` positions of a dimension from `start` on; a negative start counts from the end."""
    if self.dim() == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if out.dtype != self.dtype:
        raise RuntimeError(f"narrow_copy: Expected out tensor to have dtype {self.dtype}, but got {out.dtype} instead")
    require_device(self, {"out": out}, "narrow_copy")
    shape = list(self.shape)
    if dim >= len(shape):
        raise RuntimeError("Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false.")
    size = shape[dim]
    if not -size <= start <= size:
        raise IndexError(f"start out of range (expected to be in range of [-{size}, {size}], but got {start})")
    first = start + size if start < 0 else start
    if length < 0 or first + length > size:
        raise RuntimeError(f"start ({first}) + length ({length}) exceeds dimension size ({size}).")
    shape[dim], strides = length, self.stride()
    resize_output(out, tuple(shape))
    refuse_internal_overlap(out)
    if out.numel():
        part = self.as_strided(shape, strides, self.storage_offset() + first * strides[dim])
        source = part.clone() if overlaps(out, part) else part
        _launch(out, source, layout_of([out, source]))
    return out


def _launch(out: torch.Tensor, source: torch.Tensor, layout: Layout) -> None:
    """Copy what has this layout, from the first element of each tensor on."""
    moved_as, lanes = _MOVED_AS[out.element_size()], _VECTOR_BYTES // out.element_size()
    vectors = layout.in_vectors(lanes)
    wide = "" if layout.fits_32_bits else "64"
    if vectors is not None and out.storage_offset() % lanes == 0 and source.storage_offset() % lanes == 0:
        wide = "" if vectors.fits_32_bits else "64"
        vectors.launch(_shader.kernel(f"copy{wide}_uint4", out.device), out, source)
    elif (parts := layout.in_parts(_PARTS)) is not None:
        part, apart = parts
        kernel = _shader.kernel(f"copy_parts{wide}_{moved_as}", out.device)
        casts = None if wide else {2: "int32"}
        launch_elements(kernel, part.elements, out, source, [*apart, *part.packed], arg_casts=casts)
    else:
        layout.launch(_shader.kernel(f"copy{wide}_{moved_as}", out.device), out, source)


KERNELS = (
    ("aten::channel_shuffle", channel_shuffle),
    ("aten::narrow_copy.out", narrow_copy_out),
)
