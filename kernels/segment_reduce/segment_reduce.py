"""Reductions of segments of a dimension, given by a tensor of lengths or offsets, and their backward."""

from __future__ import annotations

import math
from typing import Any

import torch

from ..runtime import rows as limits
from ..runtime.operands import require_device, require_scalar_type, require_supported, wrap_dim
from ..runtime.rows import fill_on_cpu, is_too_long
from ..runtime.shader import METAL_TYPES, Shader, reporting

_shader = Shader(__file__)
_aten = torch.ops.aten
_REDUCTIONS = {"sum": 0, "mean": 1, "max": 2, "amax": 2, "min": 3, "amin": 3, "prod": 4}
_GROUP = 256  # what the Metal kernels have scratch for
_MOST_COLUMNS = 32


def segment_reduce(
    data: torch.Tensor,
    reduce: str,
    *,
    lengths: torch.Tensor | None = None,
    indices: torch.Tensor | None = None,
    offsets: torch.Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> torch.Tensor:
    """`segment_reduce` by lengths or offsets, summed in float32.

    Lengths that do not sum to the dimension give torch.AcceleratorError at the next synchronisation, from torch 2.11
    on, unless `unsafe`. Segments are clamped to the dimension in any case.
    """
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    borders, axis = _borders(data, lengths, offsets, axis)
    if lengths is not None and offsets is None and not unsafe and lengths.numel() == 0:
        raise RuntimeError(
            "min(): Expected reduction dim to be specified for input.numel() == 0. "
            "Specify the reduction dim with the 'dim' argument."
        )
    geometry = _geometry(data, borders, axis, reduce, checked=offsets is None and not unsafe)
    out = torch.empty(
        (*data.shape[:axis], borders.shape[-1] - 1, *data.shape[axis + 1 :]), dtype=data.dtype, device=data.device
    )
    if out.numel():
        threads, group = _grid(out, geometry)
        if _is_too_long(borders, geometry[1], group[1]):
            given: dict[str, Any] = {"lengths": lengths, "offsets": offsets, "axis": axis, "initial": initial}
            fill_on_cpu([out], _aten.segment_reduce, data, reduce, unsafe=unsafe, **given)
            return out
        kernel = _shader.kernel(f"segment_reduce_{METAL_TYPES[data.dtype]}", data.device)
        operands = (out, data.contiguous(), borders, _initial(initial), geometry)
        kernel(*operands, threads=threads, group_size=group, arg_casts=None, **reporting(len(operands)))
    return out


def segment_reduce_backward(
    grad: torch.Tensor,
    output: torch.Tensor,
    data: torch.Tensor,
    reduce: str,
    *,
    lengths: torch.Tensor | None = None,
    offsets: torch.Tensor | None = None,
    axis: int = 0,
    initial: float | None = None,
) -> torch.Tensor:
    """`_segment_reduce_backward`: zero outside of segments."""
    borders, axis = _borders(data, lengths, offsets, axis)
    geometry = _geometry(data, borders, axis, reduce, checked=False)
    require_device(data, {"grad": grad, "output": output}, "_segment_reduce_backward")
    for tensor in (grad, output):
        require_scalar_type(tensor, data.dtype)
    count = math.prod(data.shape[:axis]) * geometry[0] * geometry[2]
    if grad.numel() < count or output.numel() < count:
        raise RuntimeError(f"_segment_reduce_backward: expected grad and output to have {count} elements")
    gradient = torch.zeros_like(data, memory_format=torch.contiguous_format)
    if count and gradient.numel():
        threads, group = _grid(output, geometry)
        if _is_too_long(borders, geometry[1], group[1], squared=reduce == "prod"):
            given: dict[str, Any] = {"lengths": lengths, "offsets": offsets, "axis": axis, "initial": initial}
            fill_on_cpu([gradient], _aten._segment_reduce_backward, grad, output, data, reduce, **given)
            return gradient
        kernel = _shader.kernel(f"segment_reduce_backward_{METAL_TYPES[data.dtype]}", data.device)
        operands = (grad.contiguous(), output.contiguous(), data.contiguous(), borders, _initial(initial), geometry)
        kernel(gradient, *operands, threads=threads, group_size=group)
    return gradient


def _borders(
    data: torch.Tensor, lengths: torch.Tensor | None, offsets: torch.Tensor | None, axis: int
) -> tuple[torch.Tensor, int]:
    """The offsets of the segments and the end of the last one, contiguous int64; and the wrapped axis."""
    given, name = (lengths, "lengths") if offsets is None else (offsets, "offsets")
    if given is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    axis = wrap_dim(axis, data.dim())
    require_device(data, {name: given}, "segment_reduce")
    if axis != given.dim() - 1:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of {name} but got {axis}.")
    if given.dtype not in (torch.int64, torch.int32):
        raise NotImplementedError(f"segment_reduce takes no {name} of {given.dtype}")
    before = tuple(given.shape)[:-1]
    if before != tuple(data.shape)[:axis]:
        raise RuntimeError(f"segment_reduce(): Expected {name} of the sizes {list(data.shape[:axis])} before the axis")
    if name == "offsets":
        if given.shape[-1] == 0:
            raise RuntimeError("Trying to create tensor with negative dimension -1: [-1]")
        return given.to(torch.int64).contiguous(), axis
    ends = given.cumsum(-1, dtype=torch.int64)
    return torch.cat([ends.new_zeros((*before, 1)), ends], -1), axis


def _geometry(data: torch.Tensor, borders: torch.Tensor, axis: int, reduce: str, *, checked: bool) -> list[int]:
    """`struct segments` of the Metal source."""
    if reduce not in _REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    require_supported(data, "segment_reduce")
    shape = tuple(data.shape)
    return [borders.shape[-1] - 1, shape[axis], math.prod(shape[axis + 1 :]), _REDUCTIONS[reduce], int(checked)]


def _grid(out: torch.Tensor, geometry: list[int]) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """The grid, and groups wide enough for the inner elements and high enough for segments of average length."""
    segments, size, inner, *_ = geometry
    width = min(_MOST_COLUMNS, _power_of_two(inner))
    height = min(_GROUP // width, _power_of_two(max(-(-size // segments), size // limits.MOST_STEPS)))
    rows = out.numel() // inner
    return (-(-inner // width) * width, height, rows), (width, height, 1)


def _is_too_long(borders: torch.Tensor, size: int, threads: int, *, squared: bool = False) -> bool:
    """Whether the longest segment of rows of `size` elements takes too long, shared by so many threads.

    `squared`: a thread may run through the segment for each of its elements, as for the products of all others.
    """
    if size * (size if squared else 1) // threads <= limits.MOST_STEPS:
        return False
    longest = int(borders.clamp(0, size).diff().max())  # read back where it matters alone
    steps = longest * (longest if squared else 1) // threads
    return is_too_long("segment_reduce", steps, f"segments of {longest} elements")


def _power_of_two(x: int) -> int:
    """The smallest one that is not less."""
    return 1 << (x - 1).bit_length() if x > 1 else 1


def _initial(initial: float | None) -> list[float]:
    return [0.0, 0.0] if initial is None else [float(initial), 1.0]


KERNELS = (
    ("aten::segment_reduce", segment_reduce),
    ("aten::_segment_reduce_backward", segment_reduce_backward),
)
