"""The table of variations: functions that bring a case to a level of a factor (layout, size, values, form, ...)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ....registry.files import full_name
from ...model.case import Case
from ..calls.invocation import overload_of
from ..covering.array import Row
from ..covering.pairs import FORM, GRADIENT, LAYOUT, OTHER_LAYOUTS, SIZE, VALUES
from . import layouts
from .case_tensors import comparing_errors, map_tensors, tensors_of, with_tensors, written_positions
from .forms import Call, OutForm, detached
from .modules import ModuleCall
from .sizes import UNCHECKED, is_any_of, is_for_users
from .special_values import varied_tensors, with_values
from .unsafe_values import excluded
from .value_classes import ValueClass, classes, sprinkled

PLAIN = "plain"
# The sample that is varied, by its position among the chosen ones.
BASE = "base"

Change = Callable[[Case], "Case | None"]


@dataclass(frozen=True)
class Variation:
    """One change to a case.

    Attributes:
        factor, level: what is varied, and the choice for it.
        change: gives the case at this level, or None if it cannot be at it.
    """

    factor: str
    level: str
    change: Change

    @property
    def title(self) -> str:
        """The name of the level in titles of cases."""
        return f"{TITLE_PREFIXES.get(self.factor, '')}{self.level}"


TITLE_PREFIXES = {OTHER_LAYOUTS: "others ", GRADIENT: "gradients of "}


def variations_of(op: Any, dtype: str) -> tuple[Variation, ...]:
    """All variations of the samples of an OpInfo in a dtype.

    They are in the order in which they are applied: a size before values, values before a layout that repeats some.
    """
    special = special_values(getattr(torch, dtype))
    return (
        *(Variation(SIZE, level, partial(resized, shape_of=shape_of)) for level, shape_of in SIZES.items()),
        *(Variation(VALUES, level, change) for level, change in special.items()),
        *(Variation(LAYOUT, level, partial(first_in_layout, layout=layout)) for level, layout in LAYOUTS.items()),
        *(
            Variation(OTHER_LAYOUTS, level, partial(others_in_layout, layout=layout))
            for level, layout in OTHERS_IN_FORMS.items()
        ),
        *(Variation(GRADIENT, level, change) for level, change in GRADIENTS.items()),
        Variation(FORM, IN_PLACE, partial(called_in_place, in_place=op.inplace_variant)),
        Variation(FORM, OUT, partial(called_with_out, operator=op.op)),
    )


def variations_of_call(operator: str, dtype: str, case: Case) -> tuple[Variation, ...]:
    """The variations of a call by name in a dtype, in the order in which they are applied.

    Sizes change only if the call takes any size. Written tensors are not expanded, and out tensors stay as they are.
    """
    tensors, written = tensors_of(case), written_positions(case)
    others = {i for i in range(1, len(tensors)) if i not in written}
    value_classes = classes(getattr(torch, dtype))
    names = [n for n in (*FLOATING_VALUES, *INTEGER_VALUES) if n in value_classes and not excluded(operator, dtype, n)]
    return (
        *(
            Variation(SIZE, level, partial(resized, shape_of=shape_of))
            for level, shape_of in SIZES.items()
            if takes_any_size(operator, case)
        ),
        *(
            Variation(VALUES, name, partial(with_class, operator=operator, dtype=dtype, chosen=value_classes[name]))
            for name in names
        ),
        *(
            Variation(LAYOUT, level, partial(first_in_layout, layout=layout))
            for level, layout in LAYOUTS.items()
            if not (0 in written and layout is layouts.expanded)
        ),
        *(
            Variation(OTHER_LAYOUTS, level, partial(layouts.relaid, layout=layout, chosen=others.__contains__))
            for level, layout in LAYOUTS_OF_OTHERS.items()
        ),
    )


def takes_any_size(operator: str, case: Case) -> bool:
    """Whether a call by name is elementwise, or is a public call of one tensor; False for modules."""
    if isinstance(case.call, ModuleCall):
        return False
    pointwise = torch.Tag.pointwise in overload_of(full_name(operator)).tags
    return pointwise or (len(tensors_of(case)) == 1 and is_for_users(operator) and not is_any_of(operator, UNCHECKED))


def with_class(case: Case, operator: str, dtype: str, chosen: ValueClass) -> Case | None:
    """The case with a class of special values in each tensor that holds numbers; None if no tensor does."""
    positions = varied_tensors(case, operator, getattr(torch, dtype))
    return with_values(case, positions, chosen) if positions else None


def varied_case(variations: Sequence[Variation], row: Row, bases: Sequence[Case]) -> Case:
    """The row of a covering array as a case: of the base that it names, or of the next one that can be at its levels.

    If no base can be at all of them, the next level of a factor takes the place of one that the case cannot be at.
    """
    first = int(row.get(BASE, "0")) % len(bases)
    for case in (*bases[first:], *bases[:first]):
        exact = _applied(variations, row, case, or_next=False)
        if exact is not None:
            return exact
    nearest = _applied(variations, row, bases[first], or_next=True)
    assert nearest is not None
    return nearest


def _applied(variations: Sequence[Variation], row: Row, case: Case, *, or_next: bool) -> Case | None:
    """The case at the row's levels, or, if `or_next`, at the next levels that it can be at; None if it cannot."""
    case = comparing_errors(case if row.get(GRADIENT, PLAIN) in GRADIENTS else without_gradients(case))
    titles = []
    for factor in dict.fromkeys(variation.factor for variation in variations):
        candidates = list(_from_level(variations, factor, row.get(factor, PLAIN)))
        for variation in candidates if or_next else candidates[:1]:
            changed = variation.change(case)
            if changed is not None:
                case = changed
                titles.append(variation.title)
                break
        else:
            if candidates and not or_next:
                return None
    return replace(case, title=", ".join(titles) or PLAIN)


def _from_level(variations: Sequence[Variation], factor: str, level: str) -> Iterator[Variation]:
    """The variations of a factor from a level on, then those before it; none if the factor has no such level."""
    of_factor = [variation for variation in variations if variation.factor == factor]
    start = next((i for i, variation in enumerate(of_factor) if variation.level == level), None)
    if start is not None:
        yield from of_factor[start:]
        yield from of_factor[:start]


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


def first_in_layout(case: Case, layout: layouts.Layout) -> Case | None:
    """The case with its first tensor in another layout."""
    return layouts.relaid(case, layout, lambda place: place == 0)


def others_in_layout(case: Case, layout: layouts.Layout) -> Case | None:
    """The case with all tensors but the first in another layout."""
    return layouts.relaid(case, layout, lambda place: place > 0)


# ---- sizes

# None is empty: a case without elements has no values, and no layout to speak of; the source of sizes has those.
SIZES: dict[str, Callable[[int], tuple[int, ...]]] = {
    "over 1,024 rows": lambda dims: (*[2] * (dims - 2), 1025 // 2 ** (dims - 2) + 1, 3),
    "over 65,536": lambda dims: (*[2] * (dims - 2), *[math.isqrt(65_536 // 2 ** (dims - 2)) + 1] * 2),
}


def resized(case: Case, shape_of: Callable[[int], tuple[int, ...]]) -> Case | None:
    """The case in another size with as many dimensions, each larger than 1."""
    common = common_shape(case)
    return None if common is None or len(common) < 2 else reshaped(case, common, shape_of(len(common)))


def raised(case: Case, shape: tuple[int, ...]) -> Case:
    """The case with its tensors in `shape`, if they have fewer dimensions and can be reshaped."""
    common = common_shape(case)
    return case if common is None or len(common) >= len(shape) else reshaped(case, common, shape)


def common_shape(case: Case) -> torch.Size | None:
    """The shape that the case's tensors have, or broadcast to; 0-dim tensors count only if there are no others.

    None if there is no such shape, or if a tensor is empty.
    """
    tensors = tensors_of(case)
    if not tensors or any(t.layout is not torch.strided or not t.numel() for t in tensors):
        return None
    shapes = {t.shape for t in tensors if t.dim()} or {torch.Size(())}
    if len(shapes) > 1 and not case.elementwise:
        return None
    common: torch.Size = torch.broadcast_shapes(*shapes)  # type: ignore[no-untyped-call]
    return common


def reshaped(case: Case, common: torch.Size, shape: tuple[int, ...]) -> Case:
    """The case with its tensors, which broadcast to `common`, in `shape`; elements are cut or repeated."""
    size = math.prod(shape)

    def change(tensor: Tensor, position: int) -> Tensor:
        if common and not tensor.dim():
            return tensor
        flat = tensor.detach().expand(common).flatten()
        return flat.repeat(-(-size // flat.numel()))[:size].view(shape).requires_grad_(tensor.requires_grad)

    return map_tensors(case, change)


# ---- values

FLOATING_VALUES = ("nan", "infinities", "largest finite")
INTEGER_VALUES = ("extreme integers",)


def special_values(dtype: torch.dtype) -> dict[str, Change]:
    """One variation for each class of special values of a dtype."""
    if dtype is torch.bool:
        return {}
    if not (dtype.is_floating_point or dtype.is_complex):
        limits = torch.iinfo(dtype)
        values: dict[str, tuple[float, ...]] = {"extreme integers": (limits.max, limits.min)}
    else:
        largest = torch.finfo(dtype).max
        of_classes = ((math.nan,), (math.inf, -math.inf), (largest, -largest))
        values = dict(zip(FLOATING_VALUES, of_classes, strict=True))
    return {name: partial(_with_values, dtype=dtype, name=name, values=numbers) for name, numbers in values.items()}


def _with_values(case: Case, dtype: torch.dtype, name: str, values: tuple[float, ...]) -> Case | None:
    tensors = {i: t for i, t in enumerate(tensors_of(case)) if t.dtype is dtype and t.layout is torch.strided}
    plain = {i: t.detach().clone(memory_format=torch.contiguous_format) for i, t in tensors.items()}
    others = {i: sprinkled(*values)(tensor, i) for i, tensor in plain.items()}
    return replace(with_tensors(case, others, case.title), values=name) if others else None


# ---- gradients and forms


def without_gradients(case: Case) -> Case:
    """The case with no tensor that requires a gradient."""
    return replace(case, args=detached(case.args), kwargs=detached(case.kwargs), differentiable=False)


def with_gradients(case: Case) -> Case | None:
    """The case as the sampler makes it, with all differentiable inputs requiring gradients; None if there are none."""
    return case if case.differentiable else None


def with_one_gradient(case: Case) -> Case | None:
    """The case in which only the last of several tensors requires a gradient."""
    differentiable = [tensor for tensor in tensors_of(case) if tensor.requires_grad]
    if not case.differentiable or len({id(tensor) for tensor in differentiable}) < 2:
        return None
    last = differentiable[-1]
    return map_tensors(case, lambda tensor, position: tensor if tensor is last else tensor.detach())


GRADIENTS: dict[str, Change] = {"all": with_gradients, "subset": with_one_gradient}
IN_PLACE = "in place"
OUT = "out= transposed"


def called_in_place(case: Case, in_place: Call) -> Case | None:
    """The case in place, on its first argument in its own layout."""
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
