"""Where what is written stands: in-place and out= calls of OpInfos, and the schemas' overloads that write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from torch import Tensor

from ...model.case import Case
from ...model.group import GroupKey
from ...model.nested import leaves
from .derived import DerivedOpInfoSource, DerivedSource
from .forms import STRIDES_OF_OUT_IGNORED, takes_out
from .shared_storage import halves, sharing
from .tensor_layouts import IN_TURN, THOROUGH, each_in_turn, filled, from_turn, start_of, writes
from .write_targets import (
    PLACES,
    Place,
    every_other_row,
    expanded,
    in_place_case,
    out_case,
    schema_case,
    slice_of_larger,
    surrounded,
    transposed,
    written_everywhere,
)

# `forms` has out= at an offset, transposed and with every other element already.
OUT_PLACES: tuple[Place, ...] = (every_other_row, slice_of_larger, expanded)
# How many places are tried of dtypes other than float32, and of lists of targets.
PLACES_IN_TURN = 2
# Overloads whose CPU kernel writes as if what it writes into were contiguous: there is nothing to compare with.
STRIDES_IGNORED = frozenset(
    {
        "adaptive_avg_pool3d.out",
        "adaptive_avg_pool3d_backward.grad_input",
        "adaptive_max_pool3d.out",
        "fractional_max_pool3d.output",
        "narrow_copy.out",
        "thnn_conv2d.out",
    }
)


class TargetSource(DerivedOpInfoSource):
    """The in-place and out= calls of each representative sample with targets that are not contiguous."""

    name = "targets"

    def varies(self, key: GroupKey) -> bool:
        """Operators that have such calls, in one dtype of each kind."""
        op = self._opinfos.opinfo(key)
        has_any = op.inplace_variant is not None or (takes_out(op) and key.operator not in STRIDES_OF_OUT_IGNORED)
        return key.dtype in (THOROUGH, *IN_TURN) and has_any

    def variations(self, key: GroupKey, case: Case) -> Iterator[Case]:
        """In place: everywhere, beside another operand, the others in layouts of their own. Then out=."""
        op, start = self._opinfos.opinfo(key), start_of(key)
        thorough = key.dtype == THOROUGH
        if op.inplace_variant is not None and any(isinstance(leaf, Tensor) for leaf in leaves(case.args[:1])):
            called, targets = in_place_case(case, op.inplace_variant)
            if thorough and len(targets) == 1:
                yield from written_everywhere(called, targets)
            else:
                yield from islice(written_everywhere(called, targets, from_turn(PLACES, start)), PLACES_IN_TURN)
            yield from beside_another(called, targets)
            yield from each_in_turn(surrounded(called, targets), start, but=targets)
        if takes_out(op) and "out" not in case.kwargs and not case.uninitialised:
            given = out_case(case, op.op) if key.operator not in STRIDES_OF_OUT_IGNORED else None
            if given is not None:
                places = OUT_PLACES if thorough else from_turn(OUT_PLACES, start)[:1]
                yield from written_everywhere(*given, places)


class SchemaTargetSource(DerivedSource):
    """The representative call of each overload that writes, with targets that are not contiguous."""

    name = "targets"

    def varies(self, key: GroupKey) -> bool:
        """Overloads that write, in float32."""
        return key.dtype == THOROUGH and key.operator not in STRIDES_IGNORED and writes(key)

    def chosen(self, cases: Iterable[Case]) -> Iterable[Case]:
        """The representative call, one without empty tensors where there is one."""
        return filled(cases)

    def variations(self, key: GroupKey, case: Case) -> Iterator[Case]:
        """The targets transposed, then in another place in turn; what is read in layouts in turn."""
        given = schema_case(case)
        if given is None:
            return
        called, targets = given
        start = start_of(key)
        yield from written_everywhere(called, targets, (transposed,))
        others = from_turn(tuple(place for place in PLACES if place is not transposed), start)
        yield from islice(written_everywhere(called, targets, others), 1)
        yield from beside_another(called, targets)
        yield from each_in_turn(surrounded(called, targets), start, but=targets)


def beside_another(case: Case, targets: list[int]) -> Iterator[Case]:
    """The case with a target and another operand as parts of one storage that do not overlap."""
    varied = sharing(case, halves)
    if varied is not None:
        yield surrounded(varied, targets)
