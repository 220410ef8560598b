"""Which operators define the sign of a zero in their result.

IEEE 754 defines it for arithmetic, the square root and rounding, annex F of the C standard for elementary functions.
Operators that move or select elements keep it, also where they convert to another floating dtype. An activation that
multiplies its input by a positive number keeps the input's sign. It is not defined for a sum of many zeros, for a
maximum of zeros of both signs, or for what PyTorch composes (`remainder`, `sign`). An operator that chooses among
elements keeps the sign if all its zeros have the same one.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..model.case import Case
from ..model.nested import leaves
from .operator_name import operator_name, plain_name

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
# Names without underscores at their ends: `_unsafe_index` is unsafe_index.
MOVES = (
    "as_strided_scatter block_diag broadcast_tensors cartesian_prod cat channel_shuffle chunk_cat clone column_stack "
    "combinations concat concatenate constant_pad_nd contiguous copy copy_from diag diag_embed diagflat "
    "diagonal_backward diagonal_scatter dstack embedding fft_fftshift fft_ifftshift fill fill_diagonal flip fliplr "
    "flipud full full_like gather getitem hstack im2col index index_copy index_fill index_put index_put_impl "
    "index_select interpolate lift_fresh masked_fill masked_scatter masked_select max_unpool1d max_unpool2d "
    "max_unpool3d meshgrid nan_to_num native_channel_shuffle new_full pack_padded_sequence pad pad_circular pad_enum "
    "pad_packed_sequence pad_sequence pixel_shuffle pixel_unshuffle put reflection_pad1d reflection_pad2d "
    "reflection_pad3d repeat repeat_interleave replication_pad1d replication_pad2d replication_pad3d roll rot90 "
    "row_stack scatter select_backward select_scatter slice_backward slice_scatter stack take take_along_dim tile tril "
    "triu unsafe_index unsafe_index_put unsafe_masked_index upsample upsample_nearest upsample_nearest1d "
    "upsample_nearest2d upsample_nearest3d upsample_nearest_exact1d upsample_nearest_exact2d upsample_nearest_exact3d "
    "vstack where"
)
# Conversions between floating dtypes, which may copy only.
CONVERSIONS = "bfloat16 cdouble cfloat chalf double float half to to_copy type_as"
# A program reads what they show, or the device copies it: as in `clone`, or in another operator, `diagonal_copy`.
VIEWS = (
    "alias as_strided atleast_1d atleast_2d atleast_3d broadcast_to chunk detach diagonal dsplit expand expand_as "
    "flatten fw_primal hsplit imag linalg_diagonal moveaxis movedim narrow permute ravel real reshape reshape_alias "
    "reshape_as select slice split split_with_sizes squeeze swapaxes swapdims t tensor_split transpose unbind "
    "unflatten unfold unsafe_chunk unsafe_split unsafe_split_with_sizes unsafe_view unsqueeze view view_as "
    "view_as_complex view_as_real vsplit"
)
# Of these calls, only what interpolates between no two elements, and only what does not add to an element.
INTERPOLATIONS = ("interpolate", "upsample")
NEAREST = ("nearest", "nearest-exact")
ACCUMULATES = frozenset(["index_put", "index_put_impl", "put", "unsafe_index_put"])

CHOICES = (
    "amax amin aminmax clamp clamp_max clamp_min clip cummax cummin fmax fmin kthvalue max maximum median min minimum "
    "mode msort nanmedian sort topk"
)

# A bound that is a number may be a zero as well: the positive one.
CLAMPS = frozenset(["clamp", "clamp_max", "clamp_min", "clip"])
_CHOICES = frozenset(CHOICES.split())
HAVE_SIGNED_ZEROS = frozenset(" ".join((ARITHMETIC, ROUNDINGS, FUNCTIONS, BACKWARDS)).split())
_VIEWS = VIEWS.split()
_MOVES = frozenset([*MOVES.split(), *CONVERSIONS.split(), *_VIEWS, *(f"{view}_copy" for view in _VIEWS)])


def has_signed_zeros(case: Case) -> bool:
    """Whether the case calls an operator that defines the sign of a zero, in any form."""
    name = _name(case)
    if name in HAVE_SIGNED_ZEROS or _moves(case):
        return True
    return name in _CHOICES and _zeros_are_alike(case, numbers=name in CLAMPS)


def has_signed_complex_zeros(case: Case) -> bool:
    """Whether the operator moves elements, so that both parts of a complex number keep their signs.

    The CPU negates a complex number by subtracting it from zero, so a zero in a negative view has either sign.
    """
    tensors = (leaf for leaf in leaves((case.args, case.kwargs)) if isinstance(leaf, Tensor))
    return _moves(case) and not any(tensor.is_neg() for tensor in tensors)


def moves_elements(operator: str) -> bool:
    """Whether an operator ("index", "_unsafe_index", "index_put_") moves elements, in at least some of its calls."""
    return plain_name(operator).strip("_") in _MOVES


def _moves(case: Case) -> bool:
    name = _name(case)
    plain = [*case.args, *case.kwargs.values()]
    if name in INTERPOLATIONS and not all(value in NEAREST for value in plain if isinstance(value, str)):
        return False
    return name in _MOVES and not (name in ACCUMULATES and any(value is True for value in plain))


def _name(case: Case) -> str:
    """The operator's name; if the call is wrapped, that of its entry (`nn.functional.silu`, `where.self`)."""
    return (operator_name(case) or case.entry.removeprefix("nn.functional.").partition(".")[0]).strip("_")


def _zeros_are_alike(case: Case, *, numbers: bool) -> bool:
    """Whether all zeros in the case's real floating tensors have one sign; with `numbers`, zero numbers count, too."""
    signs: set[bool] = set()
    for leaf in leaves((case.args, case.kwargs)):
        if numbers and isinstance(leaf, (int, float)) and leaf == 0:
            signs.add(math.copysign(1.0, leaf) < 0)
        if isinstance(leaf, Tensor) and leaf.dtype.is_floating_point and leaf.layout is torch.strided:
            signs.update(torch.signbit(leaf.detach()[leaf.detach() == 0]).tolist())
    return len(signs) == 1
