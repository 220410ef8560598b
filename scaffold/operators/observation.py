"""What was seen of an operator on the CPU: the dtypes of its tensors, and how its results' shapes follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# The element type of a tensor that follows the dtype which the kernel is instantiated for.
FOLLOWS = "T"


@dataclass(frozen=True)
class ObservedTensor:
    """A tensor that is written.

    Attributes:
        element: FOLLOWS, or the name of the dtype that it always had, `int32`.
        shape: `like NAME` of an input, `reduced` by dim and keepdim, `broadcast`, `one` for a 0-dim one, or empty.
    """

    element: str
    shape: str


@dataclass(frozen=True)
class Observation:
    """What was seen of one overload.

    Attributes:
        inputs: the element type of each input tensor that was given, as of an ObservedTensor.
        like_first: the inputs that always had the shape of the first one.
        results: what is written, in the order of the returns; the outputs of an out form.
        has_meta: whether the meta kernel answered, which gives outputs their shape.
    """

    inputs: Mapping[str, str]
    like_first: frozenset[str]
    results: tuple[ObservedTensor, ...]
    has_meta: bool
