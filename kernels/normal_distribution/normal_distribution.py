"""The inverse and the logarithm of the normal distribution function; torch derives their gradients."""

from __future__ import annotations

import torch

from ..runtime.elementwise import floating
from ..runtime.shader import Shader

_shader = Shader(__file__)
_aten = torch.ops.aten


def special_ndtri_out(self: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
    """`special_ndtri.out`: NaN outside of [0, 1], infinite at its ends."""
    return floating(_shader, "special_ndtri", _aten.special_ndtri.out, [self], [self], {"out": out})


def special_log_ndtr_out(self: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
    """`special_log_ndtr.out`, accurate in both tails."""
    return floating(_shader, "special_log_ndtr", _aten.special_log_ndtr.out, [self], [self], {"out": out})


KERNELS = (
    ("aten::special_ndtri.out", special_ndtri_out),
    ("aten::special_log_ndtr.out", special_log_ndtr_out),
)
# Inductor has no Metal for the first, and decomposes the second so that it is NaN below -19 in float32.
EXTERN = ("aten::special_ndtri", "aten::special_log_ndtr")
