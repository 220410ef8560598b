"""Fractional maximum pooling over depth, height and width, and its backward."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from ..runtime.determinism import alert_not_deterministic
from ..runtime.elementwise import FLOATING
from ..runtime.fractional import FractionalWindows, launch_fractional
from ..runtime.layout import launch_elements
from ..runtime.operands import require_scalar_type
from ..runtime.outputs import (
    check_outputs,
    contiguous_twin,
    finish,
    is_ready,
    refuse_internal_overlap,
    resize_output,
)
from ..runtime.pooling import check_fractional_samples, check_pooled_gradient
from ..runtime.shader import METAL_TYPES, Shader

_shader = Shader(__file__)
_aten = torch.ops.aten


def fractional_max_pool3d_output(
    self: torch.Tensor,
    kernel_size: Sequence[int],
    output_size: Sequence[int],
    random_samples: torch.Tensor,
    *,
    output: torch.Tensor,
    indices: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`fractional_max_pool3d.output`: maxima, and int64 positions in the contiguous volume of each plane.

    The places of the windows are computed in float32, whatever the dtype of the samples is.
    """
    check_outputs(
        _aten.fractional_max_pool3d.output,
        [self, kernel_size, output_size, random_samples],
        {"output": output, "indices": indices},
        [self.dtype, torch.int64],
    )
    _check_dtype(self)
    check_fractional_samples(self, random_samples, 3, "fractional_max_pool3d")
    if not output.numel():
        return output, indices
    values, places = contiguous_twin(output), contiguous_twin(indices)
    windows = FractionalWindows.of(self, output_size, kernel_size)
    launch_fractional(_shader, "fractional_max_pool3d", (values, places), self, random_samples, windows)
    return finish(output, values), finish(indices, places)


def fractional_max_pool3d_backward_grad_input(
    grad_output: torch.Tensor,
    self: torch.Tensor,
    kernel_size: Sequence[int],
    output_size: Sequence[int],
    indices: torch.Tensor,
    *,
    grad_input: torch.Tensor,
) -> torch.Tensor:
    """`fractional_max_pool3d_backward.grad_input`; overlapping windows add up in float32."""
    _check_dtype(self)
    if self.dim() not in (4, 5) or grad_output.dim() != self.dim():
        raise RuntimeError("fractional_max_pool3d_backward_out(): expected grad_output of the dimensions of input")
    check_pooled_gradient(grad_output, self, output_size, indices, "fractional_max_pool3d_backward_out")
    require_scalar_type(grad_input, self.dtype)
    if not is_ready(grad_input, self.shape, self.dtype):
        resize_output(grad_input, self.shape)
        refuse_internal_overlap(grad_input)
    alert_not_deterministic("fractional_max_pool3d_backward")  # where windows overlap, atomic additions meet
    is_result = grad_input.dtype == torch.float32 and grad_input.is_contiguous()
    gradient = grad_input if is_result else torch.empty(self.shape, dtype=torch.float32, device=self.device)
    gradient.zero_()
    if grad_output.numel():
        shape = [math.prod(output_size), math.prod(self.shape[-3:])]
        kernel = _shader.kernel(f"fractional_max_pool3d_backward_{METAL_TYPES[self.dtype]}", self.device)
        operands = (grad_output.contiguous(), indices.contiguous())
        launch_elements(kernel, grad_output.numel(), gradient, *operands, [*shape, grad_output.numel()], reports=True)
    return grad_input if is_result else grad_input.copy_(gradient)


def fractional_max_pool3d_backward(
    grad_output: torch.Tensor,
    self: torch.Tensor,
    kernel_size: Sequence[int],
    output_size: Sequence[int],
    indices: torch.Tensor,
) -> torch.Tensor:
    """`fractional_max_pool3d_backward`, a new tensor."""
    grad_input = torch.empty(self.shape, dtype=self.dtype, device=self.device)
    return fractional_max_pool3d_backward_grad_input(
        grad_output, self, kernel_size, output_size, indices, grad_input=grad_input
    )


def _check_dtype(x: torch.Tensor) -> None:
    if x.dtype not in FLOATING:
        raise NotImplementedError(f"fractional_max_pool3d is not implemented for {x.dtype} on mps")


KERNELS = (
    ("aten::fractional_max_pool3d.output", fractional_max_pool3d_output),
    ("aten::fractional_max_pool3d_backward", fractional_max_pool3d_backward),
    ("aten::fractional_max_pool3d_backward.grad_input", fractional_max_pool3d_backward_grad_input),
)
