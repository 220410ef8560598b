"""Samples with NaN, infinities, signed zeros, denormals and extreme integers in place of some of their values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ..cases import Case
from ..group import GroupKey
from ..tree import map_leaves
from .derived import DerivedOpInfoSource
from .opinfo import ELEMENTWISE

# Operators that read their integer inputs as positions, sizes or bits of memory: extreme values are bad input there.
REDUCTION = ("ReductionOpInfo",)
# Floating values may be special wherever the CPU defines what happens; these do not return for NaN or infinities.
UNDEFINED = frozenset({"histc", "histogram", "histogramdd", "multinomial", "normal", "bernoulli", "masked.normalize"})


class SpecialValueSource(DerivedOpInfoSource):
    """Each representative sample with one class of special values sprinkled over its tensors."""

    name = "special values"

    def varies(self, key: GroupKey) -> bool:
        """Only elementwise operators and reductions define what they do with every special value."""
        kind = type(self._opinfos.opinfo(key)).__name__
        if "_polynomial_" in key.operator and key.dtype in ("int32", "int64"):
            return False  # an extreme degree: the recurrence takes a step for each, a minute of them
        return kind in (*ELEMENTWISE, *REDUCTION) and key.dtype != "bool" and key.operator not in UNDEFINED

    def variations(self, key: GroupKey, case: Case) -> Iterator[Case]:
        """The variations that `with_special_values` makes."""
        return with_special_values(case, getattr(torch, key.dtype))


def with_special_values(case: Case, dtype: torch.dtype) -> Iterator[Case]:
    """One case for each class of values that the dtype has."""
    for title, values in classes(dtype).items():
        # Gradients at special values differ between correct implementations; only the values are defined.
        yield sprinkled(replace(case, differentiable=False, title=title, values=title), dtype, values)


def classes(dtype: torch.dtype) -> dict[str, Sequence[float | int]]:
    """Special values by the name of their class."""
    if not (dtype.is_floating_point or dtype.is_complex):
        limits = torch.iinfo(dtype)
        return {"extreme integers": (limits.max, limits.min, limits.max - 1, 0)}
    limits_of = torch.finfo(dtype)
    return {
        "nan": (math.nan,),
        "infinities": (math.inf, -math.inf),
        "signed zeros": (0.0, -0.0),
        "denormals": (limits_of.smallest_normal / 4, -limits_of.smallest_normal / 4),
        "largest finite": (limits_of.max, limits_of.min),
    }


def sprinkled(case: Case, dtype: torch.dtype, values: Sequence[float | int]) -> Case:
    """The case with every third element of its tensors of `dtype` replaced by the values in turn."""

    def change(leaf: object) -> object:
        if not isinstance(leaf, Tensor) or leaf.dtype is not dtype or leaf.layout is not torch.strided:
            return leaf
        flat = leaf.detach().clone().contiguous().flatten()
        places = range(0, flat.numel(), 3)
        for turn, place in enumerate(places):
            flat[place] = values[turn % len(values)]
        return flat.view(leaf.shape)

    args, kwargs = map_leaves(change, (case.args, case.kwargs))
    return replace(case, args=args, kwargs=kwargs)
