"""Finds which dimensions of a case's tensors must change their sizes together.

Equal sizes need not belong together: five rows may go with five columns, five features or another batch of five. So
each dimension of the largest tensor is tried together with sets of others, the likeliest first, in two small sizes on
the CPU. The first set that the CPU accepts is an `Axis`. The two results show how the results grow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from ...model.case import Case
from .case_tensors import TensorChange, map_tensors, result_elements_on_meta, tensors_of, tensors_on_cpu

# The two sizes that a dimension is tried with; no sample has them.
TRIED = (11, 22)
# If the second size makes a tensor of more elements, it is only a little above the first: the call may take a minute.
MOST_TRIED = 2**20
# A call with a larger result is not made: Kronecker products of four dimensions would take gigabytes.
MOST_RESULTS = 2**25
# Repeated floating elements are reduced, by at most this share, so that no two are equal.
LOSS = 2.0**-4
# How many tensors have their dimensions tried.
FIRST_TENSORS = 4

Place = tuple[int, int]  # a tensor, counted from left to right, and one of its dimensions


@dataclass(frozen=True)
class Axis:
    """Dimensions that change their size together.

    Attributes:
        size: the size of each.
        places: the tensor and dimension of each.
        in_lists: whether lists of numbers in the case, such as a normalized_shape, have that size too.
        growth: the results grow with this power of the size: 0 if it is reduced, 2 for all pairs.
    """

    size: int
    places: frozenset[Place]
    in_lists: bool
    growth: float = 0.0


@dataclass(frozen=True)
class Results:
    """How much a call gives: tensors, and elements in the largest of them."""

    tensors: int
    elements: int


class Dimensions:
    """The dimensions of one case.

    Args:
        case: a case that the CPU accepts.
        checks: whether the operator refuses tensors that do not fit each other. One that does not would write beyond
            its memory: all dimensions of one size then change together.
    """

    def __init__(self, case: Case, *, checks: bool = True) -> None:
        self.case = case
        self.checks = checks
        self.shapes = [t.shape if _resizable(t) else torch.Size() for t in tensors_of(case)]
        self.results = results_of(case)
        self._measured: dict[Axis, Axis | None] = {}

    @property
    def main(self) -> int:
        """The position of the tensor with the most dimensions; among equals, the one with the most elements."""
        return max(range(len(self.shapes)), key=lambda i: (len(self.shapes[i]), math.prod(self.shapes[i]), -i))

    @cached_property
    def axes(self) -> list[Axis]:
        """The axes of the main tensor, from its first dimension to its last; without axes whose size cannot change."""
        if not self.shapes or self.results is None:
            return []
        candidates = (self._axis((self.main, dimension)) for dimension in range(len(self.shapes[self.main])))
        return list({axis.places: axis for axis in candidates if axis is not None}.values())

    @cached_property
    def further_axes(self) -> list[Axis]:
        """The axes of other tensors that no axis of the main tensor changes, such as the columns of a second matrix."""
        further: list[Axis] = []
        for tensor, shape in enumerate(self.shapes[:FIRST_TENSORS] if self.axes else ()):
            for place in [(tensor, dimension) for dimension in range(len(shape))]:
                if tensor != self.main and not any(place in axis.places for axis in (*self.axes, *further)):
                    axis = self._axis(place)
                    further += [] if axis is None or self.main in {i for i, _ in axis.places} else [axis]
        return further

    @property
    def of_one_size(self) -> list[Axis]:
        """One axis for all dimensions of the same size: a repeated dimension would not keep a matrix square."""
        if not self.shapes or self.results is None:
            return []
        sizes = dict.fromkeys(self.shapes[self.main])
        return [Axis(size, frozenset(self._of_size(size)), in_lists=False) for size in sizes]

    def elements(self, sizes: Mapping[Axis, int]) -> float:
        """About how many elements the largest tensor has with these sizes, input or result."""
        assert self.results is not None
        results = max(1, self.results.elements)
        for axis, size in sizes.items():
            results *= (size / max(1, axis.size)) ** axis.growth
        return max(results, *(math.prod(shape) for shape in self._resized_shapes(sizes)))

    def resized(self, sizes: Mapping[Axis, int]) -> Case:
        """The case with these sizes, its tensors cut or stretched."""
        shapes = self._resized_shapes(sizes)
        case = map_dense(self.case, lambda tensor, i: stretched(tensor, shapes[i]))
        numbers = {axis.size: size for axis, size in sizes.items() if axis.in_lists}
        if numbers:
            args = tuple(_in_list(argument, numbers) for argument in case.args)
            kwargs = {name: _in_list(argument, numbers) for name, argument in case.kwargs.items()}
            return replace(case, args=args, kwargs=kwargs)
        return case

    def _resized_shapes(self, sizes: Mapping[Axis, int]) -> list[tuple[int, ...]]:
        shapes = [list(shape) for shape in self.shapes]
        for axis, size in sizes.items():
            for tensor, dimension in axis.places:
                shapes[tensor][dimension] = size
        return [tuple(shape) for shape in shapes]

    def _axis(self, place: Place) -> Axis | None:
        """The first axis that the CPU accepts, preferably one whose results grow at most linearly."""
        steep: Axis | None = None
        for axis in self._candidates(place):
            if axis not in self._measured:
                self._measured[axis] = self._with_growth(axis)
            measured = self._measured[axis]
            if measured is None:
                continue
            if measured.growth <= 1:
                return measured
            steep = steep or measured
        return steep

    def _with_growth(self, axis: Axis) -> Axis | None:
        """The axis with the growth of its results, or None if the CPU refuses the sizes tried."""
        small, large = TRIED
        if max(map(math.prod, self._resized_shapes({axis: large}))) > MOST_TRIED:
            large = small + 2
        first, second = (results_of(self.resized({axis: size})) for size in (small, large))
        if first is None or second is None or second.tensors > first.tensors:
            return None
        growth = math.log(max(1, second.elements) / max(1, first.elements), large / small)
        return replace(axis, growth=round(max(0.0, growth), 1))

    def _candidates(self, place: Place) -> Iterator[Axis]:
        tensor, dimension = place
        size = self.shapes[tensor][dimension]
        places = self._of_size(size)
        from_end = dimension - len(self.shapes[tensor])
        others = [other for other in places if other[0] != tensor]
        candidates: list[Sequence[Place]] = (
            [places]
            if not self.checks
            else [
                [(i, d) for i, d in places if d == dimension],
                [(i, d) for i, d in places if d - len(self.shapes[i]) == from_end],
                [place],
                *([place, other] for other in others),
                [place, *others],
                places,
            ]
        )
        for together in dict.fromkeys(map(frozenset, candidates)):
            yield Axis(size, together, in_lists=False)
            if any(_in_lists(size, argument) for argument in (*self.case.args, *self.case.kwargs.values())):
                yield Axis(size, together, in_lists=True)

    def _of_size(self, size: int) -> list[Place]:
        return [(i, d) for i, shape in enumerate(self.shapes) for d in range(len(shape)) if shape[d] == size]


def results_of(case: Case) -> Results | None:
    """The sizes of the results on the CPU, or None if the CPU refuses the call or a result would be too large."""
    *_, second, first = 0, 0, *sorted(tensor.numel() for tensor in tensors_of(case))
    if first * second > MOST_TRIED and result_elements_on_meta(case) > MOST_RESULTS:
        return None
    tensors = tensors_on_cpu(case)
    if tensors is None:
        return None
    return Results(len(tensors), max((t.numel() for t in tensors if _resizable(t)), default=0))


def broadcast(case: Case) -> Case:
    """The case with all its tensors of one dimension or more in the shape to which they broadcast.

    The case itself where they do not: torch calls `equal` pointwise, which takes any two shapes.
    """
    shapes = [tensor.shape for tensor in tensors_of(case) if tensor.dim()]
    try:
        common = torch.broadcast_shapes(*shapes)  # type: ignore[no-untyped-call]
    except RuntimeError:
        return case

    def change(tensor: Tensor, position: int) -> Tensor:
        return tensor.detach().expand(common).clone() if tensor.dim() and tensor.shape != common else tensor

    return map_tensors(case, change)


def stretched(tensor: Tensor, shape: Sequence[int]) -> Tensor:
    """The tensor in another shape with as many dimensions: cut, or with its elements repeated in place.

    Sorted elements stay sorted; other floating ones become a little smaller, each by another part, so that a large
    tensor does not consist of a few values.
    """
    if tuple(tensor.shape) == tuple(shape):
        return tensor
    plain = tensor.detach().resolve_conj().resolve_neg()
    if not plain.numel() or 0 in shape:
        made = plain.new_zeros(shape)
    else:
        made = plain
        for dimension, (old, new) in enumerate(zip(plain.shape, shape, strict=True)):
            if new != old:
                made = made.index_select(dimension, torch.arange(new) * old // new if new > old else torch.arange(new))
        if made.numel() > plain.numel():
            made = _varied(made, plain)
    return made.contiguous().requires_grad_(tensor.requires_grad)


def _varied(made: Tensor, original: Tensor) -> Tensor:
    if not made.is_floating_point() and not made.is_complex():
        return made
    if not made.is_complex() and original.shape[-1:] and bool((original.diff(dim=-1) >= 0).all()):
        return made
    return made * (1 - LOSS * torch.rand(made.shape)).to(made.dtype)


def map_dense(case: Case, change: TensorChange) -> Case:
    """The case with each strided tensor of one dimension or more changed."""
    return map_tensors(case, lambda tensor, i: change(tensor, i) if _resizable(tensor) and tensor.dim() else tensor)


def _resizable(tensor: Tensor) -> bool:
    return tensor.layout is torch.strided


def _in_lists(size: int, argument: Any) -> bool:
    if not isinstance(argument, (tuple, list)):
        return False
    return any((type(item) is int and item == size) or _in_lists(size, item) for item in argument)


def _in_list(value: Any, numbers: Mapping[int, int]) -> Any:
    if not isinstance(value, (tuple, list)) or hasattr(value, "_fields"):
        return value
    changed = [numbers.get(item, item) if type(item) is int else _in_list(item, numbers) for item in value]
    return changed if isinstance(value, list) else tuple(changed)
