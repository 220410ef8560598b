"""Legendre and Laguerre polynomials of a degree that each element has for itself. torch defines no gradient for them.

Of a NaN all degrees but 0 are NaN; the CPU returns an uninitialised number from degree 2 on.
"""

from __future__ import annotations

import torch

from ..runtime.elementwise import floating
from ..runtime.shader import Shader

_shader = Shader(__file__)
_aten = torch.ops.aten


def special_legendre_polynomial_p_out(
    x: torch.Tensor | float, n: torch.Tensor | float, *, out: torch.Tensor
) -> torch.Tensor:
    """`special_legendre_polynomial_p.out`: P_n(x), zero for a negative degree; a broken degree loses its fraction."""
    overload, operands = _aten.special_legendre_polynomial_p.out, _tensors(x, n, out)
    return floating(_shader, "special_legendre_polynomial_p", overload, operands, operands, {"out": out})


def special_laguerre_polynomial_l_out(
    x: torch.Tensor | float, n: torch.Tensor | float, *, out: torch.Tensor
) -> torch.Tensor:
    """`special_laguerre_polynomial_l.out`: L_n(x), zero for a negative degree; a broken degree loses its fraction."""
    overload, operands = _aten.special_laguerre_polynomial_l.out, _tensors(x, n, out)
    return floating(_shader, "special_laguerre_polynomial_l", overload, operands, operands, {"out": out})


def _tensors(x: torch.Tensor | float, n: torch.Tensor | float, out: torch.Tensor) -> list[torch.Tensor]:
    """Both as tensors: torch hands the scalar of the x_scalar and n_scalar forms to a kernel in Python as a number.

    As everywhere in torch a number does not widen the other's dtype.
    """
    others = [each.dtype for each in (x, n) if isinstance(each, torch.Tensor) and each.is_floating_point()]
    dtype = others[0] if others else torch.get_default_dtype()

    def tensor(each: torch.Tensor | float) -> torch.Tensor:
        return each if isinstance(each, torch.Tensor) else torch.tensor(each, dtype=dtype, device=out.device)

    return [tensor(x), tensor(n)]


KERNELS = (
    ("aten::special_legendre_polynomial_p.out", special_legendre_polynomial_p_out),
    ("aten::special_laguerre_polynomial_l.out", special_laguerre_polynomial_l_out),
)
# Inductor has no Metal for them.
EXTERN = ("aten::special_legendre_polynomial_p", "aten::special_laguerre_polynomial_l")
