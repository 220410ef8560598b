"""Finds tensor inputs on which no result of a group depends: a kernel that ignores or misreads one would pass.

Each input is changed in the first case, and in a few more until a result differs. Only the CPU runs. Floats get
different values, booleans the opposite ones, and all integers the value of the first, so that indices stay in range.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from ..cases.calls.invocation import SchemaCall, overload_of
from ..cases.sources.arguments import FLAGS_ALONE, UNCHECKED_OPERATORS
from ..cases.sources.case_tensors import tensors_in, tensors_of, tensors_on_cpu, with_tensors, written_positions
from ..judging.execution import Execution
from ..model.case import Case
from ..model.selection import DTYPES
from ..model.verdicts import WITHOUT_EFFECT

TRIES = 3
LARGEST = 100_000
CHANGED = frozenset(getattr(torch, name) for name in (*DTYPES, "float64", "complex128"))
# Where integers say which memory is read, and must be in order.
_POSITIONS = re.compile(
    f"{UNCHECKED_OPERATORS.pattern}|{FLAGS_ALONE.pattern}|embedding_bag|segment_reduce|lengths|pivot"
)


class InputDependence:
    """The inputs of one group that were changed, and those that made a difference.

    Args:
        operator: the operator of the group.

    Attributes:
        last: the position of the last case in which an input was changed.
    """

    def __init__(self, operator: str) -> None:
        self._has_positions = bool(_POSITIONS.search(operator))
        self._tries: Counter[str] = Counter()
        self._effective: set[str] = set()
        self.last = -1

    def probe(self, position: int, case: Case, reference: Execution) -> None:
        """Change those inputs of a passed case that have shown no effect yet.

        Args:
            position: the position of the case in its group.
            case: the case.
            reference: its run on the CPU.
        """
        if case.uninitialised or case.distribution:
            return
        names = list(_names(case))
        if all(map(self._is_known, names)):
            return
        tensors, written = tensors_of(case), written_positions(case)
        for number, name in enumerate(names):
            if self._is_known(name) or number in written:
                continue
            changed = self._changed(tensors[number])
            if changed is None:
                continue
            self._tries[name] += 1
            self.last = position
            before = [leaf for leaf in reference.outputs if isinstance(leaf, Tensor)]
            if _differ(replace(with_tensors(case, {number: changed}, ""), differentiable=False), before):
                self._effective.add(name)

    @property
    def without_effect(self) -> list[str]:
        """The inputs that were changed and never made a difference."""
        return sorted(self._tries.keys() - self._effective)

    @property
    def note(self) -> str:
        """The text for the store; empty if there are none."""
        names = self.without_effect
        return f"{WITHOUT_EFFECT}{', '.join(names)}" if names else ""

    def _is_known(self, name: str) -> bool:
        """Whether an input had an effect, or was changed often enough."""
        return name in self._effective or self._tries[name] >= TRIES

    def _changed(self, tensor: Tensor) -> Tensor | None:
        """Different values for an input; None if it cannot be changed safely."""
        if tensor.layout is not torch.strided or tensor.dtype not in CHANGED or not 0 < tensor.numel() <= LARGEST:
            return None
        given = tensor.detach()
        if given.is_floating_point() or given.is_complex():
            return given.flatten().flip(0).reshape(given.shape) + 0.25 + given.abs() / 2
        if given.dtype is torch.bool:
            return given.logical_not()
        changed = given.flatten()[0].expand(given.shape).clone()
        return None if self._has_positions or torch.equal(changed, given) else changed


def _names(case: Case) -> Iterator[str]:
    """For each tensor, by position, the name of its argument."""
    schema = overload_of(case.call.__name__)._schema.arguments if isinstance(case.call, SchemaCall) else ()
    for number, value in enumerate(case.args):
        name = schema[number].name if number < len(schema) else f"argument {number + 1}"
        yield from (name for _ in tensors_in(value))
    for name, value in case.kwargs.items():
        yield from (name for _ in tensors_in(value))


def _differ(case: Case, before: list[Tensor]) -> bool:
    """Whether the CPU's results of a case differ from those before, or cannot be compared."""
    results = tensors_on_cpu(case)
    if results is None or len(results) != len(before):
        return True
    try:
        return not all(map(_same, results, before))
    except Exception:  # tensors that only look like strided ones, such as nested ones
        return True


def _same(first: Tensor, second: Tensor) -> bool:
    if first.layout is not torch.strided or first.shape != second.shape or first.dtype != second.dtype:
        return False
    return bool(torch.isclose(first, second, rtol=0, atol=0, equal_nan=True).all())
