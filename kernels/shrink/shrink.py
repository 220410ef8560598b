"""Softshrink and its backward: values within lambda of zero become zero, all others move towards it by lambda."""

from __future__ import annotations

import torch

from ..runtime.elementwise import floating
from ..runtime.shader import Shader

_shader = Shader(__file__)
_aten = torch.ops.aten


def softshrink_out(self: torch.Tensor, lambd: float = 0.5, *, out: torch.Tensor) -> torch.Tensor:
    """`softshrink.out` for float32, float16 and bfloat16; the output has the dtype of the input."""
    return floating(
        _shader, "softshrink", _aten.softshrink.out, [self], [self, lambd], {"out": out}, [float(lambd)], casts=False
    )


def softshrink_backward_grad_input(
    grad_output: torch.Tensor, self: torch.Tensor, lambd: float, *, grad_input: torch.Tensor
) -> torch.Tensor:
    """`softshrink_backward.grad_input`: the gradient where the input is beyond lambda, else zero."""
    return floating(
        _shader,
        "softshrink_backward",
        _aten.softshrink_backward.grad_input,
        [grad_output, self],
        [grad_output, self, lambd],
        {"grad_input": grad_input},
        [float(lambd)],
    )


KERNELS = (
    ("aten::softshrink.out", softshrink_out),
    ("aten::softshrink_backward.grad_input", softshrink_backward_grad_input),
)
