"""Makes a failing case smaller as long as it fails in the same way: fewer elements, simpler layout and values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ...model.case import Case
from ...model.nested import leaves, map_leaves
from ...model.verdicts import CaseVerdict, Outcome, without_numbers

Judge = Callable[[Case], Outcome]
MOST_STEPS = 400
_LIST = re.compile(r"\[[^][]*\]")


def shrink(case: Case, judge: Judge) -> tuple[Case, Outcome]:
    """The smallest case found that ends with the same verdict and message, numbers and shapes aside, and its outcome.

    Greedy: a simplification is kept if the case still fails alike, and all are tried again until none helps. One that
    the CPU refuses gives a different verdict and is dropped. A crash cannot be shrunk, because it would end this
    process.
    """
    outcome = judge(case)
    if outcome.verdict in (CaseVerdict.PASSED, CaseVerdict.REFERENCE_FAILED, CaseVerdict.SKIPPED):
        return case, outcome
    steps = 0
    progress = True
    while progress and steps < MOST_STEPS:
        progress = False
        for simpler in simplifications(case):
            steps += 1
            outcome_now = judge(simpler)
            if _symptom(outcome_now) == _symptom(outcome):
                case, outcome, progress = simpler, outcome_now, True
                break
            if steps >= MOST_STEPS:
                break
    return case, outcome


def _symptom(outcome: Outcome) -> tuple[CaseVerdict, str, str]:
    """What must stay the same while a case gets smaller; differing elements and sizes are not part of it."""
    kind = outcome.message.partition("; at ")[0]
    return outcome.verdict, outcome.stage, without_numbers(_LIST.sub("[]", kind))


def simplifications(case: Case) -> Iterator[Case]:
    """Simpler cases, the greatest simplification first; none of them equals `case`."""
    tensors = [leaf for leaf in leaves((case.args, case.kwargs)) if isinstance(leaf, Tensor)]
    sizes = sorted({size for t in tensors for size in t.shape if size > 1}, reverse=True)
    for size in sizes:
        for smaller in dict.fromkeys((1, size // 2, size - 1)):
            yield _changed(case, lambda t, size=size, smaller=smaller: _with_size(t, size, smaller))  # type: ignore[misc]
    for dims in sorted({t.dim() for t in tensors if t.dim() > 0}, reverse=True):
        yield _changed(case, lambda t, dims=dims: t.select(0, 0) if t.dim() == dims and t.shape[0] else t)  # type: ignore[misc]
    if any(t.layout is torch.strided and not _is_plain(t) for t in tensors):
        yield _changed(case, _plain)
    plainness = max((_simplicity(t) for t in tensors if t.is_floating_point()), default=0)
    for simple in SIMPLER[:plainness]:
        yield _changed(case, lambda t, simple=simple: simple(t) if t.is_floating_point() else t)  # type: ignore[misc]


# From the plainest values to less plain ones; a tensor's plainness is the number of these that would change it.
SIMPLER: tuple[Callable[[Tensor], Tensor], ...] = (torch.zeros_like, torch.ones_like, torch.round)


def _simplicity(tensor: Tensor) -> int:
    values = tensor.detach()
    return next((i for i, simple in enumerate(SIMPLER) if torch.equal(simple(values), values)), len(SIMPLER))


def _changed(case: Case, change: Callable[[Tensor], Tensor]) -> Case:
    def leaf(value: Any) -> Any:
        if not isinstance(value, Tensor) or value.layout is not torch.strided:
            return value
        changed = change(value.detach())
        return changed if changed is value else changed.requires_grad_(value.requires_grad)

    args, kwargs = map_leaves(leaf, (case.args, case.kwargs))
    return replace(case, args=args, kwargs=kwargs)


def _with_size(tensor: Tensor, size: int, smaller: int) -> Tensor:
    for dim, extent in enumerate(tensor.shape):
        if extent == size:
            tensor = tensor.narrow(dim, 0, smaller)
    return tensor


def _is_plain(tensor: Tensor) -> bool:
    return tensor.is_contiguous() and tensor.storage_offset() == 0 and not tensor.is_conj() and not tensor.is_neg()


def _plain(tensor: Tensor) -> Tensor:
    return tensor.resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
