"""The backwards of antialiased resampling: two passes, along the width and along the height."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from ...metal_limits import SIMD_WIDTH
from ..runtime.layout import memory_format_of
from ..runtime.operands import require_device, require_supported
from ..runtime.outputs import check_outputs, is_ready
from ..runtime.resampling import SUPPORT, is_too_far, window_distances
from ..runtime.rows import fill_on_cpu
from ..runtime.shader import METAL_TYPES, Shader
from ..runtime.signatures import keep, plans

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
        arguments = (output_size, input_size, align_corners, scales_h, scales_w)
        numbers = (tuple(output_size), tuple(input_size), align_corners, scales_h, scales_w)
        signature = (
            (operator, numbers, grad_output.dtype, grad_output.shape, grad_output.stride(), grad_output.get_device()),
            (grad_input.dtype, grad_input.shape, grad_input.stride(), grad_input.get_device()),
        )
        plan = plans.get(signature)
        if plan is None:
            plan = keep(signature, _plan_of_fitting(grad_output, grad_input, operator, filter_name, *numbers))
        if plan is None:
            given = (grad_output, *arguments)
            check_outputs(getattr(_aten, operator).grad_input, given, {"grad_input": grad_input}, [grad_output.dtype])
            require_device(grad_output, {"grad_input": grad_input}, f"aten::{operator}")
            require_supported(grad_output, f"aten::{operator}")
            if grad_input.numel() == 0:
                return grad_input
            plan = _plan(grad_output, grad_input, filter_name, *numbers)
        if is_too_far(operator, filter_name, plan.distances, plan.sizes):
            fill_on_cpu([grad_input], getattr(_aten, operator), grad_output, *arguments)
            return grad_input
        device = grad_output.device
        middle = torch.empty(plan.middle, dtype=torch.float32, device=device)
        first, second = plan.passes
        _gather(middle, grad_output, first, device)
        _gather(grad_input, middle, second, device)
        return grad_input

    return grad_input_of


class _Pass(NamedTuple):
    """The backward of resampling along one axis, from the gradients of its outputs to those of its inputs."""

    kernels: tuple[str, str]  # of the weights, and of the gradients
    outputs: int
    shapes: tuple[tuple[int, int], tuple[int, int]]  # of the windows and their weights
    table: list[int]  # outputs, inputs, room for weights
    scale: float
    geometry: list[int]
    reach: float
    threads: tuple[int, int, int]


class _Plan(NamedTuple):
    """The passes, the shape of the gradients between them, and what decides whether a launch takes too long."""

    passes: tuple[_Pass, _Pass]
    middle: tuple[int, ...]
    distances: Sequence[float]
    sizes: Sequence[int]


def _plan_of_fitting(
    grad_output: torch.Tensor,
    grad_input: torch.Tensor,
    operator: str,
    filter_name: str,
    output_size: Sequence[int],
    input_size: Sequence[int],
    *numbers: Any,
) -> _Plan | None:
    """The plan if nothing is to be refused. What does not fit goes to the meta kernel, which takes far longer."""
    if len(output_size) != 2 or len(input_size) != 4 or 0 in output_size or 0 in input_size:
        return None
    fits = grad_output.shape == (*input_size[:2], *output_size)
    if not (fits and is_ready(grad_input, input_size, grad_output.dtype)):
        return None
    require_device(grad_output, {"grad_input": grad_input}, f"aten::{operator}")
    require_supported(grad_output, f"aten::{operator}")
    return _plan(grad_output, grad_input, filter_name, output_size, input_size, *numbers)


def _plan(
    grad_output: torch.Tensor,
    grad_input: torch.Tensor,
    filter_name: str,
    output_size: Sequence[int],
    input_size: Sequence[int],
    align_corners: bool,
    *given: float | None,
) -> _Plan:
    """The passes along the width and along the height.

    A thread an output fills its window with weights, then one an input gathers from the windows around it.
    """
    inputs = input_size[2:]
    scales = window_distances(inputs, output_size, align_corners, given)
    middle = torch.empty((*grad_output.shape[:3], inputs[1]), device="meta")
    passes = (
        _pass(middle, grad_output, _WIDTH, filter_name, scales[1]),
        _pass(grad_input, middle, _HEIGHT, filter_name, scales[0]),
    )
    distances = (*scales, *[1.0 / scale if scale else 1.0 for scale in scales])
    return _Plan(passes, tuple(middle.shape), distances, (*inputs, *output_size))


def _pass(out: torch.Tensor, source: torch.Tensor, axis: int, filter_name: str, scale: float) -> _Pass:
    images, channels, height, width = out.shape
    outputs, inputs = source.shape[axis], out.shape[axis]
    reach = SUPPORT[filter_name] * max(scale, 1.0)
    room = 2 * math.ceil(reach) + 1
    geometry = [*out.shape, *out.stride(), *source.stride(), axis, outputs, room]
    kernels = f"weights_{filter_name}", f"backward_{METAL_TYPES[source.dtype]}_{METAL_TYPES[out.dtype]}"
    table, threads = [outputs, inputs, room], (width, height, images * channels)
    return _Pass(kernels, outputs, ((outputs, 2), (outputs, room)), table, scale, geometry, reach, threads)


def _gather(out: torch.Tensor, source: torch.Tensor, step: _Pass, device: torch.device) -> None:
    (first, second), outputs, shapes, sizes, scale, geometry, reach, threads = step
    windows = torch.empty(shapes[0], dtype=torch.int32, device=device)
    weights = torch.empty(shapes[1], dtype=torch.float32, device=device)
    _shader.kernel(first, device)(windows, weights, sizes, scale, threads=outputs)
    kernel = _shader.kernel(second, device)
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
