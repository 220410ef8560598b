"""The backwards of antialiased resampling: two passes, along the width and along the height."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

from ...metal_limits import SIMD_WIDTH
from ..runtime.layout import memory_format_of
from ..runtime.operands import require_device, require_supported
from ..runtime.outputs import check_outputs
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
        overload = getattr(_aten, operator).grad_input
        arguments = [grad_output, output_size, input_size, align_corners, scales_h, scales_w]
        check_outputs(overload, arguments, {"grad_input": grad_input}, [grad_output.dtype])
        require_device(grad_output, {"grad_input": grad_input}, overload._schema.name)
        require_supported(grad_output, overload._schema.name)
        if grad_input.numel() == 0:
            return grad_input
        scales = window_distances(input_size[2:], output_size, align_corners, (scales_h, scales_w))
        # A thread an output fills its window with weights, then one an input gathers from the windows around it.
        distances = (*scales, *(1.0 / scale if scale else 1.0 for scale in scales))
        if is_too_far(operator, filter_name, distances, (*input_size[2:], *output_size)):
            fill_on_cpu([grad_input], getattr(_aten, operator), *arguments)
            return grad_input
        middle = torch.empty((*grad_output.shape[:3], input_size[3]), dtype=torch.float32, device=grad_output.device)
        _gather(middle, grad_output, _WIDTH, filter_name, scales[1])
        _gather(grad_input, middle, _HEIGHT, filter_name, scales[0])
        return grad_input

    return grad_input_of


def _gather(out: torch.Tensor, source: torch.Tensor, axis: int, filter_name: str, scale: float) -> None:
    """The backward of resampling along one axis: from the gradients of its outputs to those of its inputs, `out`."""
    outputs, inputs = source.shape[axis], out.shape[axis]
    reach = SUPPORT[filter_name] * max(scale, 1.0)
    room = 2 * math.ceil(reach) + 1
    windows = torch.empty((outputs, 2), dtype=torch.int32, device=out.device)
    weights = torch.empty((outputs, room), dtype=torch.float32, device=out.device)
    table = _shader.kernel(f"weights_{filter_name}", out.device)
    table(windows, weights, [outputs, inputs, room], scale, threads=outputs)
    geometry = [*out.shape, *out.stride(), *source.stride(), axis, outputs, room]
    kernel = _shader.kernel(f"backward_{METAL_TYPES[source.dtype]}_{METAL_TYPES[out.dtype]}", out.device)
    images, channels, height, width = out.shape
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
