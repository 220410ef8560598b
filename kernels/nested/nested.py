"""Rows of a jagged tensor to a padded one and back, and masks of which the padding comes last."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import torch

from ..runtime.layout import launch_elements
from ..runtime.operands import not_implemented, require_device
from ..runtime.shader import Shader

_shader = Shader(__file__)
# Elements are moved as unsigned integers of their size, rows of whole vectors as 16 bytes.
_MOVED_AS = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}
_VECTOR_BYTES = 16


def nested_tensor_from_mask_left_aligned(t: torch.Tensor, mask: torch.Tensor) -> bool:
    """`_nested_tensor_from_mask_left_aligned`: whether no row of the (N, L) mask of `t`, (N, L, D), has a gap."""
    if mask.dtype != torch.bool:
        raise RuntimeError(f"Expected mask to be of ScalarType Bool, but got {mask.dtype} instead.")
    if mask.dim() != 2:
        raise RuntimeError("Padding mask should be 2D")
    if t.dim() != 3:
        raise RuntimeError("Input should be a 3D tensor, N * L * D")
    if t.shape[:2] != mask.shape:
        raise RuntimeError("Mask size should match input size")
    lengths = mask.sum(1, keepdim=True)
    return torch.equal(mask, torch.arange(mask.shape[1], device=mask.device) < lengths)


def jagged_to_padded_dense_forward(
    values: torch.Tensor, offsets: Sequence[torch.Tensor], max_lengths: Sequence[int], padding_value: float = 0.0
) -> torch.Tensor:
    """`_jagged_to_padded_dense_forward`: (rows, *) to (items, max_length, *); longer items are cut off."""
    borders = _borders(values, offsets, "_jagged_to_padded_dense_forward()")
    if len(max_lengths) != 1:
        raise RuntimeError("_jagged_to_padded_dense_forward(): only a single jagged dim is supported for now")
    if values.is_complex():
        raise not_implemented("_jagged_to_padded_dense_forward_cpu", values.dtype)
    shape = (borders.shape[0] - 1, *max_lengths, *values.shape[1:])
    padded = torch.empty(shape, dtype=values.dtype, device=values.device)
    if padded.numel():
        count = _VECTOR_BYTES // values.element_size()
        _launch("jagged_to_padded", padded, values.contiguous(), borders, _padding(padding_value, count, values.dtype))
    return padded


@lru_cache(maxsize=64)
def _padding(value: float, count: int, dtype: torch.dtype) -> list[int]:
    """The bits of `count` elements of padding; the CPU pads an item without rows, for its casts of infinity differ."""
    no_rows, borders = torch.empty(0, dtype=dtype), torch.zeros(2, dtype=torch.int64)
    padded = torch.ops.aten._jagged_to_padded_dense_forward(no_rows, [borders], [count], value)
    return padded.view(-1).view(torch.int64).tolist()  # type: ignore[no-any-return]


def padded_dense_to_jagged_forward(
    dense: torch.Tensor,
    offsets: Sequence[torch.Tensor],
    total_L: int | None = None,  # noqa: N803
) -> torch.Tensor:
    """`_padded_dense_to_jagged_forward`: (items, max_length, *) to (total_L, *); reads the last offset without it.

    An item that is longer than the input gives torch.AcceleratorError at the next synchronisation, from torch 2.11 on.
    """
    borders = _borders(dense, offsets, "_padded_dense_to_jagged_forward()")
    count = borders.shape[0] - 1
    if dense.dim() < 2:
        raise RuntimeError(
            f"_padded_dense_to_jagged_forward(): expected padded dim >= 2, but padded.dim() == {dense.dim()}"
        )
    if count > dense.shape[0]:
        raise IndexError(f"_padded_dense_to_jagged_forward(): {count + 1} offsets for {dense.shape[0]} items")
    rows = int(borders[-1].item()) if total_L is None else total_L
    values = torch.empty((rows, *dense.shape[2:]), dtype=dense.dtype, device=dense.device)
    items = dense if count == dense.shape[0] else dense[:count]
    if items.numel():
        _launch("padded_to_jagged", items.contiguous(), values, borders)
    elif int(borders[-1].item()) != rows:
        raise RuntimeError("_padded_dense_to_jagged_forward(): final offset should match total_L value")
    return values


def _borders(x: torch.Tensor, offsets: Sequence[torch.Tensor], operator: str) -> torch.Tensor:
    """The offsets as contiguous int64, of which there is one more than items."""
    if len(offsets) != 1:
        raise RuntimeError(f"{operator}: only a single jagged dim is supported for now")
    (borders,) = offsets
    if borders.dim() != 1:
        raise RuntimeError(f"{operator}: expected 1D offsets, but got offsets.dim() == {borders.dim()}")
    if x.dim() == 0 or not borders.shape[0]:
        raise RuntimeError(f"{operator}: expected at least one offset, and values with a dimension")
    require_device(x, {"offsets": borders}, operator)
    if borders.dtype == torch.int64:
        return borders.contiguous()
    if borders.is_floating_point() or borders.is_complex():
        # The CPU refuses NaN and what int64 does not hold, as `full` does; to know it they are read back.
        whole = [torch.full((), border, dtype=torch.int64) for border in borders.tolist()]
        borders = torch.stack(whole).to(x.device)
    return borders.to(torch.int64).contiguous()


def _launch(
    name: str, padded: torch.Tensor, values: torch.Tensor, borders: torch.Tensor, padding: list[int] | None = None
) -> None:
    """Run a kernel; it writes `values`, or `padded` if there is `padding`."""
    lanes, inner = _VECTOR_BYTES // values.element_size(), math.prod(values.shape[1:])
    moved_as = _MOVED_AS[values.element_size()]
    if not (inner % lanes or padded.storage_offset() % lanes or values.storage_offset() % lanes):
        moved_as, inner = "uint4", inner // lanes
    geometry = [*padded.shape[:2], inner, values.shape[0]]
    operands = (values, padded, borders, geometry) if padding is None else (padded, values, borders, geometry, padding)
    kernel = _shader.kernel(f"{name}_{moved_as}", values.device)
    launch_elements(kernel, math.prod(geometry[:3]), *operands, reports=True)


KERNELS = (
    ("aten::_nested_tensor_from_mask_left_aligned", nested_tensor_from_mask_left_aligned),
    ("aten::_jagged_to_padded_dense_forward", jagged_to_padded_dense_forward),
    ("aten::_padded_dense_to_jagged_forward", padded_dense_to_jagged_forward),
)
