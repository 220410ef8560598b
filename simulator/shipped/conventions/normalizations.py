"""Layer and group normalization.

Source: Normalization.mm and GroupNorm.mm of aten/src/ATen/native/mps/operations (mid 2026), and the kernels'
arguments. Batch normalization and the backward of layer normalization run in MPSGraph. `_fused_rms_norm` has kernels,
but no convention, because they do not compute its second result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from torch import Tensor

from ..call import Call
from ..plan import MAX_THREADS_OF_GROUP, Declined, KernelLaunch, Planner, ReleaseKernels, Step, required
from .metal_types import metal_name

_READS = 4
_SIMD_GROUP = 32


def _group(elements: int) -> int:
    """The threads of a group that take four elements each, in whole SIMD groups."""
    threads = -(-elements // _READS)
    return min(MAX_THREADS_OF_GROUP, -(-threads // _SIMD_GROUP) * _SIMD_GROUP)


def layer_norm(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """A threadgroup for each row; it loops over rows of more than 4,096 elements."""
    given: Tensor = call["input"].contiguous()
    result, mean, rstd = call.results
    affine = {name: call[name] for name in ("weight", "bias")}
    if any(t is not None and t.dtype != given.dtype for t in (mean, rstd, *affine.values())):
        raise Declined("statistics or weights of another dtype")
    length = prod(call["normalized_shape"])
    type_name = metal_name(given.dtype)
    kind = "layer_norm_single_row" if length <= MAX_THREADS_OF_GROUP * _READS else "layer_norm_looped"
    wide = f"{kind}_i32_{type_name}"
    name = wide if wide in kernels else required(kernels, f"{kind}_{type_name}")
    arguments: dict[str, object] = {"input": given, "output": result, "meanOut": mean, "rstdTensor": rstd}
    arguments |= {"axis_size": length, "epsilon": call["eps"]}
    arguments |= {key: t if t is None else t.contiguous() for key, t in affine.items()}
    if name != wide:
        arguments |= {f"use_{key}": int(t is not None) for key, t in affine.items()}
    group = _group(length)
    return [KernelLaunch(name, arguments, (given.numel() // length * group, 1, 1), (group, 1, 1))]


def _name_of(tensor: Tensor | None) -> str:
    return "void" if tensor is None else metal_name(tensor.dtype)


def _contiguous(*tensors: Tensor) -> None:
    if not all(tensor.is_contiguous() for tensor in tensors):
        raise Declined("tensors that are not contiguous")


def group_norm(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """A threadgroup for each group of channels of a sample."""
    given: Tensor = call["input"]
    result, mean, rstd = call.results
    _contiguous(given, result)
    weight, bias = call["weight"], call["bias"]
    params = _group_params(call) | {"eps": call["eps"]}
    types = f"{metal_name(given.dtype)}_{metal_name(mean.dtype)}_{_name_of(weight)}_{_name_of(bias)}"
    arguments: dict[str, object] = {"Y": result, "mean": mean, "rstd": rstd, "X": given, "params": params}
    arguments |= {"gamma": weight, "beta": bias}
    threads, group = _groups(call)
    return [KernelLaunch(required(kernels, f"group_norm_{types}_uint32_t"), arguments, threads, group)]


def _group_params(call: Call) -> dict[str, object]:
    channels = call["C"] // call["group"]
    return {
        "HxW": call["HxW"],
        "num_groups": call["group"],
        "channels_per_group": channels,
        "elements_per_group": channels * call["HxW"],
    }


def _groups(call: Call) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    group = _group(call["C"] // call["group"] * call["HxW"])
    return (call["N"] * call["group"] * group, 1, 1), (group, 1, 1)


def group_norm_backward(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """The input's gradient by groups, then those of weight and bias by channels; an unrequested one is discarded."""
    gradient, given = call["grad_out"], call["input"]
    if given.numel() == 0:
        raise Declined("an empty input: the gradients are filled")
    _contiguous(gradient, given, *call.results)
    if sum(call["output_mask"]) != len(call.results):
        raise Declined("a gradient of a weight that there is not")
    written: Iterator[Tensor] = iter(call.results)
    by_input, by_weight, by_bias = (next(written) if asked else None for asked in call["output_mask"])
    mean = metal_name(call["mean"].dtype)
    shared: dict[str, object] = {"dY": gradient, "X": given, "mean": call["mean"], "rstd": call["rstd"]}
    steps: list[Step] = []
    if by_input is not None:
        types = f"{metal_name(gradient.dtype)}_{mean}_{_name_of(call['weight'])}"
        arguments = {**shared, "dX": by_input, "gamma": call["weight"], "params": _group_params(call)}
        threads, group = _groups(call)
        name = required(kernels, f"group_norm_backward_x_{types}_uint32_t")
        steps.append(KernelLaunch(name, arguments, threads, group))
    affine = by_weight if by_weight is not None else by_bias
    if affine is not None:
        elements = call["N"] * call["HxW"]
        params = _group_params(call) | {"C": call["C"], "N_times_HxW": elements, "elements_per_group": 0}
        arguments = {**shared, "params": params}
        for key, result in (("dgamma", by_weight), ("dbeta", by_bias)):
            arguments[key] = affine.new_empty(call["C"]) if result is None else result
        types = f"{metal_name(gradient.dtype)}_{mean}_{metal_name(affine.dtype)}"
        name = required(kernels, f"group_norm_backward_affine_{types}_uint32_t")
        threads_of_channel = _group(elements)
        grid = (call["C"] * threads_of_channel, 1, 1)
        steps.append(KernelLaunch(name, arguments, grid, (threads_of_channel, 1, 1)))
    return steps


PLANNERS: dict[str, Planner] = {
    "native_layer_norm": layer_norm,
    "native_group_norm": group_norm,
    "native_group_norm_backward": group_norm_backward,
}
