"""Fractional maximum pooling over height and width, and its backward."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..runtime.determinism import alert_not_deterministic
from ..runtime.elementwise import FLOATING
from ..runtime.fractional import FractionalWindows, launch_fractional
from ..runtime.layout import launch_elements
from ..runtime.operands import not_implemented
from ..runtime.outputs import check_outputs, contiguous_twin, finish, is_ready, require_dtype
from ..runtime.pooling import check_fractional_samples, check_pooled_gradient
from ..runtime.shader import METAL_TYPES, Shader

_shader = Shader(__file__)
_aten = torch.ops.aten


def fractional_max_pool2d_output(
    self: torch.Tensor,
    kernel_size: Sequence[int],
    output_size: Sequence[int],
    random_samples: torch.Tensor,
    *,
    output: torch.Tensor,
    indices: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`fractional_max_pool2d.output`: maxima, and int64 positions in the contiguous (height, width) of each plane.

    The places of the windows are computed in float32, whatever the dtype of the samples is.
    """
    shape = (*self.shape[:-2], *output_size)
    if not (is_ready(output, shape, self.dtype) and is_ready(indices, shape, torch.int64)):
        check_outputs(
            _aten.fractional_max_pool2d.output,
            [self, kernel_size, output_size, random_samples],
            {"output": output, "indices": indices},
            [self.dtype, torch.int64],
        )
    _check_dtype(self, "fractional_max_pool2d_out_frame")
    check_fractional_samples(self, random_samples, 2, "fractional_max_pool2d")
    if not output.numel():
        return output, indices
    values, places = contiguous_twin(output), contiguous_twin(indices)
    windows = FractionalWindows.of(self, output_size, kernel_size)
    launch_fractional(_shader, "fractional_max_pool2d", (values, places), self, random_samples, windows)
    return finish(output, values), finish(indices, places)


def fractional_max_pool2d_backward_grad_input(
    grad_output: torch.Tensor,
    self: torch.Tensor,
    kernel_size: Sequence[int],
    output_size: Sequence[int],
    indices: torch.Tensor,
    *,
    grad_input: torch.Tensor,
) -> torch.Tensor:
    """`fractional_max_pool2d_backward.grad_input`; overlapping windows add up in float32."""
    require_dtype(grad_input, self.dtype, "fractional_max_pool2d_backward")
    _check_dtype(self, "fractional_max_pool2d_backward_out_frame")
    if not is_ready(grad_input, self.shape, self.dtype):
        check_outputs(
            _aten.fractional_max_pool2d_backward.grad_input,
            [grad_output, self, kernel_size, output_size, indices],
            {"grad_input": grad_input},
            [self.dtype],
        )
    check_pooled_gradient(grad_output, self, output_size, indices, "fractional_max_pool2d_backward")
    alert_not_deterministic("fractional_max_pool2d_backward")  # where windows overlap, atomic additions meet
    is_result = grad_input.dtype == torch.float32 and grad_input.is_contiguous()
    gradient = grad_input if is_result else torch.empty(self.shape, dtype=torch.float32, device=self.device)
    gradient.zero_()
    if grad_output.numel():
        shape = [output_size[0] * output_size[1], self.shape[-2] * self.shape[-1]]
        kernel = _shader.kernel(f"fractional_max_pool2d_backward_{METAL_TYPES[self.dtype]}", self.device)
        operands = (grad_output.contiguous(), indices.contiguous())
        launch_elements(kernel, grad_output.numel(), gradient, *operands, [*shape, grad_output.numel()], reports=True)
    return grad_input if is_result else grad_input.copy_(gradient)


def _check_dtype(x: torch.Tensor, kernel: str) -> None:
    """Raise in the words of the CPU's kernel of this name."""
    if x.dtype not in FLOATING:
        raise not_implemented(kernel, x.dtype)


KERNELS = (
    ("aten::fractional_max_pool2d.output", fractional_max_pool2d_output),
    ("aten::fractional_max_pool2d_backward.grad_input", fractional_max_pool2d_backward_grad_input),
)
