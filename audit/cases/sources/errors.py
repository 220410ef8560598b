"""Arguments that an operator must refuse: OpInfo's error inputs, and tensors that do not fit each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ...model.case import Case, QuickShare
from .case_tensors import accepts, strided_positions, tensors_of, with_one
from .derived import BaseGroup, Factor, representative
from .forms import detached
from .opinfo import ON_HOST, without_double
from .sizes import UNCHECKED, draws, is_a_part, is_any_of

# Of so many tensors each is tried in a size that does not fit.
MOST_TENSORS = 2


def _variations(group: BaseGroup, _: Sequence[Case]) -> Iterator[Case]:
    """One case for each error input, and for each of a few tensors that does not fit."""
    op, operator = group.opinfo, group.key.operator
    if op.error_inputs_func is not None:
        for error_input in op.error_inputs("cpu", set_seed=False):
            bad = error_input.sample_input
            case = Case(op.op, (bad.input, *bad.args), dict(bad.kwargs), errors_count=True, title="must raise")
            yield without_double(replace(case, on_host=ON_HOST.get(operator, frozenset())))
    if not (is_any_of(operator, UNCHECKED) or is_a_part(operator) or draws(operator)):
        sample = representative(group.cases())
        yield from () if sample is None else unfitting(sample)


# The device must raise what the CPU raises. Error inputs have the dtypes that the OpInfo chooses: one group has them.
ERROR_FACTOR = Factor(
    "errors",
    _variations,
    applies=lambda group: group.key.dtype == group.dtypes[0],
    choose=lambda group, cases: [],  # the error inputs are made first
    quick=QuickShare.ALL,
)


def unfitting(case: Case) -> Iterator[Case]:
    """The call with one of several tensors larger by an entry, where the CPU refuses that."""
    plain = replace(case, args=detached(case.args), kwargs=detached(case.kwargs), differentiable=False)
    if len(tensors_of(plain)) < 2:
        return
    for position in strided_positions(plain)[:MOST_TENSORS]:
        varied = with_one(replace(plain, errors_count=True), position, enlarged, f"tensor {position} does not fit")
        if varied is not None and not accepts(varied):
            yield varied


def enlarged(tensor: Tensor) -> Tensor | None:
    """The tensor with its first entry once more at the end of its last dimension."""
    return torch.cat([tensor, tensor[..., :1]], -1) if tensor.dim() and tensor.shape[-1] > 1 else None
