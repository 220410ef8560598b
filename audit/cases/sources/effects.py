"""Levels put into effect: the functions that bring a case to a layout, a size, values, a form or a gradient."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ...model.case import Case
from ...model.nested import leaves, map_leaves
from ..covering.array import Row
from ..covering.pairs import FORM, GRADIENT, LAYOUT, OTHER_LAYOUTS, SIZE, VALUES
from . import layouts
from .forms import Call, OutForm, detached

PLAIN = "plain"
# The sample that is varied, by its place among those that are chosen.
BASE = "base"

Change = Callable[[Case], "Case | None"]


class Effects:
    """Puts the rows of one operator's covering array into effect for one dtype.

    A level that a case cannot have gives way to the next one of its factor, so that no row is wasted.

    Args:
        op: the OpInfo.
        dtype: whose special values are put in.
    """

    def __init__(self, op: Any, dtype: str) -> None:
        # In the order in which they are done: a size before values, values before a layout that repeats some.
        self._changes: Mapping[str, Mapping[str, Change]] = {
            SIZE: {name: partial(resized, shape_of=shape_of) for name, shape_of in SIZES.items()},
            VALUES: special_values(getattr(torch, dtype)),
            LAYOUT: {name: partial(first_relaid, layout=layout) for name, layout in LAYOUTS.items()},
            OTHER_LAYOUTS: {name: partial(others_relaid, layout=layout) for name, layout in OTHERS_IN_FORMS.items()},
            GRADIENT: GRADIENTS,
            FORM: {
                IN_PLACE: partial(called_in_place, in_place=op.inplace_variant),
                OUT: partial(called_with_out, operator=op.op),
            },
        }

    def case_of(self, row: Row, bases: Sequence[Case]) -> Case:
        """The row as a case: of the base that it names, or of the next one that can be at all its levels."""
        first = int(row.get(BASE, "0")) % len(bases)
        in_turn = (_prepared(case, row) for case in (*bases[first:], *bases[:first]))
        exact = (changed for case in in_turn if (changed := self._exactly(case, row)) is not None)
        return next(exact, None) or self._as_far_as_possible(_prepared(bases[first], row), row)

    def _exactly(self, case: Case, row: Row) -> Case | None:
        titles = []
        for factor, changes in self._changes.items():
            level = row.get(factor, PLAIN)
            if level in changes:
                changed = changes[level](case)
                if changed is None:
                    return None
                case = changed
                titles.append(_title(factor, level))
        return replace(case, title=", ".join(titles) or PLAIN)

    def _as_far_as_possible(self, case: Case, row: Row) -> Case:
        titles = []
        for factor, changes in self._changes.items():
            level = row.get(factor, PLAIN)
            if level not in changes:
                continue
            levels = list(changes)
            start = levels.index(level)
            for other in levels[start:] + levels[:start]:
                changed = changes[other](case)
                if changed is not None:
                    case = changed
                    titles.append(_title(factor, other))
                    break
        return replace(case, title=", ".join(titles) or PLAIN)


def _prepared(case: Case, row: Row) -> Case:
    """The case without gradients where the row wants none; whether the CPU takes what becomes of it, nobody knows."""
    case = replace(case, errors_count=True)
    return case if row.get(GRADIENT, PLAIN) in GRADIENTS else without_gradients(case)


def _title(factor: str, level: str) -> str:
    if factor == OTHER_LAYOUTS:
        return f"others {level}"
    return f"gradients of {level}" if factor == GRADIENT else level


# ---- layouts

LAYOUTS: dict[str, layouts.Layout] = {
    "transposed": layouts.transposed,
    "offset": layouts.offset,
    "stepped": layouts.stepped,
    "expanded": layouts.expanded,
    "channels last": layouts.channels_last,
}
LAYOUTS_OF_OTHERS = {name: LAYOUTS[name] for name in ("transposed", "offset", "expanded")}
OTHERS_IN_FORMS = {**LAYOUTS_OF_OTHERS, "conjugated": layouts.conjugate_view}


def first_relaid(case: Case, layout: layouts.Layout) -> Case | None:
    """The case with its first tensor in another layout."""
    return layouts.relaid(case, layout, lambda place: place == 0)


def others_relaid(case: Case, layout: layouts.Layout) -> Case | None:
    """The case with all tensors but the first in another layout."""
    return layouts.relaid(case, layout, lambda place: place > 0)


# ---- sizes

# None is empty: a case without elements has no values, and no layout to speak of; the source of sizes has those.
SIZES: dict[str, Callable[[int], tuple[int, ...]]] = {
    "over 1,024 rows": lambda dims: (*[2] * (dims - 2), 1025 // 2 ** (dims - 2) + 1, 3),
    "over 65,536": lambda dims: (*[2] * (dims - 2), *[math.isqrt(65_536 // 2 ** (dims - 2)) + 1] * 2),
}


def resized(case: Case, shape_of: Callable[[int], tuple[int, ...]]) -> Case | None:
    """The case in another size with as many dimensions, none of which has one element alone."""
    common = common_shape(case)
    return None if common is None or len(common) < 2 else reshaped(case, common, shape_of(len(common)))


def raised(case: Case, shape: tuple[int, ...]) -> Case:
    """The case in `shape` where it has fewer dimensions and can have more."""
    common = common_shape(case)
    return case if common is None or len(common) >= len(shape) else reshaped(case, common, shape)


def common_shape(case: Case) -> torch.Size | None:
    """The shape that the case's tensors have, or broadcast to; numbers in tensors do not count beside others.

    None where there is no such shape, or no element to fill another one with.
    """
    tensors = [leaf for leaf in leaves((case.args, case.kwargs)) if isinstance(leaf, Tensor)]
    if not tensors or any(t.layout is not torch.strided or not t.numel() for t in tensors):
        return None
    shapes = {t.shape for t in tensors if t.dim()} or {torch.Size(())}
    if len(shapes) > 1 and not case.elementwise:
        return None
    common: torch.Size = torch.broadcast_shapes(*shapes)  # type: ignore[no-untyped-call]
    return common


def reshaped(case: Case, common: torch.Size, shape: tuple[int, ...]) -> Case:
    """The case with its tensors, which broadcast to `common`, in `shape`: their elements cut or repeated as need be."""
    size = math.prod(shape)

    def change(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor) or (common and not leaf.dim()):
            return leaf
        flat = leaf.detach().expand(common).flatten()
        return flat.repeat(-(-size // flat.numel()))[:size].view(shape).requires_grad_(leaf.requires_grad)

    args, kwargs = map_leaves(change, (case.args, case.kwargs))
    return replace(case, args=args, kwargs=kwargs)


# ---- values

FLOATING_VALUES = ("nan", "infinities", "largest finite")
INTEGER_VALUES = ("extreme integers",)
# Every so many elements one is special.
STEP = 3


def special_values(dtype: torch.dtype) -> dict[str, Change]:
    """What puts each class of special values into the tensors of a dtype."""
    if dtype is torch.bool:
        return {}
    if not (dtype.is_floating_point or dtype.is_complex):
        limits = torch.iinfo(dtype)
        extreme = partial(_sprinkled, dtype=dtype, name="extreme integers", values=[limits.max, limits.min])
        return {"extreme integers": extreme}
    largest = torch.finfo(dtype).max
    values = ([math.nan], [math.inf, -math.inf], [largest, -largest])
    return {
        name: partial(_sprinkled, dtype=dtype, name=name, values=of_class)
        for name, of_class in zip(FLOATING_VALUES, values, strict=True)
    }


def _sprinkled(case: Case, dtype: torch.dtype, name: str, values: list[float]) -> Case | None:
    found = False

    def change(leaf: Any) -> Any:
        nonlocal found
        if not isinstance(leaf, Tensor) or leaf.dtype is not dtype or leaf.layout is not torch.strided:
            return leaf
        found = True
        flat = leaf.detach().clone(memory_format=torch.contiguous_format).flatten()
        places = flat[::STEP]
        places.copy_(torch.tensor(values, dtype=leaf.dtype).repeat(-(-places.numel() // len(values)))[: len(places)])
        return flat.view(leaf.shape)

    args, kwargs = map_leaves(change, (case.args, case.kwargs))
    return replace(case, args=args, kwargs=kwargs, values=name) if found else None


# ---- gradients and forms


def without_gradients(case: Case) -> Case:
    """The case with no tensor that wants a gradient."""
    return replace(case, args=detached(case.args), kwargs=detached(case.kwargs), differentiable=False)


def with_gradients(case: Case) -> Case | None:
    """The case as a sampler makes it: every input that can have a gradient wants one."""
    return case if case.differentiable else None


def with_one_gradient(case: Case) -> Case | None:
    """The case with the last of several tensors alone that wants a gradient."""
    wanting = [leaf for leaf in leaves((case.args, case.kwargs)) if isinstance(leaf, Tensor) and leaf.requires_grad]
    if not case.differentiable or len({id(leaf) for leaf in wanting}) < 2:
        return None
    last = wanting[-1]

    def change(leaf: Any) -> Any:
        return leaf.detach() if isinstance(leaf, Tensor) and leaf is not last else leaf

    args, kwargs = map_leaves(change, (case.args, case.kwargs))
    return replace(case, args=args, kwargs=kwargs)


GRADIENTS: dict[str, Change] = {"all": with_gradients, "subset": with_one_gradient}
IN_PLACE = "in place"
OUT = "out= transposed"


def called_in_place(case: Case, in_place: Call) -> Case | None:
    """The case in place, on its first argument in whatever layout it has."""
    if not case.args or not isinstance(case.args[0], Tensor):
        return None

    def call(first: Tensor, *args: Any, **kwargs: Any) -> Any:
        returned = in_place(first, *args, **kwargs)
        return first.clone(), returned is first

    call.__name__ = IN_PLACE
    return replace(case, call=call, form=IN_PLACE, elementwise=False)


def called_with_out(case: Case, operator: Call) -> Case | None:
    """The case with out= tensors that are not contiguous."""
    if "out" in case.kwargs:
        return None
    return replace(case, call=OutForm("transposed").of(operator), form=OUT)
