"""Samples whose results are the small rest of large things, or small themselves: there a careless formula shows.

With a large mean, a variance as E[x²] − E[x]² keeps no digit; with large numbers a softmax that does not subtract the
maximum overflows; near zero, log(1 + x) has only the digits that 1 + x has. A careful kernel is exact in all three, as
the CPU's is, and the judge holds the device to that (`audit/judging/compare.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from ..cases import Case
from ..group import GroupKey
from ..selection import Samples
from ..tree import leaves, map_leaves
from .derived import DerivedSource, distinct

# A power of two and its multiples keep the digits of what they are multiplied with.
NEAR_ZERO = 2.0**-12
LARGE = 128.0
MEAN = 2000.0
# What has a variance or a maximum inside, by parts of its name: several samples of each, as flags choose the formula.
STATISTICS = re.compile(r"norm|var|std|softmax|softmin|logsumexp|cov|corrcoef", re.IGNORECASE)
SAMPLES_OF_STATISTICS = 4
# Modules of many layers: what one rounds the next one amplifies, and a large mean tells of none of them.
MANY_LAYERS = re.compile(r"^nn\.(Transformer|LSTM|GRU|RNN)")

Change = Callable[[Tensor], Tensor]


class CancellationSource(DerivedSource):
    """Samples in float32 near zero, with a large mean, and with large values."""

    name = "cancellation"

    def varies(self, key: GroupKey) -> bool:
        """In float32 alone: of narrower dtypes, and of integers, a large mean leaves nothing to compute with."""
        return key.dtype == "float32" and not MANY_LAYERS.match(key.operator)

    def chosen(self, cases: Iterable[Case]) -> Iterable[Case]:
        """Several samples; `variations` drops those of operators for which one says it all."""
        return distinct(cases, SAMPLES_OF_STATISTICS)

    def cases(self, key: GroupKey, samples: Samples) -> Iterator[Case]:
        """The variations of the group's first sample, of several where an operator computes statistics."""
        base = replace(key, source=self._base.name)
        chosen = list(self.chosen(self._base.cases(base, Samples.DEFAULT)))
        for case in chosen if STATISTICS.search(key.operator) else chosen[:1]:
            yield from self.variations(base, case)

    def variations(self, key: GroupKey, case: Case) -> Iterator[Case]:
        """The sample in each range of numbers; what the CPU refuses there, the device is to refuse."""
        if case.uninitialised or not _numbers(case):
            return
        yield _varied(case, "near zero", lambda tensor: tensor * NEAR_ZERO)
        yield _varied(case, "large mean", lambda tensor: tensor + MEAN)
        yield _varied(case, "large", lambda tensor: tensor * LARGE)


def _varied(case: Case, title: str, change: Change) -> Case:
    changed = {id(tensor): _leaf(change(tensor.detach()), tensor) for tensor in _numbers(case)}
    args, kwargs = map_leaves(lambda leaf: changed.get(id(leaf), leaf), (case.args, case.kwargs))
    return replace(case, args=args, kwargs=kwargs, values=title, title=title, errors_count=True)


def _numbers(case: Case) -> list[Tensor]:
    """The floating tensors of as many dimensions as any has: a weight or a running mean stays as it is."""
    tensors = [leaf for leaf in leaves((case.args, case.kwargs)) if isinstance(leaf, Tensor)]
    floating = [t for t in tensors if t.is_floating_point() and t.layout is torch.strided]
    most = max((t.dim() for t in floating), default=0)
    return [t for t in floating if t.dim() == most]


def _leaf(changed: Tensor, original: Tensor) -> Tensor:
    return changed.requires_grad_(original.requires_grad)
