"""Models of cached MPSGraph graphs whose key in a release's host code has six decimals of the numbers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .prediction import Model, Prediction, Ulp

_FACTORS = ("beta", "alpha")
# The numbers that are constants of an overload's graph.
IN_SIX_DECIMALS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("addmm", "addmv", "addr", "addbmm", "baddbmm"), _FACTORS),
    **dict.fromkeys(("huber_loss", "huber_loss_backward"), ("delta",)),
    **dict.fromkeys(("smooth_l1_loss", "smooth_l1_loss_backward"), ("beta",)),
    **dict.fromkeys(("logit", "logit_backward"), ("eps",)),
    **dict.fromkeys(("std", "var", "std_mean", "var_mean"), ("correction",)),
    "hardtanh_backward": ("min_val", "max_val"),
    "threshold": ("threshold", "value"),
    "threshold_backward": ("threshold",),
    "constant_pad_nd": ("value",),
}


def _of_an_earlier_call(overload: str, names: tuple[str, ...]) -> Model:
    """The numbers of the first call with the same key are used; in the second run, zero for numbers below 1e-6."""
    operator = getattr(torch.ops.aten, overload)
    order = [argument.name for argument in getattr(operator, operator.overloads()[0])._schema.arguments]

    def model(ulp: Ulp, *args: Any, **named: Any) -> Any:
        given = dict(zip(order, args, strict=False)) | named
        numbers = {name: float(given[name]) for name in names if isinstance(given.get(name), (int, float))}
        texts = [f"{abs(number):f}" for number in numbers.values()]
        tensors = [(tensor.shape, tensor.dtype) for tensor in given.values() if isinstance(tensor, Tensor)]
        first = {
            name: 0.0 if ulp.run and float(text) == 0 else number
            for (name, number), text in zip(numbers.items(), texts, strict=True)
        }
        earlier = ulp.earlier.setdefault(str((overload, texts, tensors)), first)
        if earlier == numbers:
            return None
        positional = [earlier.get(name, value) for name, value in zip(order, args, strict=False)]
        return operator(*positional, *args[len(positional) :], **named | {n: earlier[n] for n in earlier if n in named})

    return model


GRAPH_KEYS = (
    Prediction(
        "numbers-alike-in-six-decimals",
        {f"aten::{overload}": _of_an_earlier_call(overload, names) for overload, names in IN_SIX_DECIMALS.items()},
        alternatives=2,
    ),
)
