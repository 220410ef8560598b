"""Proposes the faults that users reported: calls like those of the registry's known wrong results are wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import TYPE_CHECKING

from ...registry import known_wrong
from ...registry.known_case import KnownCase, TensorInput, View
from ...simulator.device.faults.fault import Term
from .proposal import Proposal, read, term

if TYPE_CHECKING:
    from .schemas import Facts

MANY_ELEMENTS = 65_536
MANY_DIMENSIONS = 5


def reported(facts: Facts, rng: Random) -> Proposal | None:
    """Values are wrong if the tensors have the dtype, layout, size and special values of a report."""
    cases = _cases_by_overload().get(facts.name)
    if not cases or facts.random:
        return None
    case = rng.choice(cases)
    tensors = [value for value in (*case.args, *case.kwargs.values()) if isinstance(value, TensorInput)]
    conditions = [
        word for name, tensor in zip(read(facts), tensors, strict=False) for word in _conditions(name, tensor)
    ]
    if not conditions:
        return None
    return term("values"), (term("dtype", read(facts)[0], tensors[0].dtype), *dict.fromkeys(conditions))


@cache
def _cases_by_overload() -> dict[str, list[KnownCase]]:
    by_overload: dict[str, list[KnownCase]] = {}
    for report in known_wrong.load().values():
        for case in report.cases:
            if not case.refused and case.memory_gib is None:
                by_overload.setdefault(report.overload_of(case), []).append(case)
    return by_overload


def _conditions(name: str, tensor: TensorInput) -> Iterator[Term]:
    """The conditions that a report's tensor meets and a plain one does not."""
    for view in tensor.views:
        yield from (term(word, name) for word in _words(view))
    shape = tensor.shape or ()
    if math.prod(shape) > MANY_ELEMENTS:
        yield term("above", name, MANY_ELEMENTS)
    if len(shape) >= MANY_DIMENSIONS:
        yield term("dimensions", name, MANY_DIMENSIONS)
    if shape and 0 in shape:
        yield term("empty", name)
    numbers = [value for value in tensor.values or () if isinstance(value, float)]
    if any(map(math.isnan, numbers)):
        yield term("nan", name)
    if any(map(math.isinf, numbers)):
        yield term("infinite", name)


def _words(view: View) -> Iterator[str]:
    """The conditions that hold for a tensor after a view."""
    if view.conj:
        yield "conjugate"
    if view.neg:
        yield "negated"
    if view.expand is not None:
        yield "expanded"
    if view.transpose is not None or view.permute is not None or view.memory_format is not None:
        yield "transposed"
    if view.slice is not None:
        _, start, _, step = view.slice
        yield "offset" if start else "non_contiguous"
        if step > 1:
            yield "non_contiguous"
