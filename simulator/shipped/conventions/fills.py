"""Filling with a value: `fill_`, `zero_`, `masked_fill_`.

Read in ConstantOps.mm and Indexing.mm of aten/src/ATen/native/mps/operations (main, late 2026), and for `fill_` off the
arguments of the kernels, which 2.13.0 and 2.15.0 have alike. Whether the host fills some tensors by blits is not known
for these releases: a fill is taken to be the kernel's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..call import Call
from ..iterator import geometry
from ..plan import BlitFill, KernelLaunch, Planner, ReleaseKernels, Step, in_line, in_plane, required
from .binary_kernels import parameter_of, repeats_over
from .metal_types import metal_name
from .zeroing import is_dense

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
        return KernelLaunch(kernel, arguments, *in_line(walk.numel))
    kernel = required(kernels, f"fill_scalar_strided_{metal_name(target.dtype)}")
    arguments = {
        "out": target,
        "fill_val": parameter.value,
        "sizes": list(walk.shape),
        "strides": list(walk.strides[0]),
        "ndim": len(walk.shape),
    }
    return KernelLaunch(kernel, arguments, *in_plane(walk.outer, walk.shape[0]))  # y runs along the innermost dimension


def _fill(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    value = call["value"]
    return [filled(kernels, call["self"], value.item() if isinstance(value, Tensor) else value)]


def set_to_zero(kernels: ReleaseKernels, target: Tensor) -> Step:
    """The step of `zero_`: by the blit encoder where memory has no gaps."""
    return BlitFill(target) if is_dense(target) else filled(kernels, target, 0)


def _zero(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    return [set_to_zero(kernels, call["self"])]


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
