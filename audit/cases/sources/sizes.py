"""Cases in other sizes: without elements, with one, over 1,024 rows, over 2^16 and 2^17 elements, in six dimensions.

Kernels change at these sizes: a threadgroup has at most 1,024 threads, an index 16 bits, a launch a largest grid.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import torch
from torch import Tensor

from ...model.case import Case, CaseSource
from .derived import BaseGroup, Factor, distinct
from .dimensions import TRIED, Axis, Dimensions, map_dense, results_of
from .opinfo import ELEMENTWISE
from .random import draws_numbers
from .unsafe_values import bare, writes_by_name

# One past a power of two each, so that no block or vector width divides them.
ROWS, COLUMNS = 1_025, 65
LONG, LONGEST = 65_537, 131_073
WIDE = 257
LONG_IN_HALVES = 4_097
# What a dimension is cut to while another is long.
SLIM = 2
# So many dimensions of other tensors than the main one are varied.
MOST_FURTHER = 3
# So many elements an input, or all results, may have.
MOST_ELEMENTS = 400_000
# The sizes of the dimensions that are put before those of a sample, the last first; dimensions of one among them.
BATCHES = (2, 1, 2, 1, 2, 1)
MANY = (5, 6)

# Operators whose time grows faster than their inputs and results, and the largest size that a dimension has there.
# Recurrences take a step for each element; attention looks at all pairs.
COSTLY: dict[tuple[str, ...], int] = {
    (
        *("*lstm*", "*gru*", "rnn_*", "nn.RNN*", "nn.LSTM*", "nn.GRU*"),  # a step each
        *("*ctc_loss*", "nn.CTC*", "nn.Transformer*"),
    ): 33,
    ("*attention*", "nn.MultiheadAttention", "_transformer*", "*_mha*"): WIDE,
    ("*multilabel_margin_loss*", "nn.MultiLabelMarginLoss", "kron"): WIDE,  # kron has as many results as pairs
    ("linalg_pinv*",): 33,  # a rank for each matrix
    ("index_fill*", "bilinear", "nn.functional.bilinear", "nn.Bilinear", "_trilinear"): 4_097,  # grows with the square
    (
        *("linalg_*", "_linalg_*", "*svd*", "pca_lowrank", "lobpcg", "*cholesky*", "lu*", "*inverse*", "logdet"),
        *("slogdet", "det", "geqrf", "qr", "orgqr", "ormqr", "triangular_solve", "matrix_exp", "lstsq"),
        "*householder*",
    ): ROWS,
}
# They read as many elements as one tensor says from another, without a look at its size: beyond its memory.
UNCHECKED = (
    *("*segment_reduce*", "_embedding_bag*", "_pack_padded_sequence*", "_pad_packed_sequence*", "*ldl_solve*"),
    *("nn.RNN*", "nn.LSTM*", "nn.GRU*"),  # their weights were checked when they were made
)
# Without an element the CPU returns its input itself, and a device without a kernel returns a copy.
ALIAS_OF_NOTHING = ("*channel_shuffle", "nn.ChannelShuffle")
# They take n^3 steps for a square matrix.
LARGEST_MATRIX = 33
DECOMPOSITIONS = tuple(pattern for patterns, most in COSTLY.items() if most == ROWS for pattern in patterns)


@dataclass(frozen=True)
class SizePlan:
    """Which sizes are tried.

    Attributes:
        empty: how many dimensions get no element, each alone.
        small: whether all dimensions get one element, and one of them 257.
        rows: how many of many rows and many columns.
        long: how many dimensions get 65,537 elements and more, the last one first.
        longest: how many elements the last one gets.
        many: how many of five and of six dimensions.
        backward: whether gradients are compared over many rows.
        others: whether the dimensions that only other tensors than the largest have are varied as well.
    """

    empty: int = 1
    small: bool = False
    rows: int = 1
    long: int = 1
    longest: int = LONGEST
    many: int = 1
    backward: bool = False
    others: bool = False


FULL = SizePlan(empty=6, small=True, rows=2, long=2, many=2, backward=True, others=True)
SOME = SizePlan()
FEWEST = SizePlan(rows=0, many=0)
# What is added up in half precision stops at 2,048 ones; what is sorted in one threadgroup, too.
HALVES = SizePlan(empty=0, rows=0, longest=LONG_IN_HALVES, many=0)
# For a second kind of case: other flags, other arguments.
OF_ANOTHER_KIND = SizePlan(many=0, others=True)
# By what is varied, and by dtype.
PLANS: dict[str, dict[str, SizePlan]] = {
    "opinfo": {"float32": FULL, "float16": SOME, "bfloat16": HALVES, "int64": SOME},
    "modules": {"float32": SOME},
    "schema": {"float32": SOME, "float16": HALVES, "bfloat16": HALVES},
}
ELEMENTWISE_AND_REDUCTIONS = (*ELEMENTWISE, "ReductionOpInfo")


def _applies(group: BaseGroup) -> bool:
    """Whether the dtype is one of the few that large cases have, or the operator takes any size cheaply.

    Not for operators that draw random numbers: their values cannot be compared, and the `random` cases draw many.
    """
    operator = group.key.operator
    return _plan(group) is not None and not is_any_of(operator, UNCHECKED) and not draws(operator)


def _variations(group: BaseGroup, cases: Sequence[Case]) -> Iterator[Case]:
    """The sizes of the dtype's plan; a few sizes of a second kind of case, with the dtype that has them all."""
    plan, operator = _plan(group), group.key.operator
    if plan is None:
        return
    checks = checks_sizes(group.base, operator)
    for number, case in enumerate(cases if plan is FULL else cases[:1]):
        sizes = OF_ANOTHER_KIND if number else plan
        for varied in in_every_size(case, sizes, operator, checks=checks):
            yield replace(varied, title=f"another kind, {varied.title}") if number else varied


def _plan(group: BaseGroup) -> SizePlan | None:
    plan = PLANS.get(group.key.source, {}).get(group.key.dtype)
    regular = group.opinfo is not None and type(group.opinfo).__name__ in ELEMENTWISE_AND_REDUCTIONS
    if plan in (HALVES, None) and regular:
        return FEWEST
    if plan is not None and group.key.source == "schema" and not is_for_users(group.key.operator):
        return None
    return plan


SIZE_FACTOR = Factor("sizes", _variations, _applies, choose=lambda group, cases: distinct(cases, 2))


def in_every_size(case: Case, plan: SizePlan = FULL, operator: str = "", *, checks: bool = True) -> Iterator[Case]:
    """One case for each size of the plan that the case's tensors can have.

    Args:
        case: what the CPU accepts.
        plan: the sizes.
        operator: as its source names it, to keep what is costly small.
        checks: whether it refuses tensors that do not fit each other.
    """
    dimensions = Dimensions(case, checks=checks)
    decomposes = is_any_of(operator, DECOMPOSITIONS)
    sizes = Sizes(dimensions, largest_size(operator), LARGEST_MATRIX if decomposes else WIDE)
    if not is_any_of(operator, ALIAS_OF_NOTHING):
        yield from sizes.empty(plan.empty)
    if dimensions.axes:
        if plan.small:
            yield from sizes.small()
        yield from sizes.rows(plan.rows, backward=plan.backward)
        yield from sizes.long(plan.long, plan.longest)
        if plan.others:
            yield from sizes.of_others()
    if "memory_format" not in case.kwargs:  # one is for four dimensions
        yield from in_many_dimensions(dimensions, plan.many, backward=plan.backward)
    if decomposes and largest_size(operator) >= ROWS:
        yield from in_batches(dimensions, (ROWS,), f"{ROWS:,} batches")


def checks_sizes(base: CaseSource, operator: str) -> bool:
    """Whether an operator checks sizes: public ones do; internal ones rely on their callers."""
    return base.name != "schema" and not is_a_part(operator)


def draws(operator: str) -> bool:
    """Whether it draws random numbers, whatever its arguments; attention does where it is asked to drop out."""
    return "attention" not in operator and (draws_numbers(operator) or draws_numbers(bare(operator)))


def is_for_users(overload: str) -> bool:
    """Whether an overload is called for its result, by users, and its sizes say something that no twin's say."""
    named = (is_a_part(overload), writes_by_name(overload), overload == "mode.values", "attention" in overload)
    return not any(named)  # mode.values is an out= form; attention is for the OpInfos


def is_a_part(operator: str) -> bool:
    """Whether only other operators call it, by its name."""
    name = bare(operator)
    return not name.startswith("_foreach_") and (name.startswith(("native_", "torch_ops", "_")) or "backward" in name)


def largest_size(operator: str) -> int:
    """The largest size that one dimension gets."""
    return next((most for patterns, most in COSTLY.items() if is_any_of(operator, patterns)), LONGEST)


def is_any_of(operator: str, patterns: tuple[str, ...]) -> bool:
    """Whether an operator's bare name has one of the shell patterns."""
    name = bare(operator)
    return any(fnmatchcase(name, pattern) for pattern in patterns)


class Sizes:
    """Sizes along the axes of one case.

    Args:
        dimensions: of the case.
        most: the largest size that a dimension may get.
        most_steep: the same where the results grow with its square.
    """

    def __init__(self, dimensions: Dimensions, most: int, most_steep: int) -> None:
        self._dimensions = dimensions
        self._axes = dimensions.axes
        self._most = most
        self._most_steep = most_steep

    def empty(self, count: int) -> Iterator[Case]:
        """No element in one dimension after the other."""
        for axis in (self._axes or self._dimensions.of_one_size)[:count]:
            yield self._sized({axis: 0}, f"empty in dimension {self._number(axis)}")

    def of_others(self) -> Iterator[Case]:
        """None, and very many, along the dimensions of other tensors than the main one."""
        for axis in self._dimensions.further_axes[:MOST_FURTHER]:
            tensor, dimension = min(axis.places)
            yield self._sized({axis: 0}, f"empty in dimension {dimension} of tensor {tensor}")
            sizes = self._fitting({axis: self._at_most(axis, LONG)})
            if sizes:
                title = f"{sizes[axis]:,} in dimension {dimension} of tensor {tensor}"
                yield self._sized(sizes, title)

    def small(self) -> Iterator[Case]:
        """One element in every dimension; and one past a power of two in the last."""
        yield _without_positions(self._sized(self._with_others({}, 1), "one element"))
        wide = {self._axes[-1]: self._at_most(self._axes[-1], WIDE)}
        if self._dimensions.elements(wide) <= MOST_ELEMENTS:
            yield self._sized(wide, f"{wide[self._axes[-1]]} in the last dimension")

    def rows(self, count: int, *, backward: bool) -> Iterator[Case]:
        """Over 1,024 in the first dimension, and in the last; over 2^16 elements where there are two."""
        first, last = self._axes[0], self._axes[-1]
        pairs = [(first, last), (last, first)] if first is not last else [(first, last)]
        for long, short in pairs[:count]:
            wanted = {long: self._at_most(long, ROWS)}
            if disjoint(long, short):
                wanted[short] = self._at_most(short, COLUMNS)
            sizes = self._fitting(wanted)
            if sizes:
                what = "rows" if long is first else "columns"
                yield self._sized(sizes, f"{sizes[long]:,} {what}", backward=backward and long is first)

    def long(self, count: int, longest: int) -> Iterator[Case]:
        """Very many elements in one dimension after the other: in the last one, the first one, and those between.

        `longest`: how many in the last one.
        """
        last, *others = self._axes[-1:] + self._axes[:-1]
        for axis in [last, *others][:count]:
            wanted = longest if axis is last else LONG
            sizes = self._fitting({axis: self._at_most(axis, wanted)})
            if sizes and sizes[axis] > ROWS:
                yield self._sized(sizes, f"{sizes[axis]:,} in dimension {self._number(axis)}")

    def _fitting(self, wanted: Mapping[Axis, int]) -> dict[Axis, int]:
        """The sizes, with the other dimensions slim if the CPU accepts that, reduced until memory suffices.

        Empty if no large size remains.
        """
        sizes = dict(wanted)
        for axis in self._axes:
            if axis.size > SLIM and all(disjoint(axis, other) for other in sizes):
                tried = {**sizes, axis: SLIM}
                # If all dimensions of a kernel and an image grow together, the work grows with their sixth power.
                small = {
                    tried_axis: min(size, WIDE // 8 if tried_axis.growth <= 1 else TRIED[0])
                    for tried_axis, size in tried.items()
                }
                if results_of(self._dimensions.resized(small)) is not None:
                    sizes = tried
        (long, *_) = wanted
        for limit in (LONGEST, LONG, LONG_IN_HALVES, ROWS, WIDE):
            for limited in (sizes, {axis: size for axis, size in sizes.items() if axis is long or axis not in wanted}):
                fitting = {axis: min(size, limit) for axis, size in limited.items()}
                if self._dimensions.elements(fitting) <= MOST_ELEMENTS:
                    return fitting
        return {}

    def _number(self, axis: Axis) -> int:
        """The first of the main tensor's dimensions that the axis moves."""
        return min(dimension for tensor, dimension in axis.places if tensor == self._dimensions.main)

    def _at_most(self, axis: Axis, size: int) -> int:
        return min(size, self._most if axis.growth <= 1 else self._most_steep)

    def _with_others(self, sizes: Mapping[Axis, int], size: int) -> dict[Axis, int]:
        """The sizes, and `size` for every other axis that is larger and shares no dimension with an axis before it."""
        extended = dict(sizes)
        for axis in self._axes:
            if axis.size > size and axis not in extended and all(disjoint(axis, other) for other in extended):
                extended[axis] = size
        return extended

    def _sized(self, sizes: Mapping[Axis, int], title: str, *, backward: bool = False) -> Case:
        """The case; what the CPU refuses in this size, the device has to refuse too."""
        case = self._dimensions.resized(sizes)
        return replace(case, title=title, differentiable=case.differentiable and backward, errors_count=True)


def disjoint(axis: Axis, other: Axis) -> bool:
    """Whether two axes can have sizes that do not depend on each other."""
    return not axis.places & other.places and not (axis.in_lists and other.in_lists and axis.size == other.size)


def _without_positions(case: Case) -> Case:
    """The case with the first position in place of integers that go with floating tensors: others may not fit."""

    def first(leaf: Tensor, number: int) -> Tensor:
        if leaf.dtype not in (torch.int64, torch.int32) or not leaf.numel():
            return leaf
        return torch.full_like(leaf, int(leaf.dtype is torch.int32 and leaf.min() > 0))  # pivots count from one

    return map_dense(case, first)


def in_many_dimensions(dimensions: Dimensions, count: int, *, backward: bool = False) -> Iterator[Case]:
    """The case with leading dimensions added, until the largest tensor has five, or six."""
    if not dimensions.shapes or dimensions.results is None:
        return
    present = len(dimensions.shapes[dimensions.main])
    for wanted in [many for many in MANY if many > present > 0][:count]:
        yield from in_batches(
            dimensions, BATCHES[wanted - present - 1 :: -1], f"{wanted} dimensions", backward=backward
        )


def in_batches(dimensions: Dimensions, sizes: tuple[int, ...], title: str, *, backward: bool = False) -> Iterator[Case]:
    """The case with these dimensions before those of all its tensors; or of the largest ones alone, before or after.

    The first that the CPU takes. Batches differ from each other.
    """
    everywhere = range(len(dimensions.shapes))
    largest = [i for i, shape in enumerate(dimensions.shapes) if len(shape) == len(dimensions.shapes[dimensions.main])]
    some = ((largest, False), (largest, True), ([dimensions.main], False)) if dimensions.checks else ()
    for tensors, after in ((everywhere, False), *some):
        varied = _with_batches(dimensions.case, sizes, tensors, after=after)
        if results_of(varied) is not None:
            yield replace(varied, title=title, differentiable=varied.differentiable and backward)
            return


def _with_batches(case: Case, sizes: tuple[int, ...], tensors: Collection[int], *, after: bool) -> Case:
    def batched(leaf: Tensor, number: int) -> Tensor:
        if number not in tensors:
            return leaf
        plain = leaf.detach().resolve_conj().resolve_neg()
        copies = plain.expand(*sizes, *leaf.shape).clone()
        if plain.is_floating_point() or plain.is_complex():
            factors = 1 - torch.arange(math.prod(sizes)) / (2 * math.prod(sizes))
            copies *= factors.view(*sizes, *(1 for _ in plain.shape)).to(plain.dtype)
        if after:
            copies = copies.movedim(tuple(range(len(sizes))), tuple(range(-len(sizes), 0))).contiguous()
        return copies.requires_grad_(leaf.requires_grad)

    return map_dense(case, batched)
