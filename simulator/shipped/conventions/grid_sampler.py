"""Grid sampling in two and three dimensions, and its gradients.

The host code is aten/src/ATen/native/mps/operations/GridSampler.mm. Public versions are older than 2.13.0. The rest
was read from its binary: kernels with 64-bit indices for tensors of 2**31 elements and more, the order in which results
are set to zero, and one kernel per gradient. In two dimensions one thread samples all channels of a point of the grid.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from ..call import Call
from ..plan import Declined, KernelLaunch, Planner, ReleaseKernels, Step, in_line, required
from .metal_types import metal_name
from .zeroing import zeroed

_INTERPOLATION = ("bilinear", "nearest", "bicubic")
_PADDING = ("zeros", "border", "reflection")
_NEAREST, _BICUBIC = 1, 2
_TILE = 16


def _grid_sampler_2d(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    result = call.result
    points = result.shape[0] * result.shape[2] * result.shape[3]
    return [_sampled(call, kernels, "grid_sampler_2d", points)]


def _grid_sampler_3d(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    return [_sampled(call, kernels, "grid_sampler_3d", call.result.numel())]


def _sampled(call: Call, kernels: ReleaseKernels, operator: str, threads: int) -> KernelLaunch:
    source, grid, result = call["input"], call["grid"], call.result
    mode = f"{_INTERPOLATION[call['interpolation_mode']]}_{_PADDING[call['padding_mode']]}"
    name = required(kernels, f"{operator}_{mode}_{_indices(source, grid, result)}_{metal_name(source.dtype)}")
    arguments = {"output": result, "input": source, "grid": grid, "params": _forward(call, result, source, grid)}
    return KernelLaunch(name, arguments, *in_line(threads))


def _indices(*tensors: Tensor) -> str:
    """The width of the kernel's indices."""
    reach = (sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True)) for t in tensors if t.numel())
    return "i32" if all(last < 2**31 for last in reach) else "i64"


def _forward(call: Call, output: Tensor, source: Tensor, grid: Tensor) -> dict[str, object]:
    tensors = {"output": output, "input": source, "grid": grid}
    return {
        "sampler_dims": source.dim() - 2,
        "align_corners": call["align_corners"],
        **{f"{name}_sizes": tuple(tensor.shape) for name, tensor in tensors.items()},
        **{f"{name}_strides": tensor.stride() for name, tensor in tensors.items()},
    }


# ------------------------------------------------------------------------------------------------- gradients
def _grid_sampler_2d_backward(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    mode, gradient = call["interpolation_mode"], call["grad_output"]
    source, grid = call["input"], call["grid"]
    of_input, of_grid = _gradients(call)
    steps: list[Step] = [zeroed(of_input)] if of_input is not None else []
    steps += [zeroed(of_grid)] if mode == _NEAREST else []
    points = grid.shape[0] * grid.shape[1] * grid.shape[2]
    if not points:
        return steps
    kind = f"_{_indices(gradient, source, grid)}_{metal_name(source.dtype)}"
    padded = f"_{_PADDING[call['padding_mode']]}{kind}"
    params = _backward(call, of_input, of_grid)
    if of_input is not None:
        stem = f"grid_sampler_2d_backward_{_INTERPOLATION[mode]}_input"
        name = required(kernels, stem + (padded if mode == _BICUBIC else kind))
        arguments = {"grad_input": of_input, "grad_output": gradient, "grid": grid, "params": params}
        steps.append(KernelLaunch(name, arguments, *in_line(points)))
    if mode != _NEAREST:
        stem = f"grid_sampler_2d_backward_{_INTERPOLATION[mode]}_grid"
        name = required(kernels, stem + (padded if mode == _BICUBIC else kind))
        arguments = {"grad_grid": of_grid, "grad_output": gradient, "input": source, "grid": grid, "params": params}
        steps.append(KernelLaunch(name, arguments, *in_line(points)))
    return steps


def _grid_sampler_3d_backward(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    gradient, source, grid = (call[name].contiguous() for name in ("grad_output", "input", "grid"))
    of_input, of_grid = _gradients(call)
    name = required(kernels, f"grid_sampler_3d_backward_{_indices(gradient, source, grid)}_{metal_name(source.dtype)}")
    steps: list[Step] = [zeroed(of_input)] if of_input is not None else []
    steps += [zeroed(of_grid)] if call["interpolation_mode"] == _NEAREST else []
    arguments = {
        "grad_output": gradient,
        "input": source,
        "grid": grid,
        "grad_input": of_input if of_input is not None else source.new_zeros(1),
        "grad_grid": of_grid,
        "params": _backward(call, of_input, of_grid, gradient, source, grid),
    }
    batch, depth, height, width = grid.shape[:4]
    return [*steps, KernelLaunch(name, arguments, (width, height * depth, batch), (_TILE, _TILE, 1))]


def _gradients(call: Call) -> tuple[Tensor | None, Tensor]:
    """The gradient of the input, or None if it is not requested, and the gradient of the grid."""
    if not call["output_mask"][0]:
        if len(call.results) != 1:
            raise Declined("a gradient that was not asked for")
        return None, call.result
    return call.results[0], call.results[1]


def _backward(call: Call, of_input: Tensor | None, of_grid: Tensor, *contiguous: Tensor) -> dict[str, object]:
    gradient, source, grid = contiguous or (call["grad_output"], call["input"], call["grid"])
    return {
        "forward": _forward(call, gradient, source, grid),
        "grad_output_strides": gradient.stride(),
        **({"grad_input_strides": of_input.stride()} if of_input is not None else {}),
        "grad_grid_strides": of_grid.stride(),
        "padding_mode": call["padding_mode"],
        "interpolation_mode": call["interpolation_mode"],
        "compute_grad_input": of_input is not None,
        "compute_grad_grid": True,
    }


PLANNERS: dict[str, Planner] = {
    "grid_sampler_2d": _grid_sampler_2d,
    "grid_sampler_3d": _grid_sampler_3d,
    "grid_sampler_2d_backward": _grid_sampler_2d_backward,
    "grid_sampler_3d_backward": _grid_sampler_3d_backward,
}
