"""Upsampling: nearest, linear, bilinear, bicubic, trilinear, with and without antialiasing, and their gradients.

The host code is aten/src/ATen/native/mps/operations/UpSample.mm (main, late 2026): one thread for each element of the
output's plane, which loops over batch and channels. Gradients add into a result of zeros. In 2.15.0 those of nearest
and linear modes gather instead, one thread for each element of some planes of the result; how many is from its binary.
Without a kernel, a release uses MPSGraph: 2.13.0 for the nearest modes of one and two dimensions, their gradients, and
those of `upsample_linear1d` and `upsample_bilinear2d`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from ..call import Call
from ..plan import MAX_THREADS_OF_GROUP, Declined, KernelLaunch, Planner, ReleaseKernels, Step, in_line, required
from .metal_types import metal_name
from .names import table
from .zeroing import zeroed

# Modes that a release without their kernels leaves to MPSGraph, and the kernel that gathers their gradients.
_GATHERING = {
    "nearest1d": "nearest2d",
    "nearest_exact1d": "nearest_exact2d",
    "linear1d": "bilinear2d",
    "nearest2d": "nearest2d",
    "nearest_exact2d": "nearest_exact2d",
    "bilinear2d": "bilinear2d",
}
_CORES = 8
"""Cores of the GPU, those of the smallest Mac: how many planes a gathering kernel is given at once."""
_SIMD_WIDTH = 32
_SCALES = {1: ("scales",), 2: ("scales_h", "scales_w"), 3: ("scales_d", "scales_h", "scales_w")}


@dataclass(frozen=True, slots=True)
class _Mode:
    """A mode: the kernel's name and the number of dimensions that grow."""

    kernel: str
    dimensions: int


def _forward(mode: _Mode) -> Planner:
    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        source, result = call["self"], call.result
        name = _kernel(kernels, f"upsample_{mode.kernel}_{metal_name(source.dtype)}", mode)
        geometry = _geometry(call, kernels, name, source, result, mode)
        arguments = {"inputData": source, "outputData": result, **geometry}
        return [KernelLaunch(name, arguments, *in_line(prod(result.shape[2:])))]

    return plan


def _backward(mode: _Mode) -> Planner:
    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        gradient, result = call["grad_output"], call.result
        gathering = _GATHERING.get(mode.kernel)
        if gathering and f"upsample_{gathering}_backward_{metal_name(result.dtype)}_u32" in kernels:
            return [_gathered(call, kernels, gathering, result, gradient)]
        name = _kernel(kernels, f"upsample_{mode.kernel}_backward_{metal_name(result.dtype)}", mode)
        if not gradient.numel():
            return [zeroed(result)]
        geometry = _geometry(call, kernels, name, result, gradient, mode)
        arguments = {"gradInputData": result, "gradOutputData": gradient, **geometry}
        return [zeroed(result), KernelLaunch(name, arguments, *in_line(prod(gradient.shape[2:])))]

    return plan


def _gathered(call: Call, kernels: ReleaseKernels, mode: str, result: Tensor, gradient: Tensor) -> KernelLaunch:
    """The gradient without atomic operations, in one or two dimensions."""
    name = required(kernels, f"upsample_{mode}_backward_{metal_name(result.dtype)}_u32")
    planes, (height, width) = result.shape[0] * result.shape[1], [1, *result.shape[2:]][-2:]
    across = 1 if _is_channels_last(result) else min(MAX_THREADS_OF_GROUP, width)
    at_once = -(-MAX_THREADS_OF_GROUP * _CORES * 16 // (width * height))
    deep = min(-(-at_once // _SIMD_WIDTH) * _SIMD_WIDTH, planes)
    params = _geometry(call, kernels, name, _as_planes(result), _as_planes(gradient), _Mode(mode, result.dim() - 2))
    arguments = {"gradInputData": result, "gradOutputData": gradient, **params}
    return KernelLaunch(name, arguments, (width, height, deep), (across, 1, min(MAX_THREADS_OF_GROUP // across, deep)))


def _is_channels_last(tensor: Tensor) -> bool:
    return tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last) and not tensor.is_contiguous()


def _as_planes(tensor: Tensor) -> Tensor:
    return tensor.unsqueeze(2) if tensor.dim() == 3 else tensor


def _kernel(kernels: ReleaseKernels, name: str, mode: _Mode) -> str:
    if name not in kernels and mode.kernel in _GATHERING:
        raise Declined("MPSGraph")
    return required(kernels, name)


def _geometry(
    call: Call, kernels: ReleaseKernels, name: str, small: Tensor, large: Tensor, mode: _Mode
) -> Mapping[str, object]:
    """The kernel's sizes, strides and scales: in one struct, or up to 2.13.0 as separate arguments."""
    corners = bool(call.arguments.get("align_corners", False))
    given = [call[argument] for argument in _SCALES[mode.dimensions]]
    given = [None] * (small.dim() - 2 - len(given)) + given
    outermost_first = zip(small.shape[2:], large.shape[2:], given, strict=True)
    scales = [_scale(before, after, corners, scale) for before, after, scale in outermost_first][::-1]
    arguments = {
        "input_strides": small.stride(),
        "output_strides": large.stride(),
        "input_sizes": tuple(small.shape),
        "output_sizes": tuple(large.shape),
        "scales": scales,
        "align_corners": corners,
    }
    if "params" in kernels.signature(name):
        return {"params": arguments}
    return arguments | {"scales": scales if len(scales) == 2 else [*scales, _scale_of_height(small, large, corners)]}


def _scale(before: int, after: int, align_corners: bool, given: float | None) -> float:
    """The step in the source for one step in the result, as `area_pixel_compute_scale` computes it."""
    if align_corners:
        return (before - 1) / (after - 1) if after > 1 else 0.0
    return 1 / given if given is not None and given > 0 else before / after


def _scale_of_height(small: Tensor, large: Tensor, align_corners: bool) -> float:
    """The second scale, which older host code passes in one dimension, too; the kernel ignores it."""
    return _scale(small.shape[2], large.shape[2], align_corners, None)


_FORWARD = {
    "upsample_nearest1d": _Mode("nearest1d", 1),
    "_upsample_nearest_exact1d": _Mode("nearest_exact1d", 1),
    "upsample_nearest2d": _Mode("nearest2d", 2),
    "_upsample_nearest_exact2d": _Mode("nearest_exact2d", 2),
    "upsample_nearest3d": _Mode("nearest_3d", 3),
    "_upsample_nearest_exact3d": _Mode("nearest_exact_3d", 3),
    "upsample_linear1d": _Mode("linear1d", 1),
    "upsample_bilinear2d": _Mode("bilinear2d", 2),
    "upsample_bicubic2d": _Mode("bicubic2d", 2),
    "_upsample_bilinear2d_aa": _Mode("bilinear2d_aa", 2),
    "_upsample_bicubic2d_aa": _Mode("bicubic2d_aa", 2),
    "upsample_trilinear3d": _Mode("trilinear", 3),
}

PLANNERS: dict[str, Planner] = {
    **table([((name, f"{name}.out"), mode) for name, mode in _FORWARD.items()], _forward),
    **table(
        [((f"{name}_backward", f"{name}_backward.grad_input"), mode) for name, mode in _FORWARD.items()], _backward
    ),
}
