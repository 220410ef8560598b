"""Padding by a constant, by reflection and by replication, and its gradients.

Source: aten/src/ATen/native/mps/operations/Pad.mm (main, autumn 2026), as in 2.15.0. 2.13.0 has Metal kernels only for
`replication_pad1d`; all other padding runs in MPSGraph there. A thread writes four elements of the innermost
dimension, except for `replication_pad1d`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

from ..call import Call
from ..plan import Declined, KernelLaunch, Planner, ReleaseKernels, Step, in_plane, required
from .copies import copied
from .fills import filled, set_to_zero
from .metal_types import metal_name
from .operands import fits_32_bits, in_box, scalar_bytes

_PER_THREAD = 4
_DENSE_DIMENSIONS = 3


def _pad(mode: str, dimensions: int, backward: bool) -> Planner:
    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        source, result = call["grad_output"] if backward else call["self"], call.result
        small, large = (result, source) if backward else (source, result)
        direction = "backward" if backward else "forward"
        name = f"{mode}_pad{dimensions}d_{direction}_{metal_name(source.dtype)}_i32"
        if name not in kernels:
            raise Declined("MPSGraph")
        if not fits_32_bits(small, large):
            raise Declined("offsets of more than 32 bits")
        if source.numel() == 0:
            return [set_to_zero(kernels, result)]
        channel = small.dim() - dimensions - 1
        params = {
            "input_sizes": _innermost_sizes(small, dimensions),
            "output_sizes": _innermost_sizes(large, dimensions),
            "left_pad": _padded_to([call["padding"][2 * d] for d in range(dimensions)], 0),
            "input_strides": _strides(small, dimensions, channel),
            "output_strides": _strides(large, dimensions, channel),
            "channels": small.size(channel),
        }
        width = result.size(-1)
        height = result.size(-2) if dimensions >= 2 else 1
        grid = in_box(-(-width // _PER_THREAD), height, result.numel() // (width * height))
        names = ("grad_output", "grad_input") if backward else ("input", "output")
        return [KernelLaunch(name, {names[0]: source, names[1]: result, "params": params}, *grid)]

    return plan


def _padded_to(numbers: list[int], filling: int) -> list[int]:
    return numbers + [filling] * (_DENSE_DIMENSIONS - len(numbers))


def _innermost_sizes(tensor: Tensor, dimensions: int) -> list[int]:
    return _padded_to([tensor.size(-1 - d) for d in range(dimensions)], 1)


def _strides(tensor: Tensor, dimensions: int, channel: int) -> list[int]:
    """The strides of the padded dimensions, innermost first, then of the channels and of the batch."""
    padded = _padded_to([tensor.stride(-1 - d) for d in range(dimensions)], 0)
    return [*padded, tensor.stride(channel), tensor.stride(0) if channel == 1 else 0]


# ------------------------------------------------------------------------------------------------ replication_pad1d
def _replicate_line(backward: bool) -> Planner:
    """The planner of `replication_pad1d`: contiguous memory, one element a thread."""

    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        source = (call["grad_output"] if backward else call["self"]).contiguous()
        result = call.result
        if source.numel() == 0:
            raise Declined("nothing to pad")
        if result.dim() > 3:
            raise Declined("the host code for more than three dimensions is not known")
        direction, names = ("backward", ("grad_output", "grad_input")) if backward else ("forward", ("input", "output"))
        dense = result if result.is_contiguous() else result.new_empty(result.shape)
        small, large = (dense, source) if backward else (source, dense)
        kernel = required(kernels, f"replication_pad1d_{direction}_{metal_name(result.dtype)}")
        sizes = [small.size(-1), large.size(-1), *call["padding"]]
        batches = result.size(0) if result.dim() == 3 else 1
        grid = in_box(result.size(-1), result.size(-2), batches)
        arguments = {names[0]: source, names[1]: dense, "sizes_pad": sizes}
        steps: list[Step] = [KernelLaunch(kernel, arguments, *grid)]
        return steps if dense is result else [*steps, copied(kernels, result, dense)]

    return plan


# ------------------------------------------------------------------------------------------------ constant_pad_nd
def _constant_pad(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    result, pad = call.result, list(call["pad"])
    name = metal_name(result.dtype)
    if f"constant_pad_nd_dense_{name}" not in kernels:
        raise Declined("MPSGraph")
    source, padded = _cropped(call["self"], pad), len(pad) // 2
    crops_only = all(n <= 0 for n in pad)
    if crops_only and source.is_contiguous():
        return [copied(kernels, result, source)]
    if source.numel() == 0:
        return [filled(kernels, result, call["value"])]
    fill = scalar_bytes(0 if crops_only else call["value"], result.dtype)
    if padded <= _DENSE_DIMENSIONS and source.is_contiguous() and result.is_contiguous():
        return [_pad_dense(kernels, name, source, result, pad, fill)]
    if not fits_32_bits(source, result):
        raise Declined("offsets of more than 32 bits")
    order = sorted(range(result.dim()), key=result.stride)
    first = result.size(order[0])
    params = {
        "output_sizes": [result.size(d) for d in order],
        "input_sizes": [source.size(d) for d in order],
        "input_strides": [source.stride(d) for d in order],
        "output_strides": [result.stride(d) for d in order],
        "left_pad": [_left(pad, result.dim() - 1 - d) for d in order],
        "ndim": result.dim(),
    }
    arguments = {"input": source, "output": result, "params": params, "fill_value": fill}
    kernel = required(kernels, f"constant_pad_nd_{name}_u32")
    return [KernelLaunch(kernel, arguments, *in_plane(-(-first // _PER_THREAD), result.numel() // first))]


def _cropped(tensor: Tensor, pad: Sequence[int]) -> Tensor:
    """The tensor without the elements that negative padding removes."""
    for d in range(len(pad) // 2):
        before, after = (max(-n, 0) for n in pad[2 * d : 2 * d + 2])
        dim = tensor.dim() - 1 - d
        tensor = tensor.narrow(dim, before, tensor.size(dim) - before - after)
    return tensor


def _left(pad: Sequence[int], from_innermost: int) -> int:
    return max(pad[2 * from_innermost], 0) if 2 * from_innermost < len(pad) else 0


def _pad_dense(
    kernels: ReleaseKernels, name: str, source: Tensor, result: Tensor, pad: Sequence[int], fill: bytes
) -> KernelLaunch:
    padded = len(pad) // 2
    innermost = range(padded)
    params = {
        "input_sizes": _padded_to([source.size(-1 - d) for d in innermost], 1),
        "output_sizes": _padded_to([result.size(-1 - d) for d in innermost], 1),
        "left_pad": _padded_to([_left(pad, d) for d in innermost], 0),
    }
    width, height = result.size(-1), result.size(-2) if padded >= 2 else 1
    arguments = {"input": source, "output": result, "params": params, "fill_value": fill}
    grid = in_box(-(-width // _PER_THREAD), height, math.prod(result.shape) // (width * height))
    return KernelLaunch(required(kernels, f"constant_pad_nd_dense_{name}"), arguments, *grid)


def _table() -> dict[str, Planner]:
    planners: dict[str, Planner] = {"constant_pad_nd": _constant_pad}
    for mode in ("reflection", "replication"):
        for dimensions in (1, 2, 3):
            for backward in (False, True):
                line = mode == "replication" and dimensions == 1
                planner = _replicate_line(backward) if line else _pad(mode, dimensions, backward)
                name = f"{mode}_pad{dimensions}d{'_backward' if backward else ''}"
                planners[name] = planners[f"{name}.{'grad_input' if backward else 'out'}"] = planner
    return planners


PLANNERS: dict[str, Planner] = _table()
