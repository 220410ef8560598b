"""Samples without elements, with one, and with more than 2^16: sizes at which kernels change how they work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from ..cases import Case
from ..findings.store import GroupKey
from ..judging.tree import leaves, map_leaves
from .derived import DerivedSource
from .opinfo import ELEMENTWISE

# The last dimension of a large case: prime, so that no block or vector width divides it.
LARGE_PRIME = 65_537
RESIZABLE = (*ELEMENTWISE, "ReductionOpInfo")


class SizeSource(DerivedSource):
    """A representative sample of each elementwise operator and reduction, cut or repeated to other sizes."""

    name = "sizes"

    def varies(self, key: GroupKey) -> bool:
        """Only operators that take any size in every dimension."""
        return type(self._opinfos.opinfo(key)).__name__ in RESIZABLE

    def variations(self, key: GroupKey, case: Case) -> Iterator[Case]:
        """One case for each size, where the sample's tensors of one dimension or more are all of one shape."""
        shapes = {leaf.shape for leaf in leaves((case.args, case.kwargs)) if isinstance(leaf, Tensor) and leaf.dim()}
        if len(shapes) != 1:
            return
        (shape,) = shapes
        for title, size in (("empty", 0), ("one element", 1), ("large", LARGE_PRIME)):
            sample = resized(case, shape, size)
            # A reduction may refuse what has no elements; on every device alike.
            yield replace(sample, title=title, differentiable=False, errors_count=size == 0)


def resized(case: Case, shape: torch.Size, size: int) -> Case:
    """The case with its tensors of `shape` cut, or repeated, to `size` elements: one dimension, the others 1."""

    def change(leaf: object) -> object:
        if not isinstance(leaf, Tensor) or leaf.shape != shape or leaf.layout is not torch.strided:
            return leaf
        flat = leaf.detach().flatten()
        repeated = flat.repeat(-(-size // flat.numel()))[:size] if flat.numel() else flat.new_zeros(size)
        return repeated.view((*(1 for _ in shape[:-1]), size)).clone()

    args, kwargs = map_leaves(change, (case.args, case.kwargs))
    return replace(case, args=args, kwargs=kwargs)
