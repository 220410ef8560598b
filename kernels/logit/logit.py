"""The logit, log(x / (1 - x)), with an optional margin eps; functional, in-place, out and backward."""

from __future__ import annotations

import torch

from ..runtime.elementwise import floating
from ..runtime.shader import Shader

_shader = Shader(__file__)
_aten = torch.ops.aten
# The value that means "no eps" in the Metal functions: every real eps is at least zero.
_NO_EPS = -1.0


def logit_out(self: torch.Tensor, eps: float | None = None, *, out: torch.Tensor) -> torch.Tensor:
    """`logit.out`; integers become floats."""
    return floating(_shader, "logit", _aten.logit.out, [self], [self, eps], {"out": out}, [_margin(eps)])


def logit(self: torch.Tensor, eps: float | None = None) -> torch.Tensor:
    """`logit`, a new tensor of the input's floating dtype."""
    dtype = None if self.dtype.is_floating_point else torch.get_default_dtype()
    out = torch.empty_like(self) if dtype is None else torch.empty_like(self, dtype=dtype)
    return logit_out(self, eps, out=out)


def logit_(self: torch.Tensor, eps: float | None = None) -> torch.Tensor:
    """`logit_`, in place; refuses integers, which cannot hold the result."""
    return logit_out(self, eps, out=self)


def logit_backward_grad_input(
    grad_output: torch.Tensor, self: torch.Tensor, eps: float | None = None, *, grad_input: torch.Tensor
) -> torch.Tensor:
    """`logit_backward.grad_input`."""
    return floating(
        _shader,
        "logit_backward",
        _aten.logit_backward.grad_input,
        [grad_output, self],
        [grad_output, self, eps],
        {"grad_input": grad_input},
        [_margin(eps)],
    )


def _margin(eps: float | None) -> float:
    return _NO_EPS if eps is None else float(eps)


KERNELS = (
    ("aten::logit", logit),
    ("aten::logit_", logit_),
    ("aten::logit.out", logit_out),
    ("aten::logit_backward.grad_input", logit_backward_grad_input),
)
