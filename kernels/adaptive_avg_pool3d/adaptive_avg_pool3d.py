"""Adaptive average pooling over depth, height and width, with its backward; sums in float32.

The same over height and width replaces torch's own kernel for sizes that do not divide each other, which that refuses.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..runtime.elementwise import FLOATING
from ..runtime.layout import launch_elements
from ..runtime.operands import require_scalar_type
from ..runtime.outputs import refuse_internal_overlap, require_dtype, resize_output
from ..runtime.pooling import check_pooled, geometry3d, has_large_windows
from ..runtime.rows import launch_rows
from ..runtime.shader import METAL_TYPES, Shader

_shader = Shader(__file__)
_GROUP = 256  # the size that the Metal kernel for large windows is written for


def adaptive_avg_pool3d(self: torch.Tensor, output_size: Sequence[int]) -> torch.Tensor:
    """`_adaptive_avg_pool3d`: `self` is (images, channels, depth, height, width) or without images, of any strides."""
    check_pooled(self, output_size, "adaptive_avg_pool3d")
    inputs = self.shape[-3:]
    out = torch.empty((*self.shape[:-3], *output_size), dtype=self.dtype, device=self.device)
    if not out.numel():  # of any dtype, as on the CPU
        return out
    _check_dtype(self)
    suffix = METAL_TYPES[self.dtype]
    geometry = geometry3d(self, inputs, output_size)
    if has_large_windows(inputs, output_size):
        kernel = _shader.kernel(f"adaptive_avg_pool3d_large_{suffix}", self.device)
        launch_rows(kernel, out.numel(), _GROUP, out, self, geometry)
    else:
        kernel = _shader.kernel(f"adaptive_avg_pool3d_{suffix}", self.device)
        launch_elements(kernel, out.numel(), out, self, geometry)
    return out


def adaptive_avg_pool3d_out(self: torch.Tensor, output_size: Sequence[int], *, out: torch.Tensor) -> torch.Tensor:
    """`adaptive_avg_pool3d.out`."""
    require_dtype(out, self.dtype, "adaptive_avg_pool3d")
    result = adaptive_avg_pool3d(self, output_size)
    resize_output(out, result.shape)
    refuse_internal_overlap(out)
    return out.copy_(result)


def adaptive_avg_pool3d_backward(grad_output: torch.Tensor, self: torch.Tensor) -> torch.Tensor:
    """`_adaptive_avg_pool3d_backward`, of the input's shape."""
    check_pooled(grad_output, grad_output.shape[-3:], "adaptive_avg_pool3d_backward")
    _check_dtype(self)
    if grad_output.dim() != self.dim():
        raise RuntimeError(
            f"adaptive_avg_pool3d_backward: Expected dimensions {self.dim()} for `gradOutput_` but got dimensions "
            f"{grad_output.dim()}"
        )
    require_scalar_type(grad_output, self.dtype)
    planes = self.shape[:-3]
    if any(given < needed for given, needed in zip(grad_output.shape, planes, strict=False)):
        raise RuntimeError(
            f"adaptive_avg_pool3d_backward: expected `gradOutput_` of {list(planes)} planes or more but got sizes "
            f"{list(grad_output.shape)}"
        )
    grad_output = grad_output[tuple(map(slice, planes))]  # of more planes the CPU leaves the others alone
    gradient = torch.empty(self.shape, dtype=self.dtype, device=self.device)
    if gradient.numel():
        geometry = geometry3d(grad_output, self.shape[-3:], grad_output.shape[-3:])
        kernel = _shader.kernel(f"adaptive_avg_pool3d_backward_{METAL_TYPES[self.dtype]}", self.device)
        launch_elements(kernel, gradient.numel(), gradient, grad_output, geometry)
    return gradient


def adaptive_avg_pool3d_backward_grad_input(
    grad_output: torch.Tensor, self: torch.Tensor, *, grad_input: torch.Tensor
) -> torch.Tensor:
    """`adaptive_avg_pool3d_backward.grad_input`."""
    require_dtype(grad_input, self.dtype, "adaptive_avg_pool3d_backward")
    result = adaptive_avg_pool3d_backward(grad_output, self)
    resize_output(grad_input, result.shape)
    refuse_internal_overlap(grad_input)
    return grad_input.copy_(result)


def adaptive_avg_pool2d(self: torch.Tensor, output_size: Sequence[int]) -> torch.Tensor:
    """`_adaptive_avg_pool2d`: pooling of a depth of one."""
    return adaptive_avg_pool3d(self.unsqueeze(-3), (1, *output_size)).squeeze(-3)


def adaptive_avg_pool2d_out(self: torch.Tensor, output_size: Sequence[int], *, out: torch.Tensor) -> torch.Tensor:
    """`adaptive_avg_pool2d.out`."""
    require_dtype(out, self.dtype, "adaptive_avg_pool2d")
    result = adaptive_avg_pool2d(self, output_size)
    resize_output(out, result.shape)
    refuse_internal_overlap(out)
    return out.copy_(result)


def adaptive_avg_pool2d_backward(grad_output: torch.Tensor, self: torch.Tensor) -> torch.Tensor:
    """`_adaptive_avg_pool2d_backward`."""
    return adaptive_avg_pool3d_backward(grad_output.unsqueeze(-3), self.unsqueeze(-3)).squeeze(-3)


def sizes_do_not_divide(self: torch.Tensor, output_size: Sequence[int], *, out: torch.Tensor | None = None) -> bool:
    """Whether torch's own kernel on mps refuses the sizes: it pools and repeats whole numbers of elements only."""
    return len(output_size) == 2 and _is_refused(self.shape, *output_size)


def gradient_sizes_do_not_divide(grad_output: torch.Tensor, self: torch.Tensor) -> bool:
    """The same for the backward."""
    sizes = grad_output.shape
    return len(sizes) > 1 and _is_refused(self.shape, sizes[-2], sizes[-1])


def _is_refused(inputs: torch.Size, height: int, width: int) -> bool:
    """Every call of torch's own kernel asks this first: nothing is made that is not needed."""
    return len(inputs) in (3, 4) and (_is_uneven(inputs[-1], width) or _is_uneven(inputs[-2], height))


def _is_uneven(before: int, after: int) -> bool:
    return bool(before and after and before % after and after % before)


def _check_dtype(x: torch.Tensor) -> None:
    if x.dtype not in FLOATING:
        raise NotImplementedError(f"adaptive_avg_pool3d is not implemented for {x.dtype} on mps")


KERNELS = (
    ("aten::_adaptive_avg_pool3d", adaptive_avg_pool3d),
    ("aten::adaptive_avg_pool3d.out", adaptive_avg_pool3d_out),
    ("aten::_adaptive_avg_pool3d_backward", adaptive_avg_pool3d_backward),
    ("aten::adaptive_avg_pool3d_backward.grad_input", adaptive_avg_pool3d_backward_grad_input),
)
OVERRIDES = (
    ("aten::_adaptive_avg_pool2d", adaptive_avg_pool2d, sizes_do_not_divide),
    ("aten::adaptive_avg_pool2d.out", adaptive_avg_pool2d_out, sizes_do_not_divide),
    ("aten::_adaptive_avg_pool2d_backward", adaptive_avg_pool2d_backward, gradient_sizes_do_not_divide),
)
