"""Classes of special values: which values are written into which elements of a tensor.

A class is one kind of fault: NaN that a comparison drops, integers that float32 cannot hold. Its values go into all
elements, or only into some, so that ordinary values are next to them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

# Every so many elements one is special where special values are sprinkled.
STEP = 3
# Neighbouring integers that a dtype of so many bits of precision rounds to one: float32, a float64's are 2^53.
BEYOND = {"beyond 2^24": 1 << 24, "beyond 2^31": 1 << 31, "beyond 2^53": 1 << 53}
# No multiple of it is near a power of two, so that neighbours end up far from each other.
SCATTER = 7919

# Gives the tensor with special values in it; the second argument is which of a case's tensors it is.
Change = Callable[[Tensor, int], Tensor]


@dataclass(frozen=True)
class ValueClass:
    """A class of values, such as NaN.

    Attributes:
        name: shown in reports, and used to count the classes that an operator saw.
        change: writes the values into a tensor.
        title: distinguishes the variants of a class; by default the name.
    """

    name: str
    change: Change
    title: str = ""

    def __str__(self) -> str:
        return self.title or self.name


def sprinkled(*values: complex) -> Change:
    """Replace every third element by one of the values in turn."""

    def change(tensor: Tensor, which: int) -> Tensor:
        flat = tensor.flatten()
        places = flat[::STEP]
        turns = torch.tensor(values, dtype=flat.dtype)
        places.copy_(turns.repeat(-(-places.numel() // len(values)))[: places.numel()])
        return flat.view(tensor.shape)

    return change


def at(place: str, value: complex) -> Change:
    """Replace only one element: the "first", the "middle" or the "last"."""

    def change(tensor: Tensor, which: int) -> Tensor:
        flat = tensor.flatten()
        flat[{"first": 0, "middle": flat.numel() // 2, "last": -1}[place]].fill_(value)
        return flat.view(tensor.shape)

    return change


def in_first_row(value: complex) -> Change:
    """Replace the first entry of the first dimension, and of the last: a whole row and a whole column."""

    def change(tensor: Tensor, which: int) -> Tensor:
        rows = tensor if tensor.dim() else tensor.view(1)
        rows[:1].fill_(value)
        rows[..., :1].fill_(value)
        return rows.view(tensor.shape)

    return change


def filled(value: complex) -> Change:
    """Replace all elements by one value."""
    return lambda tensor, which: torch.full_like(tensor, value)


def all_equal(tensor: Tensor, which: int) -> Tensor:
    """Replace all elements by the first one."""
    return tensor.flatten()[:1].clone().expand(tensor.numel()).reshape(tensor.shape).clone()


def negative(tensor: Tensor, which: int) -> Tensor:
    """Make all elements negative."""
    return -tensor.abs() - 1


def neighbours(base: int) -> Change:
    """Different integers from `base` on in scattered order, from `base + 1` on in every second tensor; some negated."""

    def change(tensor: Tensor, which: int) -> Tensor:
        count = tensor.numel()
        values = base + (torch.arange(count) * SCATTER) % max(count, 1) + which % 2
        values[STEP::4] *= -1
        return values.to(tensor.dtype).view(tensor.shape)

    return change


def classes(dtype: torch.dtype) -> dict[str, ValueClass]:
    """All classes of a dtype, by their titles."""
    if dtype is torch.bool:
        value_classes = [ValueClass("all true", filled(True)), ValueClass("all false", filled(False))]
    elif dtype.is_floating_point or dtype.is_complex:
        value_classes = _floating(dtype)
    else:
        value_classes = _integers(dtype)
    return {str(value_class): value_class for value_class in value_classes}


def _floating(dtype: torch.dtype) -> list[ValueClass]:
    limits = torch.finfo(dtype)
    small = limits.smallest_normal / 4
    value_classes = [
        ValueClass("nan", sprinkled(math.nan)),
        ValueClass("infinities", sprinkled(math.inf, -math.inf)),
        ValueClass("signed zeros", sprinkled(0.0, -0.0)),
        ValueClass("signed zeros", filled(-0.0), "negative zeros"),
        ValueClass("denormals", sprinkled(small, -small)),
        ValueClass("largest finite", sprinkled(limits.max, limits.min)),
        *(ValueClass("nan", at(place, math.nan), f"nan {place}") for place in ("first", "middle", "last")),
        ValueClass("nan", in_first_row(math.nan), "nan in whole rows"),
        # Functions that overflow give infinities for these, not for infinities themselves: inf * 0 is NaN.
        ValueClass("infinities", sprinkled(math.inf, limits.max, -math.inf, limits.min), "infinities, largest finite"),
        ValueClass("infinities", at("middle", math.inf), "one infinity"),
        ValueClass("infinities", in_first_row(-math.inf), "negative infinity in whole rows"),
        ValueClass("zeros", filled(0.0)),
        ValueClass("all equal", all_equal),
    ]
    if dtype.is_complex:
        value_classes += [
            ValueClass("nan", at("middle", complex(1.0, math.nan)), "nan in an imaginary part"),
            ValueClass("infinities", at("middle", complex(1.0, -math.inf)), "infinite imaginary part"),
        ]
    return value_classes


def _integers(dtype: torch.dtype) -> list[ValueClass]:
    limits = torch.iinfo(dtype)
    value_classes = [
        ValueClass("extreme integers", sprinkled(limits.max, limits.min, limits.max - 1, 0)),
        ValueClass("zeros", filled(0)),
        ValueClass("all equal", all_equal),
    ]
    if limits.min == 0:
        return [*value_classes, ValueClass("above 127", sprinkled(128, 200, 254))]
    value_classes.append(ValueClass("negative", negative))
    value_classes += [ValueClass(name, neighbours(base)) for name, base in BEYOND.items() if base < limits.max]
    return value_classes
