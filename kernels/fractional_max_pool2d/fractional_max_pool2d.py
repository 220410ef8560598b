"""Fractional maximum pooling over height and width, and its backward."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..runtime.fractional import pool, pool_backward
from ..runtime.operands import FLOATING, not_implemented
from ..runtime.outputs import check_outputs, is_ready, require_dtype
from ..runtime.shader import Shader

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

    The positions of the windows are computed in float32 for every dtype of the samples.
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
    outputs = output, indices
    return pool(_shader, "fractional_max_pool2d", self, kernel_size, output_size, random_samples, outputs)


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
    return pool_backward(_shader, "fractional_max_pool2d_backward", grad_output, self, output_size, indices, grad_input)


def _check_dtype(x: torch.Tensor, kernel: str) -> None:
    """Raise what the CPU's `kernel` raises."""
    if x.dtype not in FLOATING:
        raise not_implemented(kernel, x.dtype)


KERNELS = (
    ("aten::fractional_max_pool2d.output", fractional_max_pool2d_output),
    ("aten::fractional_max_pool2d_backward.grad_input", fractional_max_pool2d_backward_grad_input),
)
