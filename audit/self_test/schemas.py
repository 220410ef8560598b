"""What the schema of an overload says: which faults it can have at all."""

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
    """One overload by its arguments.

    Attributes:
        name: "aten::exp.out".
        inputs: tensors that are read and not written, lists of tensors included.
        optional: the tensors among them that may be left out.
        lists: the lists among them.
        written: tensors that are written, and were there before: running statistics, the target of an in-place call.
        outs: tensors given as out=.
        flags, numbers, integers, integer_lists, strings, optional_values, masks: other arguments, by type.
        defaults: what is taken where an argument is not given; an argument without a default is not in it.
        random, view, pointwise, reduction, backward: what kind of operator it is.
        results: how many results it returns.
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
        """Whether the first argument is the target."""
        return "self" in self.written

    @property
    def functional(self) -> bool:
        """Whether nothing is written."""
        return not self.written and not self.outs


@cache
def facts_of(name: str) -> Facts:
    """What the schema of an overload of the installed torch says. Raises AttributeError where there is none."""
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
