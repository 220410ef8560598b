"""Adaptive average pooling over depth, height and width, with its backward; sums in float32.

Pooling over height and width overrides torch's kernel for sizes that do not divide each other, which it refuses.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..runtime.layout import launch_elements
from ..runtime.operands import require_scalar_type, require_supported
from ..runtime.outputs import out_form
from ..runtime.pooling import are_too_many, check_pooled, geometry3d, launch_windows, windows_of
from ..runtime.rows import fill_on_cpu
from ..runtime.shader import METAL_TYPES, Shader
from ..runtime.signatures import planned

_shader = Shader(__file__)


def adaptive_avg_pool3d(self: torch.Tensor, output_size: Sequence[int]) -> torch.Tensor:
    """`_adaptive_avg_pool3d`: `self` is (images, channels, depth, height, width) or without images, of any strides."""
    windows = planned(windows_of, (self,), tuple(output_size), "adaptive_avg_pool3d")
    out = torch.empty_strided(windows.shape, windows.strides, dtype=self.dtype, device=self.device)
    if out.numel():  # an empty result may have any dtype, as on the CPU
        require_supported(self, "adaptive_avg_pool3d")
        launch_windows(_shader, "adaptive_avg_pool3d", [out], self, windows)
    return out


_into_output = out_form(adaptive_avg_pool3d, "adaptive_avg_pool3d.out")


def adaptive_avg_pool3d_out(self: torch.Tensor, output_size: Sequence[int], *, out: torch.Tensor) -> torch.Tensor:
    """`adaptive_avg_pool3d.out`."""
    require_scalar_type(out, self.dtype)  # before the dtypes that it takes, as on the CPU
    return _into_output(self, output_size, out=out)  # type: ignore[no-any-return]


def adaptive_avg_pool3d_backward(grad_output: torch.Tensor, self: torch.Tensor) -> torch.Tensor:
    """`_adaptive_avg_pool3d_backward`, of the input's shape."""
    windows = grad_output.shape[-3:]
    check_pooled(grad_output, windows, "adaptive_avg_pool3d_backward")
    require_supported(self, "adaptive_avg_pool3d")
    if grad_output.dim() != self.dim():
        raise RuntimeError(
            f"adaptive_avg_pool3d_backward: Expected dimensions {self.dim()} for `gradOutput_` but got dimensions "
            f"{grad_output.dim()}"
        )
    require_scalar_type(grad_output, self.dtype)
    planes, given = self.shape[:-3], grad_output.shape[:-3]
    if given != planes and any(count < needed for count, needed in zip(given, planes, strict=True)):
        raise RuntimeError(
            f"adaptive_avg_pool3d_backward: expected `gradOutput_` of {list(planes)} planes or more but got sizes "
            f"{list(grad_output.shape)}"
        )
    if given != planes:  # the CPU ignores further planes
        grad_output = grad_output[tuple(map(slice, planes))]
    gradient = torch.empty_like(self, memory_format=torch.contiguous_format)
    if not gradient.numel():
        return gradient
    if are_too_many("adaptive_avg_pool3d_backward", grad_output, self):
        fill_on_cpu([gradient], torch.ops.aten._adaptive_avg_pool3d_backward, grad_output, self)
    else:
        geometry = geometry3d(grad_output, self.shape[-3:], windows)
        kernel = _shader.kernel(f"adaptive_avg_pool3d_backward_{METAL_TYPES[self.dtype]}", self.device)
        launch_elements(kernel, gradient.numel(), gradient, grad_output, geometry)
    return gradient


adaptive_avg_pool3d_backward_grad_input = out_form(
    adaptive_avg_pool3d_backward, "adaptive_avg_pool3d_backward.grad_input", ["grad_input"]
)


def adaptive_avg_pool2d(self: torch.Tensor, output_size: Sequence[int]) -> torch.Tensor:
    """`_adaptive_avg_pool2d`: pooling with a depth of one."""
    return adaptive_avg_pool3d(self.unsqueeze(-3), (1, *output_size)).squeeze(-3)


adaptive_avg_pool2d_out = out_form(adaptive_avg_pool2d, "adaptive_avg_pool2d.out")


def adaptive_avg_pool2d_backward(grad_output: torch.Tensor, self: torch.Tensor) -> torch.Tensor:
    """`_adaptive_avg_pool2d_backward`."""
    require_scalar_type(grad_output, self.dtype)  # before the dtypes that it takes, as on the CPU
    return adaptive_avg_pool3d_backward(grad_output.unsqueeze(-3), self.unsqueeze(-3)).squeeze(-3)


def sizes_do_not_divide(self: torch.Tensor, output_size: Sequence[int], *, out: torch.Tensor | None = None) -> bool:
    """Whether torch's own kernel on mps refuses the sizes: it pools and repeats whole numbers of elements only."""
    return len(output_size) == 2 and _is_refused(self.shape, *output_size)


def gradient_sizes_do_not_divide(grad_output: torch.Tensor, self: torch.Tensor) -> bool:
    """The same for the backward."""
    sizes = grad_output.shape
    return len(sizes) > 1 and _is_refused(self.shape, sizes[-2], sizes[-1])


def _is_refused(inputs: torch.Size, height: int, width: int) -> bool:
    """Every call of torch's own kernel checks this first, so it allocates nothing."""
    return len(inputs) in (3, 4) and (_is_uneven(inputs[-1], width) or _is_uneven(inputs[-2], height))


def _is_uneven(before: int, after: int) -> bool:
    return bool(before and after and before % after and after % before)


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
