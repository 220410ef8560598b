"""Gradients of `embedding`, and `embedding_bag` with its gradients.

Source: Embedding.mm and EmbeddingBag.mm of aten/src/ATen/native/mps/operations (main, 2026). The kernels of 2.13.0 and
2.15.0 take the same arguments by name. Those of `embedding_bag` also take `num_weights` and report an index that is out
of range, which this version of the file does not have yet.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..call import Call
from ..plan import (
    ERROR_BUFFER,
    BlitFill,
    Declined,
    KernelLaunch,
    Planner,
    ReleaseKernels,
    Step,
    in_line,
    keeps_stand_in,
    required,
)
from .copies import copied
from .metal_types import metal_name
from .operands import fits_32_bits

_MAXIMUM = 2
"""The mode of `embedding_bag` that takes the maximum; 0 sums, 1 takes the mean."""


def _embedding_dense_backward(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """Accumulate in float32, whatever the gradient's dtype."""
    grad, indices, result = call["grad_output"], call["indices"], call.result
    features = grad.size(-1)
    if indices.numel() == 0:
        return [BlitFill(result)]
    sums = result if result.dtype == torch.float32 else torch.empty(result.shape, dtype=torch.float32, device="cpu")
    params = {
        "outer_sizes": list(indices.shape),
        "grad_outer_strides": list(grad.stride()[:-1]),
        "indices_strides": list(indices.stride()),
        "grad_feature_stride": grad.stride(-1),
        "outer_ndim": indices.dim(),
        "feature_size": features,
        "padding_idx": call["padding_idx"],
        "scale_grad_by_freq": call["scale_grad_by_freq"],
    }
    if not indices.dim():
        params |= {"outer_sizes": [1], "grad_outer_strides": [0], "indices_strides": [0]}
    width = 32 if fits_32_bits(grad, indices) else 64
    index = metal_name(indices.dtype)
    steps: list[Step] = [BlitFill(sums)]
    counts = sums.view(torch.uint32)  # bound, and not read
    if call["scale_grad_by_freq"]:
        counts = torch.empty(result.size(0), dtype=torch.uint32, device="cpu")
        counting = required(kernels, f"embedding_dense_backward_count_{index}_{width}")
        arguments = {"indices": indices, "counts": counts, "params": params}
        steps += [BlitFill(counts), KernelLaunch(counting, arguments, *in_line(indices.numel()))]
    kernel = required(kernels, f"embedding_dense_backward_{metal_name(grad.dtype)}_{index}_{width}")
    arguments = {"grad": grad, "indices": indices, "counts": counts, "grad_weight": sums, "params": params}
    steps.append(KernelLaunch(kernel, arguments, *in_line(indices.numel() * features)))
    return steps if sums is result else [*steps, copied(kernels, result, sums)]


@keeps_stand_in(1, 2, 3)
def _embedding_bag(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """Plan the first result only: the others are for the gradient, and keep the stand-in's values."""
    weight, output, mode = call["weight"], call.result, call["mode"]
    steps: list[Step] = []
    indices, offsets = (_converted(kernels, call[name], _index_dtype(call), steps) for name in ("indices", "offsets"))
    bags, features = output.shape
    shapes = {"offset2bag": (indices.numel(),), "bag_size": (bags,)}
    notes = {name: torch.empty(shape, dtype=indices.dtype, device="cpu") for name, shape in shapes.items()}
    notes["max_indices"] = indices.new_empty((bags, features) if mode == _MAXIMUM else (1, 1))
    scales = call["per_sample_weights"]
    params = {
        "weight_strides": list(weight.stride()),
        "output_strides": list(output.stride()),
        "max_indices_strides": list(notes["max_indices"].stride()) if mode == _MAXIMUM else [0, 0],
        "use_per_sample_weights": scales is not None,
        "per_sample_weights_stride": 0 if scales is None else scales.stride(0),
        "num_indices": indices.numel(),
        "num_bags": bags,
        "feature_size": features,
        "num_weights": weight.size(0),
        "mode": mode,
        "padding_idx": call["padding_idx"],
    }
    arguments = {
        "weight": weight,
        "indices": indices,
        "offsets": offsets,
        "per_sample_weights": weight if scales is None else scales,
        "output": output,
        **notes,
        "params": params,
        "error_buf": ERROR_BUFFER,
    }
    kernel = required(kernels, f"embedding_bag_{metal_name(weight.dtype)}_{metal_name(indices.dtype)}")
    return [*steps, KernelLaunch(kernel, arguments, *in_line(output.numel()))]


def _index_dtype(call: Call) -> torch.dtype:
    return torch.promote_types(call["indices"].dtype, call["offsets"].dtype)


def _converted(kernels: ReleaseKernels, tensor: Tensor, dtype: torch.dtype, steps: list[Step]) -> Tensor:
    if tensor.dtype == dtype:
        return tensor
    converted = torch.empty(tensor.shape, dtype=dtype, device="cpu")
    steps.append(copied(kernels, converted, tensor))
    return converted


def _embedding_bag_dense_backward(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    grad, indices, mode, result = call["grad"], call["indices"], call["mode"], call.result
    most, scales, bags = call["maximum_indices"], call["per_sample_weights"], call["offset2bag"]
    if mode == _MAXIMUM and most.shape != grad.shape:
        raise Declined("notes of the forward pass in the CPU's form")
    # A Mac notes the sizes of bags in every mode, the CPU leaves them zero where it sums; the kernel reads them.
    if mode != _MAXIMUM and (bags.shape != indices.shape or not bool(call["bag_size"].any())):
        raise Declined("notes of the forward pass in the CPU's form")
    params = {
        "weight_grad_strides": list(result.stride()),
        "output_grad_strides": list(grad.stride()),
        "max_indices_strides": list(most.stride()) if mode == _MAXIMUM else [0, 0],
        "use_per_sample_weights": scales is not None,
        "per_sample_weights_stride": 0 if scales is None else scales.stride(0),
        "feature_size": grad.size(1),
        "mode": mode,
        "padding_idx": call["padding_idx"],
    }
    arguments = {
        "output_grad": grad,
        "indices": indices,
        "offset2bag": bags,
        "bag_size": call["bag_size"],
        "max_indices": most,
        "per_sample_weights": grad if scales is None else scales,
        "weight_grad": result,
        "params": params,
    }
    kernel = required(kernels, f"embedding_bag_backward_{metal_name(grad.dtype)}_{metal_name(indices.dtype)}")
    threads = grad.numel() if mode == _MAXIMUM else indices.numel() * grad.size(1)
    return [BlitFill(result), KernelLaunch(kernel, arguments, *in_line(threads))]


def _per_sample_weights_backward(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    grad, weight, indices, result = call["grad"], call["weight"], call["indices"], call.result
    bags = call["offset2bag"]
    if bags.shape != indices.shape:
        raise Declined("notes of the forward pass in the CPU's form")
    params = {
        "output_grad_strides": list(grad.stride()),
        "weight_strides": list(weight.stride()),
        "per_sample_weights_grad_stride": result.stride(0),
        "feature_size": grad.size(1),
        "padding_idx": call["padding_idx"],
    }
    arguments = {
        "output_grad": grad,
        "weight": weight,
        "indices": indices,
        "offset2bag": bags,
        "per_sample_weights_grad": result,
        "params": params,
    }
    types = f"{metal_name(grad.dtype)}_{metal_name(indices.dtype)}"
    kernel = required(kernels, f"embedding_bag_per_sample_weights_backward_{types}")
    return [BlitFill(result), KernelLaunch(kernel, arguments, *in_line(indices.numel() * grad.size(1)))]


PLANNERS: dict[str, Planner] = {
    "embedding_dense_backward": _embedding_dense_backward,
    "_embedding_bag": _embedding_bag,
    "_embedding_bag_forward_only": _embedding_bag,
    "_embedding_bag_dense_backward": _embedding_bag_dense_backward,
    "_embedding_bag_per_sample_weights_backward": _per_sample_weights_backward,
}
