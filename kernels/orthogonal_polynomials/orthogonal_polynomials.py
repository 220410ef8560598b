"""Legendre and Laguerre polynomials with a degree for each element. Torch defines no gradient for them.

For a NaN all degrees but 0 give NaN; the CPU returns an uninitialised number from degree 2 on.
"""

from __future__ import annotations

import torch

from ..runtime.elementwise import as_tensors, floating
from ..runtime.shader import Shader

_shader = Shader(__file__)
_aten = torch.ops.aten


def special_legendre_polynomial_p_out(
    x: torch.Tensor | float, n: torch.Tensor | float, *, out: torch.Tensor
) -> torch.Tensor:
    """`special_legendre_polynomial_p.out`: P_n(x), zero for a negative degree; the degree is truncated."""
    overload, operands = _aten.special_legendre_polynomial_p.out, as_tensors([x, n], out)
    return floating(_shader, "special_legendre_polynomial_p", overload, operands, operands, {"out": out})


def special_laguerre_polynomial_l_out(
    x: torch.Tensor | float, n: torch.Tensor | float, *, out: torch.Tensor
) -> torch.Tensor:
    """`special_laguerre_polynomial_l.out`: L_n(x), zero for a negative degree; the degree is truncated."""
    overload, operands = _aten.special_laguerre_polynomial_l.out, as_tensors([x, n], out)
    return floating(_shader, "special_laguerre_polynomial_l", overload, operands, operands, {"out": out})


KERNELS = (
    ("aten::special_legendre_polynomial_p.out", special_legendre_polynomial_p_out),
    ("aten::special_laguerre_polynomial_l.out", special_laguerre_polynomial_l_out),
)
# Inductor has no Metal for them.
EXTERN = ("aten::special_legendre_polynomial_p", "aten::special_laguerre_polynomial_l")
