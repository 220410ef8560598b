"""Losses with kernels: negative log likelihood and connectionist temporal classification.

2.13.0 has no such kernels: it computes these losses in MPSGraph or refuses them. The host code of later releases is
aten/src/ATen/native/mps/operations/LossOps.mm and aten/src/ATen/native/mps/kernels/LossOps.h (main, late 2026, and the
2.15.0 binary).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import inf

import torch
from torch import Tensor

from ..call import Call
from ..plan import (
    ERROR_BUFFER,
    MAX_THREADS_OF_GROUP,
    Declined,
    KernelLaunch,
    Planner,
    ReleaseKernels,
    Step,
    in_line,
    in_plane,
    required,
)
from .binary_kernels import binary
from .copies import copied
from .fills import filled
from .metal_types import metal_name
from .reductions import sums
from .zeroing import zeroed

_NO_REDUCTION, _MEAN = 0, 1


# ------------------------------------------------------------------------------------------------- likelihood
def _nll_forward(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    source, target, reduction = call["self"].contiguous(), call["target"], call["reduction"]
    output, total_weight = call.results
    name = f"nllnd_loss_forward_{metal_name(source.dtype)}"
    if name not in kernels:
        raise Declined("MPSGraph")
    if not target.numel():
        raise Declined("no target")
    if reduction == _NO_REDUCTION and source.dim() == 1:
        raise Declined("one sample without reduction, whose total weight is not known")
    losses = output if reduction == _NO_REDUCTION else _like(source, target.shape)
    if not losses.is_contiguous():
        raise Declined("a result with gaps")
    weights = _like(source, target.shape)
    arguments = {
        "input": source,
        "target": _long(target),
        "weight": _weight(call, source),
        "output": losses,
        "sample_weights": weights,
        "params": _nll_params(call, source),
        "error_buf": ERROR_BUFFER,
    }
    steps: list[Step] = [KernelLaunch(name, arguments, *in_line(target.numel()))]
    if reduction == _NO_REDUCTION:
        return [*steps, zeroed(total_weight)]
    steps += _summed(kernels, total_weight, weights)
    if reduction != _MEAN:
        return [*steps, *_summed(kernels, output, losses)]
    total, mean = _like(source, ()), _like(source, ())
    steps += _summed(kernels, total, losses)
    steps.append(binary(kernels, "div_true", mean, total, total_weight))
    return [*steps, copied(kernels, output, mean)]


def _summed(kernels: ReleaseKernels, target: Tensor, value: Tensor) -> list[Step]:
    """The steps that write the sum of all elements to `target`."""
    total = _like(value, ())
    arguments = {"self": value, "dim": None, "keepdim": False, "dtype": None}
    steps = sums("sum_")(Call("sum.dim_IntList", arguments, (total,)), kernels)
    return [*steps, copied(kernels, target, total)]


def _nll_backward(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    source, target, result = call["self"], call["target"], call.result
    name = f"nllnd_loss_backward_{metal_name(source.dtype)}"
    if name not in kernels:
        raise Declined("MPSGraph")
    if not result.is_contiguous() or not target.numel():
        raise Declined("a result with gaps, or no target")
    params = {
        "forward": _nll_params(call, result),
        "is_reduction": call["reduction"] != _NO_REDUCTION,
        "is_mean": call["reduction"] == _MEAN,
    }
    arguments = {
        "grad_input": result,
        "grad_output": call["grad_output"].contiguous(),
        "target": _long(target),
        "weight": _weight(call, source),
        "total_weight": call["total_weight"],
        "params": params,
        "error_buf": ERROR_BUFFER,
    }
    return [zeroed(result), KernelLaunch(name, arguments, *in_line(target.numel()))]


def _nll_params(call: Call, source: Tensor) -> dict[str, object]:
    """The kernel's parameters for a contiguous (N, C), (C) or (N, C, H, W)."""
    classes = 0 if source.dim() == 1 else 1
    return {
        "n_classes": source.shape[classes],
        "map_size": source.shape[2] * source.shape[3] if source.dim() == 4 else 1,
        "batch_stride": source.stride(0),
        "class_stride": source.stride(classes),
        "ignore_index": call["ignore_index"],
        "tid_offset": 0,
        "has_weight": call["weight"] is not None,
    }


def _weight(call: Call, source: Tensor) -> Tensor:
    """The weights of classes; without any, a buffer that the kernel does not read."""
    weight = call["weight"]
    return source if weight is None else weight.contiguous()


def _long(target: Tensor) -> Tensor:
    if target.dtype != torch.int64:
        raise Declined("targets that the host converts")
    return target.contiguous()


def _like(tensor: Tensor, shape: Sequence[int]) -> Tensor:
    return torch.empty(tuple(shape), dtype=tensor.dtype, device="cpu")


# ------------------------------------------------------------------------------------------------- classification
def _ctc(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    log_probs, (loss, log_alpha) = call["log_probs"], call.results
    name = required(kernels, f"ctc_loss_{_ctc_types(log_probs, call['targets'])}")
    arguments = {
        "loss": loss,
        "log_alpha": log_alpha,
        "log_probs": log_probs,
        **_ctc_targets(call),
        "params": _ctc_params(call, log_alpha),
    }
    return [_by_batch(name, arguments, log_alpha)]


def _by_batch(name: str, arguments: dict[str, object], log_alpha: Tensor) -> KernelLaunch:
    """A threadgroup for each sequence, a thread for each position in its target."""
    group = min(log_alpha.shape[2], MAX_THREADS_OF_GROUP)
    return KernelLaunch(name, arguments, (group * log_alpha.shape[0], 1, 1), (group, 1, 1))


def _ctc_types(log_probs: Tensor, targets: Tensor) -> str:
    return f"{metal_name(log_probs.dtype)}_{metal_name(targets.dtype)}_int32_t"


def _lengths(value: Tensor | Sequence[int]) -> list[int]:
    return [int(length) for length in (value.tolist() if isinstance(value, Tensor) else value)]


def _ctc_targets(call: Call) -> dict[str, object]:
    targets, lengths = call["targets"], _lengths(call["target_lengths"])
    if targets.dim() == 1:
        offsets = [targets.stride(0) * start for start in accumulate([0, *lengths[:-1]])]
    else:
        offsets = [targets.stride(0) * index for index in range(len(lengths))]
    named = {
        "input_lengths": _lengths(call["input_lengths"]),
        "target_lengths": lengths,
        "target_batch_offsets": offsets,
    }
    integers = {name: torch.tensor(numbers, dtype=torch.int32, device="cpu") for name, numbers in named.items()}
    return {"targets": targets, **integers}


def _ctc_params(call: Call, log_alpha: Tensor) -> dict[str, object]:
    log_probs, targets = call["log_probs"], call["targets"]
    return {
        "BLANK": call["blank"],
        "max_input_length": log_probs.shape[0],
        "max_target_length": log_alpha.shape[2] // 2,
        "batch_size": log_probs.shape[1],
        "tg_target_stride": targets.stride(-1),
        "log_probs_time_stride": log_probs.stride(0),
        "log_probs_batch_stride": log_probs.stride(1),
        "log_probs_token_stride": log_probs.stride(2),
        "log_alpha_batch_stride": log_alpha.stride(0),
        "log_alpha_time_stride": log_alpha.stride(1),
        "log_alpha_target_stride": log_alpha.stride(2),
    }


def _ctc_backward(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    log_probs, log_alpha, result = call["log_probs"], call["log_alpha"], call.result
    types = _ctc_types(log_probs, call["targets"])
    log_beta, targets = torch.empty_like(log_alpha), _ctc_targets(call)
    beta = {"log_beta": log_beta, "log_probs": log_probs, **targets, "params": _ctc_params(call, log_alpha)}
    collected = {
        "grad": result,
        "grad_out": call["grad"],
        "log_alpha": log_alpha,
        "log_beta": log_beta,
        "log_probs": log_probs,
        **targets,
        "loss": call["neg_log_likelihood"],
        "params": _ctc_backward_params(call, log_alpha, result),
    }
    collect = required(kernels, f"ctc_loss_backward_collect_{types}")
    return [
        filled(kernels, result, -inf),
        _by_batch(required(kernels, f"ctc_loss_backward_log_beta_{types}"), beta, log_alpha),
        KernelLaunch(collect, collected, *in_plane(log_probs.shape[0], log_probs.shape[1])),
    ]


def _ctc_backward_params(call: Call, log_alpha: Tensor, result: Tensor) -> dict[str, object]:
    forward = _ctc_params(call, log_alpha)
    shared = ("BLANK", "max_input_length", "max_target_length", "tg_target_stride")
    probabilities = ("log_probs_time_stride", "log_probs_batch_stride", "log_probs_token_stride")
    return {
        **{name: forward[name] for name in (*shared, *probabilities)},
        "num_labels": result.shape[2],
        "log_alpha_beta_batch_stride": log_alpha.stride(0),
        "log_alpha_beta_time_stride": log_alpha.stride(1),
        "log_alpha_beta_target_stride": log_alpha.stride(2),
        "grad_time_stride": result.stride(0),
        "grad_batch_stride": result.stride(1),
        "grad_token_stride": result.stride(2),
        "grad_out_batch_stride": call["grad"].stride(0),
        "zero_infinity": call["zero_infinity"],
    }


PLANNERS: dict[str, Planner] = {
    **dict.fromkeys(
        ("nll_loss_forward", "nll_loss_forward.output", "nll_loss2d_forward", "nll_loss2d_forward.output"), _nll_forward
    ),
    **dict.fromkeys(
        ("nll_loss_backward", "nll_loss_backward.grad_input", "nll_loss2d_backward", "nll_loss2d_backward.grad_input"),
        _nll_backward,
    ),
    **dict.fromkeys(("_ctc_loss", "_ctc_loss.Tensor"), _ctc),
    **dict.fromkeys(("_ctc_loss_backward", "_ctc_loss_backward.Tensor"), _ctc_backward),
}
