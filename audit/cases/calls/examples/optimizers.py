"""Arguments of fused optimizers: lists of parameters, gradients and states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .operands import Example, call, dense


def optimizer(states: int, *, steps: bool, tensor_lr: bool, **options: Any) -> Callable[[int], Example]:
    """Calls of a fused optimizer: parameters, gradients, so many lists of states, and the step counts if it has any."""

    def make(variant: int) -> Example:
        shapes = [(2, 3), (4,), (5, 1)][: variant % 3 + 1]
        lists = [[dense(*shape) for shape in shapes] for _ in range(2 + states)]
        if steps:
            lists.append([torch.tensor(float(variant + 1)) for _ in shapes])
        if states == 3 and variant % 2 == 0:
            lists[4] = []  # the largest squares, which only amsgrad keeps
        rate: Any = torch.tensor(0.01) if tensor_lr else 0.01
        given = {k: bool(variant % 2) if isinstance(v, bool) else v for k, v in options.items()}
        return call(*lists, lr=rate, **given)

    return make


ADAM = {"beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1, "eps": 1e-6, "amsgrad": False, "maximize": False}


SGD = {"weight_decay": 0.1, "momentum": 0.9, "dampening": 0.0, "nesterov": False, "maximize": False}


ADAGRAD = {"lr_decay": 0.1, "weight_decay": 0.1, "eps": 1e-6, "maximize": False}


def optimizers() -> dict[str, Callable[[int], Example]]:
    """Calls of all fused optimizers, functional and in place, with the rate as a number and as a tensor."""
    made: dict[str, Callable[[int], Example]] = {}
    for form in ("", "_"):
        for suffix, tensor_lr in (("", False), (".tensor_lr", True)):
            for name in ("adam", "adamw"):
                made[f"_fused_{name}{form}{suffix}"] = optimizer(3, steps=True, tensor_lr=tensor_lr, **ADAM)
            sgd = optimizer(1, steps=False, tensor_lr=tensor_lr, is_first_step=False, **SGD)
            made[f"_fused_sgd{form}{suffix}"] = sgd
            made[f"_fused_adagrad{form}{suffix}"] = optimizer(1, steps=True, tensor_lr=tensor_lr, **ADAGRAD)
    return made
