"""The Airy function Ai. torch defines no gradient for it."""

from __future__ import annotations

import torch

from ..runtime.elementwise import floating
from ..runtime.shader import Shader

_shader = Shader(__file__)


def special_airy_ai_out(x: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
    """`special_airy_ai.out` for float32, float16 and bfloat16; integers become floats."""
    return floating(_shader, "special_airy_ai", torch.ops.aten.special_airy_ai.out, [x], [x], {"out": out})


KERNELS = (("aten::special_airy_ai.out", special_airy_ai_out),)
EXTERN = ("aten::special_airy_ai",)  # Inductor has no Metal for it
