"""The gated linear unit and its gradient, which 2.13.0 leaves to MPSGraph.

This follows the host code of the 2.15.0 binary (`structured_glu_out_mps`, `glu_backward_mps_out`): contiguous tensors
have separate kernels, whose x index runs over one half of a contiguous block; others use TensorIterator over halves.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from torch import Tensor

from ..call import Call
from ..iterator import geometry
from ..plan import Declined, KernelLaunch, Planner, ReleaseKernels, Step, in_line, in_plane, required
from .binary_kernels import binary
from .metal_types import metal_name


def _glu(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    source, result = call["self"], call.result
    dense = f"glu_dense_{metal_name(source.dtype)}"
    if dense not in kernels:
        raise Declined("MPSGraph")
    dimension = call["dim"] % source.dim()
    if source.is_contiguous() and result.is_contiguous():
        arguments = {"out": result, "input": source, "inner_half": prod(result.shape[dimension:])}
        return [KernelLaunch(dense, arguments, *_plane(result, dimension))]
    first, second = source.chunk(2, dimension)
    return [binary(kernels, "glu", result, first, second)]


def _plane(half: Tensor, dimension: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Grid and threadgroup for one half: x over the dimensions from `dimension` on, y over those before it."""
    return in_plane(prod(half.shape[dimension:]), prod(half.shape[:dimension]))


def _glu_backward(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    gradient, source, result = call["grad_output"], call["self"], call.result
    dtype = metal_name(source.dtype)
    if f"glu_backward_dense_{dtype}" not in kernels:
        raise Declined("MPSGraph")
    dimension = call["dim"] % source.dim()
    if all(tensor.is_contiguous() for tensor in (gradient, source, result)):
        arguments = {
            "grad_input": result,
            "input": source,
            "grad_output": gradient,
            "inner_half": prod(gradient.shape[dimension:]),
        }
        return [KernelLaunch(f"glu_backward_dense_{dtype}", arguments, *_plane(gradient, dimension))]
    halves = [tensor.chunk(2, dimension)[0] for tensor in (result, source)]
    walk = geometry(*halves, gradient)
    distance = [t.stride(dimension) * gradient.shape[dimension] * t.element_size() for t in (result, source)]
    arguments = {
        "grad_input": halves[0],
        "input": halves[1],
        "grad_output": gradient,
        "sizes": list(walk.shape),
        "grad_input_strides": list(walk.strides[0]),
        "input_strides": list(walk.strides[1]),
        "grad_output_strides": list(walk.strides[2]),
        "grad_input_byte_offset": distance[0],
        "input_byte_offset": distance[1],
        "ndim": len(walk.shape),
    }
    return [KernelLaunch(required(kernels, f"glu_backward_{dtype}"), arguments, *in_line(walk.numel))]


PLANNERS: dict[str, Planner] = {
    **dict.fromkeys(("glu", "glu.out"), _glu),
    **dict.fromkeys(("glu_backward", "glu_backward.grad_input"), _glu_backward),
}
