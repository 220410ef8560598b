"""`arange`, `range`, `linspace` and `logspace`: numbers computed from their index.

Source: RangeFactories.mm of aten/src/ATen/native/mps/operations (main, 2026), which is older than 2.15.0. The kernels
of 2.15.0 also take a start index: the meaning of `p` and `sp` was read from the kernels' code. In 2.13.0 these
operators run in MPSGraph.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import torch
from torch import Tensor

from ..call import Call
from ..plan import Declined, KernelLaunch, Planner, ReleaseKernels, Step, in_line
from .fills import filled
from .metal_types import is_integral, metal_name

_LARGEST_32_BITS = 2**31 - 1


def _in_float32(number: float) -> float:
    """The number rounded to float32, as the host passes it to a kernel."""
    (rounded,) = struct.unpack("<f", struct.pack("<f", number))
    return float(rounded)


def _stride(result: Tensor) -> int | None:
    """The stride of a contiguous or 1-dim result; None for all others."""
    if result.is_contiguous():
        return 1
    return result.stride(0) if result.dim() == 1 else None


def _width(result: Tensor, stride: int) -> str:
    largest = max(result.numel(), (result.numel() - 1) * abs(stride))
    return "i32" if largest <= _LARGEST_32_BITS else "i64"


def _arange(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    result = call.result
    name = metal_name(result.dtype)
    if f"arange_{name}_i32" not in kernels:
        raise Declined("MPSGraph")
    number = int if is_integral(result.dtype) else _in_float32
    start_and_step = [number(call["start"]), number(call["step"])]
    stride = _stride(result)
    if stride is not None:
        arguments: dict[str, object] = {"p": {"__elems": [stride, 0]}}
        kernel = f"arange_{name}_{_width(result, stride)}"
    else:
        arguments = {**_layout(result), "base": 0}
        kernel = f"arange_strided_{name}"
    values = {"out": result, "se": {"__elems": start_and_step}}
    return [KernelLaunch(kernel, {**values, **arguments}, *in_line(result.numel()))]


def _layout(result: Tensor) -> dict[str, object]:
    """Sizes and strides, innermost dimension first."""
    sizes, strides = list(reversed(result.shape)), list(reversed(result.stride()))
    return {"ndim": result.dim(), "sizes": sizes, "strides": strides}


def _spaced(kernels: ReleaseKernels, name: str, result: Tensor, values: dict[str, object]) -> list[Step]:
    """`linspace` and `logspace`: the kernel gets the number of elements, and counts from both ends."""
    steps, stride = result.numel(), _stride(result)
    dtype = metal_name(result.dtype)
    if f"{name}_{dtype}_i32" not in kernels:
        raise Declined("MPSGraph")
    if stride is not None:
        width = _width(result, stride)
        place = {"p": [steps, stride, 0]}
        return [KernelLaunch(f"{name}_{dtype}_{width}", {"out": result, **values, **place}, *in_line(steps))]
    arguments = {"out": result, **values, "sp": {"__elems": [steps, 0]}, **_layout(result)}
    return [KernelLaunch(f"{name}_strided_{dtype}", arguments, *in_line(steps))]


def _linspace(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    result, steps = call.result, call.result.numel()
    start, end = call["start"], call["end"]
    if steps == 1:
        return [filled(kernels, result, start)]
    if result.dtype in (torch.int64, torch.int32):
        first, last = int(start), int(end)
        quotient, remainder = divmod(abs(last - first), steps - 1)
        bits = [first % 2**64, last % 2**64, quotient, remainder]
        return _spaced(kernels, "linspace_integral", result, {"params": {"__elems": bits}})
    if result.is_complex():
        raise Declined("complex numbers")
    if is_integral(result.dtype):
        start, end = int(start), int(end)
    first_float, last_float = _in_float32(start), _in_float32(end)
    step = _in_float32(_in_float32(last_float - first_float) / (steps - 1))
    return _spaced(kernels, "linspace", result, {"v": {"__elems": [first_float, step, last_float]}})


def _logspace(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    result, steps = call.result, call.result.numel()
    if steps == 1:
        raise Declined("one number")
    if result.is_complex():
        raise Declined("complex numbers")
    start, end = call["start"], call["end"]
    if is_integral(result.dtype):
        start, end = int(start), int(end)
    first, last = _in_float32(start), _in_float32(end)
    step = _in_float32(_in_float32(last - first) / (steps - 1))
    return _spaced(kernels, "logspace", result, {"v": {"__elems": [first, step, last, _in_float32(call["base"])]}})


PLANNERS: dict[str, Planner] = {
    "arange.start_out": _arange,
    "range.out": _arange,
    "linspace.out": _linspace,
    "logspace.out": _logspace,
}
