"""Pooling: maximum, average, adaptive maximum, unpooling, and their gradients, in two and three dimensions.

The host code is aten/src/ATen/native/mps/operations/{Pooling,AdaptivePooling}.mm; the choice between MPSGraph and Metal
is that of the 2.13.0 and 2.15.0 binaries. In two dimensions, Metal computes the maximum if the stride is more than
one, and averages with `ceil_mode`; MPSGraph computes the gradients, except the adaptive one of 2.15.0. In three
dimensions Metal computes everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from ..call import Call
from ..plan import ERROR_BUFFER, Declined, KernelLaunch, Planner, ReleaseKernels, Step, in_line, required
from .metal_types import metal_name
from .names import table
from .zeroing import zeroed

_IN_GRAPH = "MPSGraph"


@dataclass(frozen=True, slots=True)
class _Windows:
    """The windows of a call, with a number for each pooled dimension."""

    size: list[int]
    step: list[int]
    padding: list[int]
    dilation: list[int]

    @property
    def has_unit_stride(self) -> bool:
        """Whether the stride is 1 in every dimension, so that MPSGraph computes the call."""
        return all(step == 1 for step in self.step)


def _windows(call: Call, dimensions: int) -> _Windows:
    size = _each(call["kernel_size"], dimensions)
    return _Windows(
        size=size,
        step=_each(call["stride"], dimensions) if call["stride"] else size,
        padding=_each(call["padding"], dimensions),
        dilation=_each(call.arguments.get("dilation", [1]), dimensions),
    )


def _each(values: Sequence[int], dimensions: int) -> list[int]:
    return list(values) if len(values) == dimensions else list(values) * dimensions


def _walk(prefix: str, tensor: Tensor) -> dict[str, object]:
    return {f"{prefix}_sizes": tuple(tensor.shape), f"{prefix}_strides": tensor.stride()}


# ------------------------------------------------------------------------------------------------- maximum
def _max_pool(dimensions: int) -> Planner:
    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        windows = _windows(call, dimensions)
        if dimensions == 2 and windows.has_unit_stride:
            raise Declined(_IN_GRAPH)
        return [_maximum(call, kernels, windows)]

    return plan


def _maximum(call: Call, kernels: ReleaseKernels, windows: _Windows, adaptive: bool = False) -> KernelLaunch:
    source, result = call["self"], call.result
    indices = call.results[1] if len(call.results) > 1 else None
    params = {
        "dims": source.dim(),
        "pooling_dims": len(windows.size),
        **_walk("input", source),
        **_walk("output", result),
        **(_walk("indices", indices) if indices is not None else {}),
        "kernel_size": windows.size,
        "stride": windows.step,
        "padding": windows.padding,
        "dilation": windows.dilation,
        "return_indices": indices is not None,
        **({"adaptive": True} if adaptive else {}),
    }
    name = required(kernels, f"max_pool_{metal_name(source.dtype)}")
    arguments = {"input": source, "output": result, "indices": indices, "params": params}
    return KernelLaunch(name, arguments, *in_line(result.numel()))


def _adaptive_max_pool(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    source, result = call["self"], call.result
    ones = [1, 1]
    if _has_adaptive_kernels(kernels, source):
        return [_maximum(call, kernels, _Windows(ones, ones, [0, 0], ones), adaptive=True)]
    windows = _equal_windows(source, result)
    if windows.has_unit_stride:
        raise Declined(_IN_GRAPH)
    return [_maximum(call, kernels, windows)]


def _equal_windows(large: Tensor, small: Tensor) -> _Windows:
    """The equal windows that up to 2.13.0 replace adaptive ones; they are right if the sizes are divisible."""
    if any(before < after for before, after in zip(large.shape[-2:], small.shape[-2:], strict=True)):
        raise Declined("adaptive pooling to a larger size")
    sizes = list(zip(large.shape[-2:], small.shape[-2:], strict=True))
    step = [before // after for before, after in sizes]
    size = [before - (after - 1) * by for (before, after), by in zip(sizes, step, strict=True)]
    return _Windows(size, step, [0, 0], [1, 1])


def _max_pool_backward(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    gradient, indices, result, pooled = call["grad_output"], call["indices"], call.result, _pooled(call)
    params = {
        "dims": result.dim(),
        "pooling_dims": pooled,
        **_walk("grad_input", result),
        **_walk("grad_output", gradient),
        "indices_strides": indices.stride(),
    }
    name = required(kernels, f"max_pool_backward_{metal_name(result.dtype)}")
    arguments = {"grad_input": result, "grad_output": gradient, "indices": indices, "params": params}
    return [zeroed(result), KernelLaunch(name, arguments, *in_line(gradient.numel()))]


def _pooled(call: Call) -> int:
    return 2 if "2d" in call.overload else 3


def _adaptive_max_pool_backward(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    if not _has_adaptive_kernels(kernels, call.result):
        raise Declined(_IN_GRAPH)
    return _max_pool_backward(call, kernels)


def _has_adaptive_kernels(kernels: ReleaseKernels, like: Tensor) -> bool:
    """Whether the release's kernel supports windows of different sizes."""
    params = kernels.signature(required(kernels, f"max_pool_{metal_name(like.dtype)}")).buffer("params")
    return any(member.name == "adaptive" for member in params.fields)


# ------------------------------------------------------------------------------------------------- average
def _avg_pool(dimensions: int) -> Planner:
    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        if dimensions == 2 and not call["ceil_mode"]:
            raise Declined(_IN_GRAPH)
        source, result = call["self"], call.result
        name = required(kernels, f"avg_pool_{metal_name(source.dtype)}")
        arguments = {"input": source, "output": result, "params": _average(call, source, result, dimensions)}
        return [KernelLaunch(name, arguments, *in_line(result.numel()))]

    return plan


def _avg_pool3d_backward(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    gradient, result = call["grad_output"], call.result
    name = required(kernels, f"avg_pool_backward_{metal_name(result.dtype)}")
    arguments = {"grad_input": result, "grad_output": gradient, "params": _average(call, result, gradient, 3)}
    return [zeroed(result), KernelLaunch(name, arguments, *in_line(gradient.numel()))]


def _average(call: Call, large: Tensor, small: Tensor, dimensions: int) -> dict[str, object]:
    windows, divisor = _windows(call, dimensions), call["divisor_override"]
    return {
        "dims": large.dim(),
        "pooling_dims": dimensions,
        **_walk("input", large),
        **_walk("output", small),
        "kernel_size": windows.size,
        "stride": windows.step,
        "padding": windows.padding,
        "count_include_pad": call["count_include_pad"],
        "has_divisor_override": divisor is not None,
        "divisor_override": divisor or 0,
    }


# ------------------------------------------------------------------------------------------------- unpooling
def _max_unpool(dimensions: int) -> Planner:
    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        source, indices, result = call["self"], call["indices"], call.result
        params = {
            "dims": source.dim(),
            "pooling_dims": dimensions,
            **_walk("input", source),
            **_walk("output", result),
            "indices_strides": indices.stride(),
        }
        name = required(kernels, f"max_unpool_{metal_name(source.dtype)}")
        arguments = {"output": result, "input": source, "indices": indices, "params": params}
        arguments["error_buffer"] = ERROR_BUFFER
        return [zeroed(result), KernelLaunch(name, arguments, *in_line(source.numel()))]

    return plan


def _in_graph(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    raise Declined(_IN_GRAPH)


_MPSGRAPH_ALONE = (
    "max_pool2d_backward",
    "max_pool2d_with_indices_backward",
    "max_pool2d_with_indices_backward.grad_input",
    "avg_pool2d_backward",
    "avg_pool2d_backward.grad_input",
    "_adaptive_avg_pool2d",
    "_adaptive_avg_pool2d_backward",
    "adaptive_avg_pool2d.out",
)

PLANNERS: dict[str, Planner] = {
    **table(
        [
            (("max_pool2d", "max_pool2d_with_indices", "max_pool2d_with_indices.out"), 2),
            (("max_pool3d_with_indices", "max_pool3d_with_indices.out"), 3),
        ],
        _max_pool,
    ),
    **dict.fromkeys(("adaptive_max_pool2d", "adaptive_max_pool2d.out"), _adaptive_max_pool),
    **dict.fromkeys(
        ("max_pool3d_with_indices_backward", "max_pool3d_with_indices_backward.grad_input"), _max_pool_backward
    ),
    **dict.fromkeys(
        ("adaptive_max_pool2d_backward", "adaptive_max_pool2d_backward.grad_input"), _adaptive_max_pool_backward
    ),
    **table([(("avg_pool2d", "avg_pool2d.out"), 2), (("avg_pool3d", "avg_pool3d.out"), 3)], _avg_pool),
    **dict.fromkeys(("avg_pool3d_backward", "avg_pool3d_backward.grad_input"), _avg_pool3d_backward),
    **table([(("max_unpool2d", "max_unpool2d.out"), 2), (("max_unpool3d", "max_unpool3d.out"), 3)], _max_unpool),
    **dict.fromkeys(_MPSGRAPH_ALONE, _in_graph),
}
