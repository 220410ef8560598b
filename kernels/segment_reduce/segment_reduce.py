"""Reductions of segments of a dimension, given by a tensor of lengths or offsets, and their backward."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch

from ..runtime import rows as limits
from ..runtime.operands import require_device, require_scalar_type, require_supported, wrap_dim
from ..runtime.rows import fill_on_cpu, is_too_long
from ..runtime.shader import METAL_TYPES, Shader, reporting
from ..runtime.signatures import planned

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
    given, has_start = _given(lengths, offsets)
    plan = planned(_plan, (data, given), reduce, axis, has_start, unsafe)
    out = torch.empty(plan.shape, dtype=data.dtype, device=data.device)
    if out.numel():
        borders = _borders(given, has_start)
        if _is_too_long(borders, plan):
            options: dict[str, Any] = {"lengths": lengths, "offsets": offsets, "axis": axis, "initial": initial}
            fill_on_cpu([out], _aten.segment_reduce, data, reduce, unsafe=unsafe, **options)
            return out
        kernel = _shader.kernel(f"segment_reduce_{METAL_TYPES[data.dtype]}", data.device)
        operands = (out, data.contiguous(), borders, _initial(initial), plan.geometry)
        kernel(*operands, threads=plan.threads, group_size=plan.group, arg_casts=None, **reporting(len(operands)))
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
    given, has_start = _given(lengths, offsets)
    plan = planned(_plan_of_backward, (data, given, grad, output), reduce, axis, has_start)
    gradient = torch.zeros_like(data, memory_format=torch.contiguous_format)
    if 0 not in plan.shape and gradient.numel():
        borders = _borders(given, has_start)
        if _is_too_long(borders, plan, squared=reduce == "prod"):
            options: dict[str, Any] = {"lengths": lengths, "offsets": offsets, "axis": axis, "initial": initial}
            fill_on_cpu([gradient], _aten._segment_reduce_backward, grad, output, data, reduce, **options)
            return gradient
        kernel = _shader.kernel(f"segment_reduce_backward_{METAL_TYPES[data.dtype]}", data.device)
        operands = (grad.contiguous(), output.contiguous(), data.contiguous(), borders, _initial(initial))
        kernel(gradient, *operands, plan.geometry, threads=plan.threads, group_size=plan.group)
    return gradient


def _given(lengths: torch.Tensor | None, offsets: torch.Tensor | None) -> tuple[torch.Tensor, bool]:
    """What gives the segments, and whether it is offsets, which have the start of the first segment."""
    if offsets is not None:
        return offsets, True
    if lengths is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    return lengths, False


def _borders(given: torch.Tensor, has_start: bool) -> torch.Tensor:
    """The ends of the segments, behind the start of the first one if it is given; contiguous int64."""
    return given.to(torch.int64).contiguous() if has_start else given.cumsum(-1, dtype=torch.int64)


class _Plan(NamedTuple):
    """The shape of the result, `struct segments` of the Metal source, and the grid."""

    shape: tuple[int, ...]
    geometry: list[int]
    threads: tuple[int, int, int]
    group: tuple[int, int, int]


def _plan(
    data: torch.Tensor, given: torch.Tensor, reduce: str, axis: int, has_start: bool, unsafe: bool = True
) -> _Plan:
    """Raise what the CPU raises."""
    name = "offsets" if has_start else "lengths"
    axis = wrap_dim(axis, data.dim())
    require_device(data, {name: given}, "segment_reduce")
    if axis != given.dim() - 1:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of {name} but got {axis}.")
    if given.dtype not in (torch.int64, torch.int32):
        raise NotImplementedError(f"segment_reduce takes no {name} of {given.dtype}")
    shape, segments = tuple(data.shape), given.shape[-1] - int(has_start)
    if tuple(given.shape)[:-1] != shape[:axis]:
        raise RuntimeError(f"segment_reduce(): Expected {name} of the sizes {list(shape[:axis])} before the axis")
    if segments < 0:
        raise RuntimeError("Trying to create tensor with negative dimension -1: [-1]")
    checked = not (has_start or unsafe)
    if checked and given.numel() == 0:
        raise RuntimeError(
            "min(): Expected reduction dim to be specified for input.numel() == 0. "
            "Specify the reduction dim with the 'dim' argument."
        )
    if reduce not in _REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    require_supported(data, "segment_reduce")
    rows, size, inner = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    geometry = [segments, size, inner, _REDUCTIONS[reduce], int(checked), int(has_start)]
    # Groups wide enough for the inner elements, and high enough for segments of average length.
    width = min(_MOST_COLUMNS, _power_of_two(inner))
    height = min(_GROUP // width, _power_of_two(max(-(-size // max(segments, 1)), size // limits.MOST_STEPS)))
    threads = -(-inner // width) * width, height, rows * segments
    return _Plan((*shape[:axis], segments, *shape[axis + 1 :]), geometry, threads, (width, height, 1))


def _plan_of_backward(
    data: torch.Tensor, given: torch.Tensor, grad: torch.Tensor, output: torch.Tensor, *arguments: Any
) -> _Plan:
    """The same with the checks of the other operands."""
    plan = _plan(data, given, *arguments)
    require_device(data, {"grad": grad, "output": output}, "_segment_reduce_backward")
    for tensor in (grad, output):
        require_scalar_type(tensor, data.dtype)
    count = math.prod(plan.shape)
    if grad.numel() < count or output.numel() < count:
        raise RuntimeError(f"_segment_reduce_backward: expected grad and output to have {count} elements")
    return plan


def _is_too_long(borders: torch.Tensor, plan: _Plan, *, squared: bool = False) -> bool:
    """Whether the longest segment takes too long for the threads that share it.

    `squared`: a thread may run through the segment for each of its elements, as for the products of all others.
    """
    size, threads = plan.geometry[1], plan.group[1]
    if size * (size if squared else 1) // threads <= limits.MOST_STEPS:
        return False
    start = None if plan.geometry[-1] else torch.zeros_like(borders[..., :1])
    longest = int(borders.clamp(0, size).diff(prepend=start).max())  # read back where it matters alone
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
