"""Arguments that an operator must refuse: OpInfo's error inputs, and tensors that do not fit each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ...model.case import Case
from ...model.group import GroupKey
from ...model.selection import Samples
from .case_tensors import accepts, strided_positions, tensors_of, with_one
from .derived import BasedSource, representative
from .forms import detached
from .opinfo import ON_HOST, OpInfoSource, without_double
from .sizes import UNCHECKED, draws, is_a_part, is_any_of

# Of so many tensors each is tried in a size that does not fit.
MOST_TENSORS = 2


class ErrorSource(BasedSource[OpInfoSource]):
    """The error inputs of every OpInfo that has some; the device must raise what the CPU raises.

    And a sample with one tensor larger than the others allow.
    """

    name = "errors"

    def taken(self, keys: Iterable[GroupKey]) -> Iterator[GroupKey]:
        """The first of each OpInfo; its error inputs have the dtypes that the OpInfo chooses."""
        seen = set()
        for key in keys:
            name = (key.operator, key.variant)
            if name not in seen and "/" not in key.variant:
                seen.add(name)
                yield key

    def cases(self, key: GroupKey, samples: Samples) -> Iterator[Case]:
        """One case for each error input, and for each of a few tensors that does not fit."""
        base = self.base_key(key)
        op = self._base.opinfo(base)
        if op.error_inputs_func is not None:
            for error_input in op.error_inputs("cpu", set_seed=False):
                yield self._case(key, op, error_input)
        if not (is_any_of(key.operator, UNCHECKED) or is_a_part(key.operator) or draws(key.operator)):
            case = representative(self._base.cases(base, Samples.DEFAULT))
            yield from () if case is None else unfitting(case)

    @staticmethod
    def _case(key: GroupKey, op: Any, error_input: Any) -> Case:
        sample = error_input.sample_input
        case = Case(op.op, (sample.input, *sample.args), dict(sample.kwargs), errors_count=True, title="must raise")
        case.on_host = ON_HOST.get(key.operator, frozenset())
        return without_double(case)


def unfitting(case: Case) -> Iterator[Case]:
    """The call with one of several tensors larger by an entry, where the CPU refuses that."""
    plain = replace(case, args=detached(case.args), kwargs=detached(case.kwargs), differentiable=False)
    if len(tensors_of(plain)) < 2:
        return
    for position in strided_positions(plain)[:MOST_TENSORS]:
        varied = with_one(replace(plain, errors_count=True), position, with_one_more, f"tensor {position} does not fit")
        if varied is not None and not accepts(varied):
            yield varied


def with_one_more(tensor: Tensor) -> Tensor | None:
    """The tensor with its first entry once more at the end of its last dimension."""
    return torch.cat([tensor, tensor[..., :1]], -1) if tensor.dim() and tensor.shape[-1] > 1 else None
