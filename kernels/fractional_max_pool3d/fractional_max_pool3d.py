"""Fractional maximum pooling over depth, height and width, and its backward."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..runtime.fractional import pool, pool_backward
from ..runtime.operands import require_scalar_type, require_supported
from ..runtime.outputs import (
    check_outputs,
    functional_form,
    is_ready,
    refuse_internal_overlap,
    resize_output,
)
from ..runtime.shader import Shader

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

    The positions of the windows are computed in float32 for every dtype of the samples.
    """
    check_outputs(
        _aten.fractional_max_pool3d.output,
        [self, kernel_size, output_size, random_samples],
        {"output": output, "indices": indices},
        [self.dtype, torch.int64],
    )
    require_supported(self, "fractional_max_pool3d")
    outputs = output, indices
    return pool(_shader, "fractional_max_pool3d", self, kernel_size, output_size, random_samples, outputs)


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
    require_supported(self, "fractional_max_pool3d")
    if self.dim() not in (4, 5) or grad_output.dim() != self.dim():
        raise RuntimeError("fractional_max_pool3d_backward_out(): expected grad_output of the dimensions of input")
    if not is_ready(grad_input, self.shape, self.dtype):
        require_scalar_type(grad_input, self.dtype)
        resize_output(grad_input, self.shape)
        refuse_internal_overlap(grad_input)
    return pool_backward(_shader, "fractional_max_pool3d_backward", grad_output, self, output_size, indices, grad_input)


fractional_max_pool3d_backward = functional_form(fractional_max_pool3d_backward_grad_input, "grad_input")
KERNELS = (
    ("aten::fractional_max_pool3d.output", fractional_max_pool3d_output),
    ("aten::fractional_max_pool3d_backward", fractional_max_pool3d_backward),
    ("aten::fractional_max_pool3d_backward.grad_input", fractional_max_pool3d_backward_grad_input),
)
