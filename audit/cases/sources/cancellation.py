"""Samples near zero, with a large mean and with large values, which show cancellation and overflow in a formula.

With a large mean, a variance as E[x²] − E[x]² keeps no digit; with large numbers a softmax that does not subtract the
maximum overflows; near zero, log(1 + x) has only the digits that 1 + x has. The CPU's kernels are accurate in all three
ranges, and the judge expects the same of the device (`audit/judging/compare.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from ...model.case import Case
from .case_tensors import map_tensors, tensors_of
from .derived import BaseGroup, Factor, distinct, in_each_case

# A power of two and its multiples keep the digits of what they are multiplied with.
NEAR_ZERO = 2.0**-12
# What the elements of one of several tensors near zero are multiplied with, in turn: a step of 1e-7 shows in one.
SMALL = (1e-3, 1e-4, 1e-5, 1e-6)
LARGE = 128.0
MEAN = 2000.0
# What has a variance or a maximum inside, by parts of its name: several samples of each, as flags choose the formula.
STATISTICS = re.compile(r"norm|var|std|softmax|softmin|logsumexp|cov|corrcoef", re.IGNORECASE)
SAMPLES_OF_STATISTICS = 4
# Modules of many layers: one amplifies the rounding of the one before, so a large mean shows no error.
MANY_LAYERS = re.compile(r"^nn\.(Transformer|LSTM|GRU|RNN)")

Change = Callable[[Tensor], Tensor]


def _applies(group: BaseGroup) -> bool:
    """Only in float32: in narrower dtypes, and in integers, a large mean leaves no digits to compute with."""
    return group.key.dtype == "float32" and not MANY_LAYERS.match(group.key.operator)


def _chosen(group: BaseGroup, cases: Iterable[Case]) -> list[Case]:
    """The first sample; several if the operator computes statistics."""
    return distinct(cases, SAMPLES_OF_STATISTICS if STATISTICS.search(group.key.operator) else 1)


def _variations(group: BaseGroup, case: Case) -> Iterator[Case]:
    """The sample in each range of numbers. If the CPU refuses it there, the device must refuse it too."""
    if case.uninitialised or not _numbers(case):
        return
    yield _varied(case, "near zero", lambda tensor: tensor * NEAR_ZERO)
    if len(_floating(case)) > 1 and group.opinfo is not None:
        yield partly_near_zero_case(case)
    yield with_large_mean(case)
    yield _varied(case, "large", lambda tensor: tensor * LARGE)


# Samples in float32 near zero, with a large mean, and with large values.
CANCELLATION_FACTOR = Factor("cancellation", in_each_case(_variations), _applies, _chosen)


def partly_near_zero_case(case: Case) -> Case:
    """Each subset of several tensors near zero in some elements, the other tensors not.

    The quotient of two small numbers is not small, and a large summand hides a small one.
    """
    small = {id(t): smaller_in_turn(t.detach(), 2**place) for place, t in enumerate(_floating(case))}
    return _replaced(case, "near zero here and there", small)


def smaller_in_turn(tensor: Tensor, length: int) -> Tensor:
    """The tensor with every second run of `length` elements multiplied by a factor of `SMALL`."""
    factors = torch.tensor(SMALL)
    # Of a list of hundreds of tensors the last stretches are longer than any number of 64 bits.
    places = torch.arange(tensor.numel()) // min(length, max(tensor.numel(), 1))
    turned = torch.where(places % 2 == 0, factors[places // 2 % len(SMALL)], 1.0)
    return tensor * turned.view(tensor.shape).to(tensor.dtype)


def with_large_mean(case: Case) -> Case:
    """The case with a mean in its numbers that is large beside their deviation."""
    return _varied(case, "large mean", lambda tensor: tensor + MEAN)


def _varied(case: Case, title: str, change: Change) -> Case:
    return _replaced(case, title, {id(tensor): change(tensor.detach()) for tensor in _numbers(case)})


def _replaced(case: Case, title: str, others: Mapping[int, Tensor]) -> Case:
    def change(tensor: Tensor, position: int) -> Tensor:
        other = others.get(id(tensor))
        return tensor if other is None else other.requires_grad_(tensor.requires_grad)

    return replace(map_tensors(case, change), values=title, title=title, errors_count=True)


def _numbers(case: Case) -> list[Tensor]:
    """The floating tensors with the most dimensions. A weight or a running mean has fewer, and stays as it is."""
    floating = _floating(case)
    most = max((t.dim() for t in floating), default=0)
    return [t for t in floating if t.dim() == most]


def _floating(case: Case) -> list[Tensor]:
    return [t for t in tensors_of(case) if t.is_floating_point() and t.layout is torch.strided]
