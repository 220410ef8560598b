"""What the sources have in common that vary the samples of the OpInfos."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from torch import Tensor

from ..cases import Case, CaseSource
from ..group import GroupKey
from ..selection import Samples
from ..tree import leaves
from .opinfo import OpInfoSource

# A sampler puts its plain cases first; among so many there is one to vary.
LOOKED_AT = 8
LARGEST_TO_VARY = 100_000


class DerivedSource(CaseSource):
    """Varies one representative sample of each dense OpInfo and dtype in a fixed sequence of ways."""

    def __init__(self, opinfos: OpInfoSource) -> None:
        self._opinfos = opinfos

    def groups(self) -> Iterable[GroupKey]:
        """One group for each group of the OpInfos that this source can vary."""
        for key in self._opinfos.groups():
            if "/" not in key.variant and self.varies(key):
                yield replace(key, source=self.name)

    def cases(self, key: GroupKey, samples: Samples) -> Iterator[Case]:
        """The variations of the group's representative sample."""
        base = replace(key, source=self._opinfos.name)
        case = representative(self._opinfos.cases(base, Samples.DEFAULT))
        if case is not None:
            yield from self.variations(base, case)

    def varies(self, key: GroupKey) -> bool:
        """Whether this source has anything to vary for the group."""
        return True

    @abstractmethod
    def variations(self, key: GroupKey, case: Case) -> Iterator[Case]:
        """The variations of `case`, always the same ones in the same order for the same inputs."""


def representative(cases: Iterable[Case]) -> Case | None:
    """Of the first cases, the one whose largest tensor has the most dimensions, then the most elements.

    Cases that are skipped, have no tensor or are very large do not count, those without any element only where there
    is nothing else: they have no values to be wrong. None when none is left.
    """
    candidates = [case for case in islice(cases, LOOKED_AT) if not case.skipped]
    shapes = [(shape, i) for i, case in enumerate(candidates) if (shape := _largest(case)) is not None]
    return candidates[max(shapes, key=lambda ranked: (ranked[0], -ranked[1]))[1]] if shapes else None


def _largest(case: Case) -> tuple[bool, int, int] | None:
    tensors = [t for t in leaves((case.args, case.kwargs)) if isinstance(t, Tensor)]
    if not tensors or max(t.numel() for t in tensors) > LARGEST_TO_VARY:
        return None
    return max((t.numel() > 0, t.dim(), t.numel()) for t in tensors)
