"""Windows as columns and back: `im2col`, `col2im`, and the gradient of `unfold`.

Source: Im2Col.mm, Col2Im.mm and UnfoldBackward.mm of aten/src/ATen/native/mps/operations (main, 2025 and 2026), whose
kernels had no `_u32` forms yet. Inferred, and verified against the CPU: `col_inner_strides` are those of rows and
columns, so that the input need not be contiguous, and the grids are unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from ..call import Call
from ..plan import MAX_THREADS_OF_GROUP, Declined, KernelLaunch, Planner, ReleaseKernels, Step, in_line, required
from .metal_types import metal_name
from .operands import at_least_one, fits_32_bits

_LANES = 32
_IM2COL_GROUP = (64, 1, 1)


def _steps_of_windows(sizes: Sequence[int], call: Call) -> list[int]:
    """The number of windows in each dimension."""
    return [
        (size + 2 * padding - (dilation * (kernel - 1) + 1)) // stride + 1
        for size, kernel, dilation, padding, stride in zip(
            sizes, *(call[name] for name in ("kernel_size", "dilation", "padding", "stride")), strict=True
        )
    ]


def _batched(tensor: Tensor, dimensions: int) -> Tensor:
    return tensor.unsqueeze(0) if tensor.dim() == dimensions - 1 else tensor


def _im2col(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    image = _batched(call["self"].contiguous(), 4)
    columns = _batched(call.result, 3)
    _check(image, columns)
    batches, channels, height, width = image.shape
    down, across = _steps_of_windows((height, width), call)
    (kernel_h, kernel_w), (dilation_h, dilation_w) = call["kernel_size"], call["dilation"]
    (padding_h, padding_w), (stride_h, stride_w) = call["padding"], call["stride"]
    arguments = {
        "inputData": image,
        "outputData": columns,
        "kernel_dilation": [kernel_w, kernel_h, dilation_w, dilation_h],
        "padding_stride": [padding_w, padding_h, stride_w, stride_h],
        "input_strides": list(reversed(image.stride())),
        "output_strides": [columns.stride(2), columns.stride(1), columns.stride(0), across],
        "input_sizes": [width, height, channels, batches],
    }
    kernel = required(kernels, f"im2col_{metal_name(image.dtype)}_u32")
    return [KernelLaunch(kernel, arguments, (down * across, channels, batches), _IM2COL_GROUP)]


def _col2im(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    columns, image = _batched(call["self"], 3), _batched(call.result, 4)
    _check(image, columns)
    if not image.is_contiguous():
        raise Declined("a result that is not contiguous")
    batches, channels, height, width = image.shape
    arguments = {
        "data_col": columns,
        "data_im": image,
        "col_batch_stride": columns.stride(0),
        "channels": channels,
        "im_hw": [height, width],
        "kernel_hw": list(call["kernel_size"]),
        "pad_hw": list(call["padding"]),
        "stride_hw": list(call["stride"]),
        "dilation_hw": list(call["dilation"]),
        "col_hw": _steps_of_windows((height, width), call),
        "im_batch_stride": image.stride(0),
        "col_inner_strides": [columns.stride(1), columns.stride(2)],
    }
    across = min(width, _LANES)
    group = (across, min(height, MAX_THREADS_OF_GROUP // across), 1)
    kernel = required(kernels, f"col2im_kernel_{metal_name(columns.dtype)}_u32")
    return [KernelLaunch(kernel, arguments, (width, height, batches * channels), group)]


def _check(*tensors: Tensor) -> None:
    if not fits_32_bits(*tensors):
        raise Declined("offsets of more than 32 bits")


def _unfold_backward(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    windows, result = call["grad_in"], call.result
    if windows.numel() == 0:
        raise Declined("no windows")
    if not result.dim():
        raise Declined("no dimensions")
    arguments = {
        "grad_in": windows,
        "grad_out": result,
        "input_strides": list(windows.stride()),
        "output_sizes": at_least_one(result.shape),
        "output_strides": at_least_one(result.stride()),
        "dim_size_step_ndim": [call["dim"] % result.dim(), call["size"], call["step"], result.dim()],
    }
    kernel = required(kernels, f"unfold_backward_{metal_name(windows.dtype)}")
    return [KernelLaunch(kernel, arguments, *in_line(result.numel()))]


PLANNERS: dict[str, Planner] = {
    **dict.fromkeys(("im2col", "im2col.out"), _im2col),
    **dict.fromkeys(("col2im", "col2im.out"), _col2im),
    "unfold_backward": _unfold_backward,
}
