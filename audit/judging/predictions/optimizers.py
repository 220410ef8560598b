"""Models of releases' fused optimizers, with the order of their operations."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from .prediction import Model, Prediction, Ulp


def adam(*, decoupled: bool) -> Model:
    """The model of Adam with moments computed as a sum of two products, where the CPU interpolates."""

    def model(ulp: Ulp, *lists: list[Tensor], maximize: bool, amsgrad: bool, **options: Any) -> Any:
        if options.get("grad_scale") is not None or options.get("found_inf") is not None:
            return None
        params, grads, means, squares, largest, steps = lists
        lr, beta1, beta2 = options["lr"], options["beta1"], options["beta2"]
        weight_decay, eps = options["weight_decay"], options["eps"]
        new: list[list[Tensor]] = [[], [], [], [], []]
        for index, (param, grad, mean, square, step) in enumerate(
            zip(params, grads, means, squares, steps, strict=True)
        ):
            rounded = partial(_rounded, param.dtype)
            value, slope = param.float(), -grad.float() if maximize else grad.float()
            if decoupled:
                value = rounded(value - rounded(lr * weight_decay * value))
            else:
                slope = rounded(slope + rounded(weight_decay * value))
            mean = rounded(mean.float() * beta1 + slope * (1 - beta1))
            square = rounded(square.float() * beta2 + slope * slope * (1 - beta2))
            taken = square
            if amsgrad:
                taken = torch.maximum(largest[index].float(), square)
                new[4].append(taken.to(largest[index].dtype))
            root = ulp(taken.sqrt()) / (1 - beta2 ** step.float()).sqrt() + eps
            value = value - rounded(lr / (1 - beta1 ** step.float()) * mean / root)
            for listed, result in zip(new, (value, grad, mean, square), strict=False):
                listed.append(result.to(param.dtype))
        return new

    return model


def sgd(ulp: Ulp, *lists: list[Tensor], **options: Any) -> Any:
    """The CPU's steps."""
    return torch.ops.aten._fused_sgd(*lists, **options | {"lr": float(options["lr"])})


def amp_update_scale(
    ulp: Ulp, scale: Tensor, tracker: Tensor, found_inf: Tensor, growth: float, backoff: float, interval: int
) -> tuple[Tensor, Tensor] | None:
    """The scale grows from the interval on; on the CPU where the number of steps equals it."""
    if tracker.numel() != 1 or bool(found_inf.any()) or int(tracker) + 1 <= interval:
        return None
    grown = scale * growth
    return torch.where(grown.isfinite(), grown, scale), torch.zeros_like(tracker)


def read_as_float(step: Model) -> Model:
    """The model of a kernel that reads four bytes of the learning rate as a float; half precision is zero-padded."""

    def model(ulp: Ulp, *lists: list[Tensor], **options: Any) -> Any:
        lr = options["lr"]
        if not isinstance(lr, Tensor) or lr.dtype is torch.float32:
            return None
        memory = torch.zeros(8, dtype=torch.uint8)
        memory[: lr.element_size()] = lr.reshape(1).view(torch.uint8)[:8]
        return step(ulp, *lists, **options | {"lr": memory[:4].view(torch.float32)[0]})

    return model


def _rounded(dtype: torch.dtype, values: Tensor) -> Tensor:
    return values.to(dtype).float()


_ADAMS = {"aten::_fused_adam": adam(decoupled=False), "aten::_fused_adamw": adam(decoupled=True)}
OPTIMIZERS = (Prediction("moments-as-sums-of-products", _ADAMS),)
OPTIMIZERS_OF_HOST_CODE = (
    Prediction(
        "learning-rate-read-as-a-float",
        {name: read_as_float(step) for name, step in (_ADAMS | {"aten::_fused_sgd": sgd}).items()},
    ),
    Prediction("scales-that-grow-late", {"aten::_amp_update_scale": amp_update_scale}),
)
