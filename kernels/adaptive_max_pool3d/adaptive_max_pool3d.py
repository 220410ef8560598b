"""Adaptive maximum pooling over depth, height and width with the positions of the maxima, and its backward."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..runtime.layout import launch_elements
from ..runtime.operands import require_supported
from ..runtime.outputs import check_outputs, contiguous_output, finish, is_ready
from ..runtime.pooling import are_too_many, check_pooled_gradient, geometry3d, launch_windows, windows_of
from ..runtime.rows import fill_on_cpu
from ..runtime.shader import METAL_TYPES, Shader
from ..runtime.signatures import planned

_shader = Shader(__file__)
_aten = torch.ops.aten


def adaptive_max_pool3d_out(
    self: torch.Tensor, output_size: Sequence[int], *, out: torch.Tensor, indices: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """`adaptive_max_pool3d.out`: maxima, and int64 positions in the contiguous (depth, height, width) of each plane."""
    shape = (*self.shape[:-3], *output_size)
    if not (is_ready(out, shape, self.dtype) and is_ready(indices, shape, torch.int64)):
        outputs = {"out": out, "indices": indices}
        check_outputs(_aten.adaptive_max_pool3d.out, [self, output_size], outputs, [self.dtype, torch.int64])
    require_supported(self, "adaptive_max_pool3d")
    if not out.numel():
        return out, indices
    values, positions = contiguous_output(out), contiguous_output(indices)
    windows = planned(windows_of, (self,), tuple(output_size), "adaptive_max_pool3d")
    launch_windows(_shader, "adaptive_max_pool3d", [values, positions], self, windows)
    return finish(out, values), finish(indices, positions)


def adaptive_max_pool3d_backward_grad_input(
    grad_output: torch.Tensor, self: torch.Tensor, indices: torch.Tensor, *, grad_input: torch.Tensor
) -> torch.Tensor:
    """`adaptive_max_pool3d_backward.grad_input`: sums the gradients of the windows whose maximum an input is."""
    require_supported(self, "adaptive_max_pool3d")
    if grad_output.dtype != self.dtype:
        raise RuntimeError(f"expected dtype {self.dtype} for `grad_output` but got dtype {grad_output.dtype}")
    if not is_ready(grad_input, self.shape, self.dtype):
        operands, outputs = [grad_output, self, indices], {"grad_input": grad_input}
        check_outputs(_aten.adaptive_max_pool3d_backward.grad_input, operands, outputs, [self.dtype])
    windows, inputs = grad_output.shape[-3:], self.shape[-3:]
    check_pooled_gradient(grad_output, self, windows, indices, "adaptive_max_pool3d_backward")
    if not grad_input.numel():
        return grad_input
    gradient = contiguous_output(grad_input)
    if are_too_many("adaptive_max_pool3d_backward", grad_output, self):
        fill_on_cpu([gradient], _aten.adaptive_max_pool3d_backward, grad_output, self, indices)
        return finish(grad_input, gradient)
    geometry = geometry3d(grad_output, inputs, windows)
    kernel = _shader.kernel(f"adaptive_max_pool3d_backward_{METAL_TYPES[self.dtype]}", self.device)
    launch_elements(kernel, gradient.numel(), gradient, grad_output.contiguous(), indices.contiguous(), geometry)
    return finish(grad_input, gradient)


KERNELS = (
    ("aten::adaptive_max_pool3d.out", adaptive_max_pool3d_out),
    ("aten::adaptive_max_pool3d_backward.grad_input", adaptive_max_pool3d_backward_grad_input),
)
