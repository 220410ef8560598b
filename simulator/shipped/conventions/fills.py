"""Filling with a value: `fill_`, `zero_`, `masked_fill_`.

Source: ConstantOps.mm and Indexing.mm of aten/src/ATen/native/mps/operations (main, late 2026). The grids of `fill_`
and `zero_` are those that the host code in 2.13.0's macOS wheel launches (audit/shipped/launch_comparison.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..call import Call
from ..iterator import geometry
from ..plan import MAX_THREADS_OF_GROUP, BlitFill, KernelLaunch, Planner, ReleaseKernels, Step, in_line, required
from .binary_kernels import parameter_of, repeats_over
from .metal_types import metal_name
from .zeroing import is_dense

_BYTES_PER_THREAD = 4  # in a dense fill of one-byte elements
_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def filled(kernels: ReleaseKernels, target: Tensor, value: Any) -> Step:
    """The step that sets every element of `target` to a number.

    Raises:
        Declined: the release has no kernel for the dtype.
    """
    walk = geometry(target)
    parameter = parameter_of(value, target.dtype)
    if walk.contiguous:
        kernel = required(kernels, f"fill_scalar_dense_{metal_name(target.dtype)}")
        arguments = {"out": target, "fill_val": parameter.value, "numel": walk.numel}
        return KernelLaunch(kernel, arguments, *in_line(_threads_of_dense_fill(target)))
    kernel = required(kernels, f"fill_scalar_strided_{metal_name(target.dtype)}")
    arguments = {
        "out": target,
        "fill_val": parameter.value,
        "sizes": list(walk.shape),
        "strides": list(walk.strides[0]),
        "ndim": len(walk.shape),
    }
    threads = (walk.outer, walk.shape[0], 1)  # y runs along the innermost dimension
    return KernelLaunch(kernel, arguments, threads, (min(walk.outer, MAX_THREADS_OF_GROUP), 1, 1))


def _threads_of_dense_fill(target: Tensor) -> int:
    """One thread for each element; for elements of one byte, one for each four bytes from the aligned address on."""
    if target.element_size() > 1:
        return target.numel()
    ahead = target.data_ptr() % _BYTES_PER_THREAD
    return -(-(ahead + target.numel()) // _BYTES_PER_THREAD)


def _fill(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    value = call["value"]
    return [filled(kernels, call["self"], value.item() if isinstance(value, Tensor) else value)]


def set_to_zero(kernels: ReleaseKernels, target: Tensor) -> Step:
    """The step of `zero_`: by the blit encoder if the memory has no gaps."""
    return BlitFill(target) if is_dense(target) else filled(kernels, target, 0)


def _zero(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    target = call["self"]
    by_kernel = f"fill_scalar_dense_{metal_name(target.dtype)}" in kernels
    return [filled(kernels, target, 0) if by_kernel else set_to_zero(kernels, target)]


def masked_filled(kernels: ReleaseKernels, target: Tensor, mask: Tensor, value: Any) -> Step:
    """The step that sets `target` to a number where `mask`, broadcast to it, is true.

    Elements are moved as integers of their size, so that one kernel serves all dtypes of a size.

    Raises:
        Declined: the release has no kernel for elements of this size.
    """
    size = target.element_size()
    bits = torch.scalar_tensor(value, dtype=target.dtype, device="cpu").view(_INTEGERS[size])
    arguments: dict[str, object] = {"input": target.view(_INTEGERS[size]), "val": int(bits)}
    expanded = mask.expand(target.shape)
    if target.is_contiguous() and expanded.is_contiguous():
        form, arguments["mask"] = "dense", expanded
    elif target.is_contiguous() and mask.is_contiguous() and repeats_over(tuple(mask.shape), tuple(target.shape)):
        form, arguments["mask"], arguments["mask_numel"] = "broadcast", mask, mask.numel()
    else:
        form, arguments["mask"] = "strided", expanded
        arguments["sizes"] = list(target.shape)
        arguments["input_strides"] = list(target.stride())
        arguments["mask_strides"] = list(expanded.stride())
        arguments["ndim"] = target.dim()
    kernel = required(kernels, f"masked_fill_scalar_{form}_{8 * size}bit")
    return KernelLaunch(kernel, arguments, *in_line(target.numel()))


def _masked_fill(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    value = call["value"]
    number = value.item() if isinstance(value, Tensor) else value
    return [masked_filled(kernels, call["self"], call["mask"], number)]


PLANNERS: dict[str, Planner] = {
    "fill_.Scalar": _fill,
    "fill_.Tensor": _fill,
    "zero_": _zero,
    "masked_fill_.Scalar": _masked_fill,
    "masked_fill_.Tensor": _masked_fill,
}
