"""Facts from the schema of an overload, which decide what faults it can have."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from ..cases.calls.invocation import overload_of
from ..judging.randomness import draws

FLAGS = ("bool",)
NUMBERS = ("float", "number", "Optional[float]", "Optional[number]")


@dataclass(frozen=True)
class Facts:
    """Facts about one overload.

    Attributes:
        name: "aten::exp.out".
        inputs: tensors that are read and not written, lists of tensors included.
        optional: those of them that may be omitted.
        lists: those of them that are lists.
        written: tensors that are read and written: running statistics, the target of an in-place call.
        outs: tensors given as out=.
        flags, numbers, integers, integer_lists, strings, optional_values, masks: other arguments, by type.
        defaults: the default values of the arguments that have one.
        random, view, pointwise, reduction, backward: the kind of operator.
        results: the number of results.
    """

    name: str
    inputs: tuple[str, ...]
    optional: tuple[str, ...]
    lists: tuple[str, ...]
    written: tuple[str, ...]
    outs: tuple[str, ...]
    flags: tuple[str, ...]
    numbers: tuple[str, ...]
    integers: tuple[str, ...]
    integer_lists: tuple[str, ...]
    strings: tuple[str, ...]
    optional_values: tuple[str, ...]
    masks: tuple[str, ...]
    defaults: dict[str, Any]
    random: bool
    view: bool
    pointwise: bool
    reduction: bool
    backward: bool
    results: int

    @property
    def in_place(self) -> bool:
        """Whether it writes to its first argument."""
        return "self" in self.written

    @property
    def functional(self) -> bool:
        """Whether it writes to no argument."""
        return not self.written and not self.outs


@cache
def facts_of(name: str) -> Facts:
    """The facts about an overload of the installed torch. Raises AttributeError if there is none of this name."""
    overload = overload_of(name)
    listed = overload._schema.arguments
    types = {a.name: str(a.type) for a in listed}
    writes = {a.name: a for a in listed if a.alias_info is not None and a.alias_info.is_write}
    tensors = {n for n, kind in types.items() if "Tensor" in kind}
    returns = overload._schema.returns

    def of(*kinds: str) -> tuple[str, ...]:
        return tuple(n for n, kind in types.items() if kind in kinds)

    inputs = tuple(n for n in types if n in tensors and n not in writes)
    masks = tuple(a.name for a in listed if types[a.name] == "List[bool]")
    return Facts(
        name=name,
        inputs=inputs,
        optional=tuple(n for n in inputs if types[n] == "Optional[Tensor]"),
        lists=tuple(n for n in inputs if types[n].startswith("List")),
        written=tuple(n for n, a in writes.items() if not a.kwarg_only),
        outs=tuple(n for n, a in writes.items() if a.kwarg_only),
        flags=of(*FLAGS),
        numbers=of(*NUMBERS),
        integers=of("int"),
        integer_lists=of("List[int]", "Optional[List[int]]"),
        strings=of("str", "Optional[str]"),
        optional_values=tuple(n for n, kind in types.items() if kind.startswith("Optional") and n not in tensors),
        masks=masks,
        defaults={a.name: a.default_value for a in listed if a.has_default_value()},
        random=draws(overload),
        view=any(r.alias_info is not None and not r.alias_info.is_write for r in returns),
        pointwise=torch.Tag.pointwise in overload.tags,
        reduction=torch.Tag.reduction in overload.tags,
        backward="backward" in name,
        results=len(returns),
    )
