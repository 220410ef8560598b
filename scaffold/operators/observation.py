"""Observes an operator on the CPU: the dtypes of its tensors, and rules for the shapes of its results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# The element type of a tensor that has the dtype of the instantiation.
FOLLOWS = "T"
# What a kernel may be instantiated for besides floating types.
INTEGERS = ("int64", "int32", "int16", "int8", "uint8", "bool")


@dataclass(frozen=True)
class Size:
    """A dimension of a result, or its leading dimensions.

    Attributes:
        what: `leading`: all dimensions of a tensor but the last `place`; `size`: of dimension `place`; `pairs`: number
            of pairs in dimension `place`; `lesser`: the smaller of the last two sizes; `count`: of elements; `item`:
            element `place` of a list; `number`: the argument itself; `fixed`: always `place`.
        of: the argument.
        place: see `what`.
        requested_by: the flag that has to be true for it; empty if there is none.
        otherwise: the dimension if the flag is false.
    """

    what: str
    of: str
    place: int = 0
    requested_by: str = ""
    otherwise: Size | None = None


@dataclass(frozen=True)
class ObservedTensor:
    """A tensor that is written.

    Attributes:
        element: FOLLOWS, or the name of the dtype that it always had, `int32`.
        shape: `like NAME` of an input, `reduced` by dim and keepdim, `broadcast`, `one` for a 0-dim one, or empty.
        sizes: its dimensions, if `shape` is empty and they could be derived.
        is_loss: whether it is 0-dim unless `reduction` is "none"; `shape` is the shape without reduction.
        requested_by: the flag without which its shape is (0,); empty if there is none.
    """

    element: str
    shape: str
    sizes: tuple[Size, ...] = ()
    is_loss: bool = False
    requested_by: str = ""


@dataclass(frozen=True)
class Observation:
    """The observations of one overload.

    Attributes:
        inputs: the element type of each input tensor that was given, as of an ObservedTensor.
        like_first: the inputs that always had the shape of the first one.
        results: what is written, in the order of the returns; the outputs of an out form.
        has_meta: whether its meta kernel works.
        integers: the integer dtypes (and bool) that the first input may have and the first result keeps.
        same_dtype: whether an out form with one output refuses to cast its result to another dtype.
    """

    inputs: Mapping[str, str]
    like_first: frozenset[str]
    results: tuple[ObservedTensor, ...]
    has_meta: bool
    integers: tuple[str, ...] = ()
    same_dtype: bool = False
