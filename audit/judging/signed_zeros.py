"""Which operators define the sign of a zero in their result.

IEEE 754 defines it for arithmetic, the square root and rounding, annex F of the C standard for elementary functions.
Operators that move elements keep it. An activation that multiplies its input by a positive number keeps the input's
sign. It is not defined for a sum of many zeros, for a maximum of zeros of both signs, or for what PyTorch composes
(`remainder`, `sign`). An operator that chooses among elements keeps the sign if all its zeros have the same one.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..model.case import Case
from ..model.nested import leaves
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
# A gradient times what is positive, or zero where nothing is let through.
BACKWARDS = (
    "elu_backward gelu_backward hardsigmoid_backward hardswish_backward hardtanh_backward leaky_relu_backward "
    "sigmoid_backward silu_backward softplus_backward tanh_backward threshold_backward"
)
MOVES = (
    "cat clone concat concatenate contiguous flip gather index_copy index_fill index_select masked_fill masked_scatter "
    "masked_select narrow_copy pixel_shuffle pixel_unshuffle put reflection_pad1d reflection_pad2d reflection_pad3d "
    "repeat replication_pad1d replication_pad2d replication_pad3d roll rot90 scatter select_scatter slice_scatter "
    "stack take take_along_dim tril triu where"
)

CHOICES = (
    "amax amin aminmax clamp clamp_max clamp_min clip cummax cummin fmax fmin kthvalue max maximum median min minimum "
    "mode msort nanmedian sort topk"
)

# A bound that is a number may be a zero as well: the positive one.
CLAMPS = frozenset(["clamp", "clamp_max", "clamp_min", "clip"])
_CHOICES = frozenset(CHOICES.split())
HAVE_SIGNED_ZEROS = frozenset(" ".join((ARITHMETIC, ROUNDINGS, FUNCTIONS, BACKWARDS, MOVES)).split())
_MOVES = frozenset(MOVES.split())


def has_signed_zeros(case: Case) -> bool:
    """Whether the case calls an operator that defines the sign of a zero, in any form."""
    name = _name(case)
    if name in HAVE_SIGNED_ZEROS:
        return True
    return name in _CHOICES and _zeros_are_alike(case, numbers=name in CLAMPS)


def has_signed_complex_zeros(case: Case) -> bool:
    """Whether the operator moves elements, so that both parts of a complex number keep their signs.

    The CPU negates a complex number by subtracting it from zero, so a zero in a negative view has either sign.
    """
    tensors = (leaf for leaf in leaves((case.args, case.kwargs)) if isinstance(leaf, Tensor))
    return _name(case) in _MOVES and not any(tensor.is_neg() for tensor in tensors)


def _name(case: Case) -> str:
    """The operator's name; if the call is wrapped, that of its entry (`nn.functional.silu`, `where.self`)."""
    return operator_name(case) or case.entry.removeprefix("nn.functional.").partition(".")[0].strip("_")


def _zeros_are_alike(case: Case, *, numbers: bool) -> bool:
    """Whether all zeros in the case's real floating tensors have one sign; with `numbers`, zero numbers count, too."""
    signs: set[bool] = set()
    for leaf in leaves((case.args, case.kwargs)):
        if numbers and isinstance(leaf, (int, float)) and leaf == 0:
            signs.add(math.copysign(1.0, leaf) < 0)
        if isinstance(leaf, Tensor) and leaf.dtype.is_floating_point and leaf.layout is torch.strided:
            signs.update(torch.signbit(leaf.detach()[leaf.detach() == 0]).tolist())
    return len(signs) == 1
