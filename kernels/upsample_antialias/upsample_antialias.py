"""The backwards of antialiased resampling: two passes, along the width and along the height."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

from ...metal_limits import SIMD_WIDTH
from ..runtime.layout import memory_format_of
from ..runtime.operands import require_device, require_supported
from ..runtime.outputs import check_outputs, is_ready
from ..runtime.resampling import SUPPORT, is_too_far, window_distances
from ..runtime.rows import fill_on_cpu
from ..runtime.shader import METAL_TYPES, Shader

_shader = Shader(__file__)
_aten = torch.ops.aten
_HEIGHT, _WIDTH = 2, 3
_GROUP = (SIMD_WIDTH, 8, 1)


def _backward(filter_name: str, operator: str) -> Callable[..., torch.Tensor]:
    """The function for one filter. Its overload checks the arguments on meta; an older torch may lack the overload."""

    def grad_input_of(
        grad_output: torch.Tensor,
        output_size: Sequence[int],
        input_size: Sequence[int],
        align_corners: bool,
        scales_h: float | None = None,
        scales_w: float | None = None,
        *,
        grad_input: torch.Tensor,
    ) -> torch.Tensor:
        """The gradient of the input, summed in float32. Each element gathers its summands: the sum is deterministic."""
        arguments = (grad_output, output_size, input_size, align_corners, scales_h, scales_w)
        if not _fits(grad_output, output_size, input_size, grad_input):
            overload = getattr(_aten, operator).grad_input
            check_outputs(overload, arguments, {"grad_input": grad_input}, [grad_output.dtype])
        require_device(grad_output, {"grad_input": grad_input}, f"aten::{operator}")
        require_supported(grad_output, f"aten::{operator}")
        if grad_input.numel() == 0:
            return grad_input
        images, channels, *inputs = input_size
        scales = window_distances(inputs, output_size, align_corners, (scales_h, scales_w))
        # A thread an output fills its window with weights, then one an input gathers from the windows around it.
        distances = (*scales, *[1.0 / scale if scale else 1.0 for scale in scales])
        if is_too_far(operator, filter_name, distances, (*inputs, *output_size)):
            fill_on_cpu([grad_input], getattr(_aten, operator), *arguments)
            return grad_input
        shape = (images, channels, output_size[0], inputs[1])
        middle = torch.empty(shape, dtype=torch.float32, device=grad_output.device)
        _gather(middle, grad_output, _WIDTH, filter_name, scales[1])
        _gather(grad_input, middle, _HEIGHT, filter_name, scales[0])
        return grad_input

    return grad_input_of


def _fits(
    grad_output: torch.Tensor, output_size: Sequence[int], input_size: Sequence[int], grad_input: torch.Tensor
) -> bool:
    """Whether nothing is to be refused. What does not fit goes to the meta kernel, which takes far longer."""
    if len(output_size) != 2 or len(input_size) != 4 or 0 in output_size or 0 in input_size:
        return False
    images, channels, *_ = input_size
    shape = (images, channels, *output_size)
    return grad_output.shape == shape and is_ready(grad_input, input_size, grad_output.dtype)


def _gather(out: torch.Tensor, source: torch.Tensor, axis: int, filter_name: str, scale: float) -> None:
    """The backward of resampling along one axis: from the gradients of its outputs to those of its inputs, `out`."""
    shape, device = out.shape, out.device
    images, channels, height, width = shape
    outputs, inputs = source.shape[axis], shape[axis]
    reach = SUPPORT[filter_name] * max(scale, 1.0)
    room = 2 * math.ceil(reach) + 1
    windows = torch.empty((outputs, 2), dtype=torch.int32, device=device)
    weights = torch.empty((outputs, room), dtype=torch.float32, device=device)
    table = _shader.kernel(f"weights_{filter_name}", device)
    table(windows, weights, [outputs, inputs, room], scale, threads=outputs)
    geometry = [*shape, *out.stride(), *source.stride(), axis, outputs, room]
    kernel = _shader.kernel(f"backward_{METAL_TYPES[source.dtype]}_{METAL_TYPES[out.dtype]}", device)
    threads = (width, height, images * channels)
    kernel(out, source, windows, weights, geometry, scale, reach, threads=threads, group_size=_GROUP)


def fake_grad_input(
    grad_output: torch.Tensor, output_size: Sequence[int], input_size: Sequence[int], *arguments: object
) -> torch.Tensor:
    """The shape and memory format of each backward, for fake tensors."""
    memory_format = memory_format_of(grad_output)
    return grad_output.new_empty(tuple(input_size)).to(memory_format=memory_format)


KERNELS = (
    ("aten::_upsample_bilinear2d_aa_backward.grad_input", _backward("linear", "_upsample_bilinear2d_aa_backward")),
    ("aten::_upsample_bicubic2d_aa_backward.grad_input", _backward("cubic", "_upsample_bicubic2d_aa_backward")),
    ("aten::_upsample_lanczos2d_aa_backward.grad_input", _backward("lanczos", "_upsample_lanczos2d_aa_backward")),
)
FAKES = tuple((overload.removesuffix(".grad_input"), fake_grad_input) for overload, _ in KERNELS)
