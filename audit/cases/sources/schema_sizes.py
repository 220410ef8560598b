"""Calls by name in other sizes: empty, one element, very many rows, 65,536 elements and more, five dimensions."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from ...model.case import Case
from .case_tensors import tensors_of, with_tensors
from .dimensions import Axis, Dimensions, map_dense, results_of, stretched
from .mixed_dtypes import each_in_others
from .number_ranges import results_on_cpu
from .sizes import ALIAS_OF_NOTHING, LONGEST, MOST_ELEMENTS, SLIM, disjoint, in_many_dimensions, is_any_of, largest_size
from .tensor_layouts import GROWN

# Above 1,024 rows, and above the 2,048 elements that one threadgroup sorts.
ROWS = 2_050


def in_sizes(case: Case, operator: str) -> Iterator[Case]:
    """The call without elements, with very many rows, and with more elements than 16 bits can count.

    The other dimensions become slim if the CPU accepts that.
    """
    dimensions = Dimensions(case)
    axes = dimensions.axes
    if not axes:
        return
    if not is_any_of(operator, ALIAS_OF_NOTHING):
        yield replace(dimensions.resized({axes[0]: 0}), title="empty")
    for axis, wanted in ((axes[0], ROWS), (axes[-1], LONGEST)):
        slim: dict[Axis, int] = {}
        for other in axes:
            tried = {**slim, other: SLIM}
            if (
                other is not axis
                and other.size > SLIM
                and all(disjoint(other, chosen_axis) for chosen_axis in (axis, *slim))
            ):
                slim = tried if results_of(dimensions.resized({**tried, axis: SLIM})) is not None else slim
        size = wanted if wanted == ROWS else max(ROWS, wanted // int(dimensions.elements({**slim, axis: 1})) + 1)
        size = min(size, largest_size(operator), ROWS if axis.growth > 1 else size)
        sizes = {**slim, axis: size}
        title = f"{size:,} in the {'first' if wanted == ROWS else 'last'} dimension"
        if dimensions.elements(sizes) <= MOST_ELEMENTS:
            yield replace(dimensions.resized(sizes), title=title)


def with_one_element(case: Case, turn: int, written: Collection[int]) -> Iterator[Case]:
    """A call on one element with dimensions, and on one without; there in other dtypes too."""
    tensors = dict(enumerate(tensors_of(case)))
    if not all(tensor.numel() and tensor.layout is torch.strided for tensor in tensors.values()):
        return
    first = {i: tensor.detach().flatten()[0].clone() for i, tensor in tensors.items()}
    ones = {i: tensor.view([1] * tensors[i].dim()) for i, tensor in first.items()}
    yield with_tensors(case, ones, "one element")
    without = with_tensors(case, first, "no dimension")
    yield without
    for varied in islice(each_in_others(without, 1, turn, but=sorted(written)), 1):
        yield replace(varied, title=f"no dimension, {varied.title}")


def in_many_dimensions_of(case: Case, *, checks: bool) -> Iterator[Case]:
    """An elementwise call with dimensions put before those of its tensors, until there are five, then six.

    Before those of all tensors, where the operator relies on what its caller has checked.
    """
    if is_elementwise(case):
        yield from in_many_dimensions(Dimensions(case, checks=checks), 2)


def in_one_shape(case: Case) -> Iterator[Case]:
    """A call whose tensors and results all have one shape, in other sizes of it.

    Parts rely on what their callers have checked: where shapes differ, no other sizes are known to fit.
    """
    shapes = {tensor.shape for tensor in tensors_of(case)}
    results = results_on_cpu(case)
    if len(shapes) != 1 or not results or any(_holds_numbers(argument) for argument in case.args):
        return
    (shape,) = shapes
    if not shape or 0 in shape or any(result.shape != shape for result in results):
        return
    between = [min(SLIM, size) for size in shape]
    for title, sizes in (
        ("empty", (0, *between[1:])),
        ("rows", (ROWS, *between[1:])),
        ("long", (*between[:-1], LONGEST // math.prod(between[:-1]) + 1)),
    ):

        def resized(tensor: Tensor, which: int, sizes: tuple[int, ...] = sizes) -> Tensor:
            return stretched(tensor, sizes)

        yield replace(map_dense(case, resized), title=f"{title}: {sizes}")


def _holds_numbers(argument: Any) -> bool:
    return isinstance(argument, (list, tuple)) and any(isinstance(item, int) for item in argument)


def is_elementwise(case: Case) -> bool:
    """Whether what a call gives on the CPU has the shape to which all its tensors broadcast."""
    shapes = [tensor.shape for tensor in tensors_of(case)]
    results = results_on_cpu(case)
    try:
        together = torch.broadcast_shapes(*shapes)  # type: ignore[no-untyped-call]
    except RuntimeError:
        return False
    return results is not None and all(result.shape == together for result in results)


def grown(case: Case) -> Case:
    """An elementwise call on so few elements, or of such shapes, that no layout differs: with the shape `GROWN`.

    Tensors without dimensions get it too where the CPU takes that: else no layout of theirs would be tried.
    """
    shapes = [tensor.shape for tensor in tensors_of(case)]
    if not any(shapes) or not is_elementwise(case) or any(map(_holds_numbers, case.args)):
        return case
    if any(0 in shape for shape in shapes) or all(len(shape) > 1 and min(shape) > 1 for shape in shapes):
        return case
    with_dimensions = [i for i, shape in enumerate(shapes) if shape]
    for positions in (range(len(shapes)), with_dimensions):
        larger = {i: stretched(tensors_of(case)[i].flatten(), [math.prod(GROWN)]).view(GROWN) for i in positions}
        enlarged = with_tensors(case, larger, case.title)
        if results_on_cpu(enlarged) is not None:
            return enlarged
    return case
