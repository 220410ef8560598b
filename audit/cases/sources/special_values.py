"""Cases with special values in some of their elements: NaN, signed zeros, ties, integers beyond 2^24 and 2^53."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat

import torch
from torch import Tensor

from ...judging.signed_zeros import moves_elements
from ...model.case import Case
from ...model.nested import leaves
from .case_tensors import map_tensors
from .derived import BaseGroup, Factor, distinct
from .unsafe_values import FLOATING, bare, excluded, is_kept_as_given, writes_by_name
from .value_classes import ValueClass, classes

# So many tensors of a case get special values each alone; a foreach function has dozens that are all alike.
MOST_ALONE = 4
MOST_IN_ANY_PLACE = 2  # of the second and further classes that a tensor gets alone
# So many cases of a group are varied at most, each of another kind.
MOST_KINDS = 3


@dataclass(frozen=True)
class ValuePlan:
    """Which classes, by their titles, are tried with a dtype.

    Attributes:
        together: put into all tensors of the representative case at once.
        alone: put into each of its tensors alone.
        others: put into all tensors of cases of other kinds.
    """

    together: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


PLANS: dict[str, ValuePlan] = {
    "float32": ValuePlan(
        (
            *("nan", "infinities", "signed zeros", "negative zeros", "denormals", "largest finite"),
            *("nan in whole rows", "one infinity", "negative infinity in whole rows", "zeros", "all equal"),
            "infinities, largest finite",
        ),
        ("nan middle", "nan first", "nan last", "zeros"),
        ("nan", "nan middle"),
    ),
    "float16": ValuePlan(("nan", "infinities", "denormals", "largest finite"), ("nan middle",)),
    "bfloat16": ValuePlan(("nan", "infinities", "largest finite"), ("nan middle",)),
    "complex64": ValuePlan(
        ("nan", "infinities", "signed zeros", "nan in an imaginary part", "infinite imaginary part")
    ),
    "int64": ValuePlan(
        ("extreme integers", "all equal", "negative", "beyond 2^24", "beyond 2^31", "beyond 2^53"),
        ("zeros",),
        ("beyond 2^24", "beyond 2^53"),
    ),
    "int32": ValuePlan(("extreme integers", "negative", "beyond 2^24"), ("zeros",)),
    "int16": ValuePlan(("extreme integers", "negative")),
    "int8": ValuePlan(("extreme integers", "negative")),
    "uint8": ValuePlan(("extreme integers", "above 127")),
    "bool": ValuePlan(("all true", "all false")),
}
# For modules, recorded calls and lists of tensors: most of them call what the other OpInfos call.
FEWER_PLANS: dict[str, ValuePlan] = {
    "float32": ValuePlan(("nan", "infinities"), ("nan middle",)),
    "float16": ValuePlan(("nan",)),
    "int64": ValuePlan(("extreme integers", "beyond 2^53")),
}
# For recorded calls that write into an argument: mostly the same operators as those that return.
FEWEST_PLANS: dict[str, ValuePlan] = {"float32": ValuePlan(("nan",)), "int64": ValuePlan(("beyond 2^53",))}
# What the values of a dtype are at the least, sprinkled over all tensors: floating ones, and integers.
SPRINKLED: dict[bool, ValuePlan] = {
    True: ValuePlan(("nan", "infinities", "signed zeros", "denormals", "largest finite")),
    False: ValuePlan(("extreme integers",)),
}


def _applies(group: BaseGroup) -> bool:
    """Whether any class of the dtype's is defined for the operator."""
    plan = _plan(group)
    return plan is not None and bool(_defined(plan.together, group.key.operator, group.key.dtype))


def _variations(group: BaseGroup, cases: Sequence[Case]) -> Iterator[Case]:
    """All classes of the dtype's plan; for cases of other kinds the few that the plan has for them."""
    key, plan = group.key, _plan(group) or ValuePlan()
    for case, planned in zip(cases, chain([plan], repeat(ValuePlan(plan.others))), strict=False):
        yield from with_special_values(case, key.operator, key.dtype, planned)


def _plan(group: BaseGroup) -> ValuePlan | None:
    plan = _plans(group).get(group.key.dtype)
    if plan is None or group.key.dtype not in FLOATING or not moves_elements(bare(group.key.operator)):
        return plan
    return replace(plan, together=(*plan.together, "signed zeros"))


def _plans(group: BaseGroup) -> dict[str, ValuePlan]:
    if group.key.source == "schema":
        return FEWEST_PLANS if writes_by_name(group.key.operator) else FEWER_PLANS
    return PLANS if group.key.source == "opinfo" and not group.key.operator.startswith("_foreach_") else FEWER_PLANS


# Cases with one class of special values, in all tensors at once or in one alone.
SPECIAL_VALUE_FACTOR = Factor(
    "special values", _variations, _applies, choose=lambda group, cases: distinct(cases, MOST_KINDS)
)


def with_special_values(case: Case, operator: str, dtype: str, plan: ValuePlan) -> Iterator[Case]:
    """One case for each class of values that the plan has and that is defined for the operator.

    The device must refuse what the CPU refuses (a singular matrix, a probability of NaN).
    """
    tensors = varied_tensors(case, operator, getattr(torch, dtype))
    if not tensors:
        return
    several = len(tensors) > 1
    for value_class in _defined((*plan.together, *(() if several else plan.alone)), operator, dtype):
        yield with_values(case, tensors, value_class)
    for turn, value_class in enumerate(_defined(plan.alone if several else (), operator, dtype)):
        for tensor in tensors[: MOST_IN_ANY_PLACE if turn else MOST_ALONE]:
            yield replace(with_values(case, [tensor], value_class), title=f"{value_class} in tensor {tensor} alone")


def varied_tensors(case: Case, operator: str, dtype: torch.dtype) -> list[int]:
    """The positions, from left to right, of the tensors that get values: those of the dtype that hold numbers."""
    positions: list[int] = []
    count = 0
    for place, argument in (*enumerate(case.args), *case.kwargs.items()):
        integers = not (dtype.is_floating_point or dtype.is_complex)
        numbers = not is_kept_as_given(operator, place, integers=integers)
        for leaf in leaves(argument):
            if isinstance(leaf, Tensor):
                if numbers and leaf.dtype is dtype and leaf.layout is torch.strided and leaf.numel():
                    positions.append(count)
                count += 1
    return positions


def with_values(case: Case, tensors: Collection[int], value_class: ValueClass) -> Case:
    """The case with the values of a class in some of its tensors."""

    def change(tensor: Tensor, position: int) -> Tensor:
        if position not in tensors:
            return tensor
        plain = tensor.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
        return value_class.change(plain, position)

    # Gradients at special values differ between correct implementations; only the values are defined.
    changed = map_tensors(case, change)
    return replace(changed, differentiable=False, errors_count=True, values=value_class.name, title=str(value_class))


def _defined(titles: Iterable[str], operator: str, dtype: str) -> list[ValueClass]:
    by_title = classes(getattr(torch, dtype))
    chosen = [by_title[title] for title in dict.fromkeys(titles)]
    return [value_class for value_class in chosen if not excluded(operator, dtype, value_class.name)]
