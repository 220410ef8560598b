"""Legendre and Laguerre polynomials with a degree for each element. Torch defines no gradient for them.

For a NaN all degrees but 0 give NaN; the CPU returns an uninitialised number from degree 2 on. A degree above 2^24
takes too long for a launch: if it is a number, the call goes to the CPU; an element of a tensor, unknown to the host,
gives NaN.
"""

from __future__ import annotations

import torch

from ..runtime.elementwise import as_tensors, floating
from ..runtime.outputs import copy_to_output
from ..runtime.rows import is_too_long
from ..runtime.shader import Shader

_shader = Shader(__file__)
_aten = torch.ops.aten
# They read no memory, so that a thread takes so many in the time that it else waits once.
_DEGREES_OF_STEP = 64
_NO_DEGREE = 2.0**63


def special_legendre_polynomial_p_out(
    x: torch.Tensor | float, n: torch.Tensor | float, *, out: torch.Tensor
) -> torch.Tensor:
    """`special_legendre_polynomial_p.out`: P_n(x), zero for a negative degree; the degree is truncated."""
    return _polynomial("special_legendre_polynomial_p", x, n, out)


def special_laguerre_polynomial_l_out(
    x: torch.Tensor | float, n: torch.Tensor | float, *, out: torch.Tensor
) -> torch.Tensor:
    """`special_laguerre_polynomial_l.out`: L_n(x), zero for a negative degree; the degree is truncated."""
    return _polynomial("special_laguerre_polynomial_l", x, n, out)


def _polynomial(name: str, x: torch.Tensor | float, n: torch.Tensor | float, out: torch.Tensor) -> torch.Tensor:
    operator = getattr(_aten, name)
    is_number = not isinstance(n, torch.Tensor) and 0 <= n < _NO_DEGREE
    if is_number and isinstance(x, torch.Tensor) and is_too_long(name, int(n) // _DEGREES_OF_STEP, f"degree {n}"):
        return copy_to_output(out, operator(x.cpu().double(), n).to(out.dtype))
    operands = as_tensors([x, n], out)
    return floating(_shader, name, operator.out, operands, operands, {"out": out})


KERNELS = (
    ("aten::special_legendre_polynomial_p.out", special_legendre_polynomial_p_out),
    ("aten::special_laguerre_polynomial_l.out", special_laguerre_polynomial_l_out),
)
# Inductor has no Metal for them.
EXTERN = ("aten::special_legendre_polynomial_p", "aten::special_laguerre_polynomial_l")
