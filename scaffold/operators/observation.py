"""What was seen of an operator on the CPU: the dtypes of its tensors, and how its results' shapes follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# The element type of a tensor that follows the dtype which the kernel is instantiated for.
FOLLOWS = "T"


@dataclass(frozen=True)
class Size:
    """A dimension of a result, or those that it begins with.

    Attributes:
        what: `leading`, the dimensions of a tensor without its last `place`; `size` of its dimension `place`; `pairs`
            among as many; `lesser`, the smaller one of its last two; `count` of its elements; `item` number `place` of
            a list; the `number` itself; `fixed`, which is `place` always.
        of: the argument.
        place: see `what`.
        asked_by: the argument that has to be true for it; empty where nothing is asked.
        otherwise: what the dimension is where `asked_by` is false.
    """

    what: str
    of: str
    place: int = 0
    asked_by: str = ""
    otherwise: Size | None = None


@dataclass(frozen=True)
class ObservedTensor:
    """A tensor that is written.

    Attributes:
        element: FOLLOWS, or the name of the dtype that it always had, `int32`.
        shape: `like NAME` of an input, `reduced` by dim and keepdim, `broadcast`, `one` for a 0-dim one, or empty.
        sizes: its dimensions, if `shape` is empty and they could be derived.
        is_loss: whether it is a 0-dim one unless `reduction` says "none": the shape is that of the loss for each.
        asked_by: the argument without which it has no elements, and one dimension; empty where nothing is asked.
    """

    element: str
    shape: str
    sizes: tuple[Size, ...] = ()
    is_loss: bool = False
    asked_by: str = ""


@dataclass(frozen=True)
class Observation:
    """What was seen of one overload.

    Attributes:
        inputs: the element type of each input tensor that was given, as of an ObservedTensor.
        like_first: the inputs that always had the shape of the first one.
        results: what is written, in the order of the returns; the outputs of an out form.
        has_meta: whether the meta kernel answered, which gives outputs their shape.
        integers: the dtypes without fractions that the first input may have, and the first result then has as well.
        same_dtype: whether an out form with one output refuses to cast its result to another dtype.
    """

    inputs: Mapping[str, str]
    like_first: frozenset[str]
    results: tuple[ObservedTensor, ...]
    has_meta: bool
    integers: tuple[str, ...] = ()
    same_dtype: bool = False
