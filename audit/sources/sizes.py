"""Samples without elements, with one, with more than 2^16, and in six dimensions: there kernels change their ways."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from ..cases import Case
from ..group import GroupKey
from ..tree import leaves, map_leaves
from .derived import DerivedOpInfoSource
from .opinfo import ELEMENTWISE

# The last dimension of a large case: prime, so that no block or vector width divides it.
LARGE_PRIME = 65_537
# More than the four that Apple's array kernels count from the end; with dimensions of one element between.
MANY_DIMENSIONS = (2, 1, 3, 2, 1, 2)
RESIZABLE = (*ELEMENTWISE, "ReductionOpInfo")


class SizeSource(DerivedOpInfoSource):
    """A representative sample of each elementwise operator and reduction, cut or repeated to other sizes."""

    name = "sizes"

    def varies(self, key: GroupKey) -> bool:
        """Only operators that take any size in every dimension."""
        return type(self._opinfos.opinfo(key)).__name__ in RESIZABLE

    def variations(self, key: GroupKey, case: Case) -> Iterator[Case]:
        """The variations that `in_every_size` makes."""
        return in_every_size(case)


def in_every_size(case: Case) -> Iterator[Case]:
    """One case for each size, where the tensors of one dimension or more have, or broadcast to, one shape."""
    case = broadcast(case) if case.elementwise else case
    shapes = {leaf.shape for leaf in leaves((case.args, case.kwargs)) if isinstance(leaf, Tensor) and leaf.dim()}
    if len(shapes) != 1:
        return
    (shape,) = shapes
    for title, size in (("empty", 0), ("one element", 1), ("large", LARGE_PRIME)):
        sample = resized(case, shape, size)
        # A reduction may refuse what has no elements; on every device alike.
        yield replace(sample, title=title, differentiable=False, errors_count=size == 0)
    if len(shape) < len(MANY_DIMENSIONS) and "memory_format" not in case.kwargs:  # one is for four dimensions
        yield replace(reshaped(case, shape, MANY_DIMENSIONS), title="six dimensions", differentiable=False)


def broadcast(case: Case) -> Case:
    """The case with all its tensors of one dimension or more in the shape to which they broadcast."""
    shapes = [leaf.shape for leaf in leaves((case.args, case.kwargs)) if isinstance(leaf, Tensor) and leaf.dim()]
    common = torch.broadcast_shapes(*shapes)  # type: ignore[no-untyped-call]

    def change(leaf: object) -> object:
        if not isinstance(leaf, Tensor) or not leaf.dim() or leaf.shape == common:
            return leaf
        return leaf.detach().expand(common).clone()

    args, kwargs = map_leaves(change, (case.args, case.kwargs))
    return replace(case, args=args, kwargs=kwargs)


def resized(case: Case, shape: torch.Size, size: int) -> Case:
    """The case with its tensors of `shape` cut, or repeated, to `size` elements: one dimension, the others 1."""
    return reshaped(case, shape, (*(1 for _ in shape[:-1]), size))


def reshaped(case: Case, shape: torch.Size, wanted: tuple[int, ...]) -> Case:
    """The case with its tensors of `shape` in the shape `wanted`, their elements cut or repeated as need be."""
    size = math.prod(wanted)

    def change(leaf: object) -> object:
        if not isinstance(leaf, Tensor) or leaf.shape != shape or leaf.layout is not torch.strided:
            return leaf
        flat = leaf.detach().flatten()
        repeated = flat.repeat(-(-size // flat.numel()))[:size] if flat.numel() else flat.new_zeros(size)
        return repeated.view(wanted).clone()

    args, kwargs = map_leaves(change, (case.args, case.kwargs))
    return replace(case, args=args, kwargs=kwargs)
