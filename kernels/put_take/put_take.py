"""Gathering from and scattering to a tensor as if it had one dimension."""

from __future__ import annotations

import torch

from ...metal_limits import SIMD_WIDTH
from ..runtime import rows
from ..runtime.determinism import alert_not_deterministic
from ..runtime.layout import launch_elements, logical_order
from ..runtime.operands import require_device, require_supported
from ..runtime.outputs import (
    overlaps,
    refuse_internal_overlap,
    refuse_overlap,
    require_dtype,
    resize_output,
    shares_storage,
)
from ..runtime.rows import launch_rows, rows_in, short_launches
from ..runtime.shader import METAL_TYPES, Shader
from ..runtime.signatures import planned

_shader = Shader(__file__)
# Elements are moved as unsigned integers of their size.
_MOVED_AS = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}


def take(self: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """`take`, of the shape of the index.

    An index out of range gives zero and torch.AcceleratorError at the next synchronisation, from torch 2.11 on.
    """
    index = index.to(self.device) if index.dim() == 0 else index  # 0-dimensional operands may be on the CPU
    _check_index(self, index, "take")
    if self.numel() == 0 and index.numel():
        raise IndexError("take(): tried to take from an empty tensor")
    out = torch.empty(index.shape, dtype=self.dtype, device=self.device)
    if out.numel():
        kernel = _shader.kernel(f"take_{_MOVED_AS[self.element_size()]}", self.device)
        operands = (out, self, index.contiguous(), logical_order(self), index.numel())
        launch_elements(kernel, index.numel(), *operands, reports=True)
    return out


def take_out(self: torch.Tensor, index: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
    """`take.out`."""
    require_dtype(out, self.dtype, "take")
    refuse_overlap(out, self, index)
    result = take(self, index)
    resize_output(out, result.shape)
    refuse_internal_overlap(out)
    return out.copy_(result)


def put_(self: torch.Tensor, index: torch.Tensor, source: torch.Tensor, accumulate: bool = False) -> torch.Tensor:
    """`put_`: for a repeated index any of its sources is kept, or their sum with `accumulate`.

    An index out of range writes nothing and gives torch.AcceleratorError at the next synchronisation, from torch 2.11
    on.
    """
    count, order, name = planned(_checked, (self, index, source), accumulate)
    is_shared = shares_storage(self, (index, source))
    if is_shared:
        refuse_overlap(self, index, source)
    if not accumulate:
        alert_not_deterministic("put_")  # the order of threads decides
    if not count:
        return self
    # A tensor with gaps may still interleave with the written one: it is copied first.
    given, places = (x.clone() if overlaps(self, x) else x for x in (source, index)) if is_shared else (source, index)
    given, places = given.contiguous(), places.contiguous()
    if accumulate and torch.are_deterministic_algorithms_enabled() and _rounds(self.dtype):
        _accumulate_in_order(self, places.view(-1), given.view(-1))
        return self
    kernel = _shader.kernel(name, self.device)
    if not accumulate:
        launch_elements(kernel, count, self, given, places, order, count, reports=True)
    else:
        memory, first = self, self.storage_offset()
        if first:  # the kernel counts from the start of the storage
            memory = self.as_strided((self.untyped_storage().nbytes() // self.element_size(),), (1,), 0)
        for part in short_launches(count, 1, most=rows.MOST_CONTENDED_ADDITIONS):
            size = part.stop - part.start
            parts = (given, places) if size == count else (given.view(-1)[part], places.view(-1)[part])
            launch_elements(kernel, size, memory, *parts, order, size, first, reports=True)
    return self


def _checked(
    x: torch.Tensor, index: torch.Tensor, source: torch.Tensor, accumulate: bool
) -> tuple[int, list[int], str]:
    """The number of sources, the layout of `x`, and the name of the kernel. Raises what the CPU raises."""
    _check_index(x, index, "put_")
    require_device(x, {"source": source}, "put_")
    if source.dtype != x.dtype:
        raise RuntimeError(
            f"put_(): self and source expected to have the same dtype, but got self.dtype = {x.dtype} "
            f"and source.dtype = {source.dtype}"
        )
    if index.numel() != source.numel():
        raise IndexError(
            f"put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.numel()}, index.numel() = {index.numel()}"
        )
    refuse_internal_overlap(x)
    if x.numel() == 0 and index.numel():
        raise IndexError("put_(): Expected self to be a non-empty tensor")
    kernel = f"put_accumulate_{METAL_TYPES[x.dtype]}" if accumulate else f"put_{_MOVED_AS[x.element_size()]}"
    return index.numel(), logical_order(x), kernel


def _rounds(dtype: torch.dtype) -> bool:
    """Whether a sum depends on the order of its terms."""
    return dtype.is_floating_point or dtype.is_complex


def _accumulate_in_order(x: torch.Tensor, index: torch.Tensor, source: torch.Tensor) -> None:
    """Add the sources of each index in a fixed order; this is slower than in the order of threads."""
    places, order = torch.where(index < 0, index + x.numel(), index).sort(stable=True)
    kernel, layout = _shader.kernel(f"put_accumulate_sorted_{METAL_TYPES[x.dtype]}", x.device), logical_order(x)
    ordered = source[order]
    for part in short_launches(places.numel(), 1, most=rows.MOST_CONTENDED_ADDITIONS):
        count = part.stop - part.start
        launch_rows(kernel, count, SIMD_WIDTH, x, *rows_in(part, ordered, places), layout, count, reports=True)


def _check_index(x: torch.Tensor, index: torch.Tensor, name: str) -> None:
    require_device(x, {"index": index}, name)
    if index.dtype != torch.int64:
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {index.dtype}")
    require_supported(x, name, METAL_TYPES)


KERNELS = (
    ("aten::take", take),
    ("aten::take.out", take_out),
    ("aten::put_", put_),
)
