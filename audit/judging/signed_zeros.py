"""Which operators have a zero of a certain sign as their result.

IEEE 754 gives it for arithmetic, the square root and roundings, and annex F of the C standard for the elementary
functions; what moves elements about keeps them. An activation that multiplies its input with a positive number keeps
the input's sign. A maximum of zeros of both signs may be either, as may a sum of many, and what PyTorch composes
(`remainder`, `sign`) has the sign that falls out.
"""

from __future__ import annotations

from ..cases import Case
from .operator_name import operator_name

ARITHMETIC = (
    "abs absolute add arctan2 atan2 copysign deg2rad div divide fmod hypot ldexp mul multiply neg negative positive "
    "rad2deg reciprocal rsub sqrt square sub subtract true_divide"
)
ROUNDINGS = "ceil fix floor round trunc"
FUNCTIONS = (
    "arcsin arcsinh arctan arctanh asin asinh atan atanh erf expm1 log1p sin sinh tan tanh special_erf special_expm1 "
    "special_log1p special_round silu mish gelu hardswish"
)
MOVES = "cat clone concat concatenate contiguous flip gather index_select masked_select repeat roll stack take where"

HAVE_SIGNED_ZEROS = frozenset(" ".join((ARITHMETIC, ROUNDINGS, FUNCTIONS, MOVES)).split())


def has_signed_zeros(case: Case) -> bool:
    """Whether the case is a call of such an operator."""
    return operator_name(case) in HAVE_SIGNED_ZEROS
