"""Where dtypes are mixed: in calls of OpInfos, plain, in place and with out=, in modules and in schema calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from torch import Tensor

from ...model.case import Case
from ...model.group import GroupKey
from ...model.nested import leaves
from .case_tensors import tensors_of
from .derived import DerivedOpInfoSource, DerivedSource
from .forms import STRIDES_OF_OUT_IGNORED, takes_out
from .mixed_dtypes import (
    each_as_scalar_tensor,
    each_in_others,
    out_in_others,
    with_numbers,
    with_three,
)
from .target_sources import STRIDES_IGNORED
from .tensor_layouts import KERNEL_DIES, filled, start_of, writes
from .write_targets import in_place_case, out_case, schema_case, slice_of_larger, surrounded, written_in

THOROUGH = "float32"
# Overloads whose CPU kernel trusts the dtype of what it is given: what it writes is undefined, or refused later.
TRUSTING = frozenset({"_compute_linear_combination.out", "multilabel_margin_loss_forward.output"})
IN_TURN = ("float16", "int64", "bool")


class MixedDtypeSource(DerivedOpInfoSource):
    """Each tensor of a representative sample alone in other dtypes; in place, in out=, and numbers of each category."""

    name = "mixed dtypes"

    def varies(self, key: GroupKey) -> bool:
        """One dtype of each category but complex, which float32 meets."""
        return key.dtype in (THOROUGH, *IN_TURN)

    def variations(self, key: GroupKey, case: Case) -> Iterator[Case]:
        """Plain calls, then in place with the others in another dtype, then out= of another dtype."""
        op, turn = self._opinfos.opinfo(key), start_of(key)
        most = 3 if key.dtype == THOROUGH else 1
        listed = with_three(case)
        if listed is not None:
            yield listed
            yield from each_in_others(listed, most, turn, but=(0, 1))
        elif len(tensors_of(case)) > 1:
            yield from each_in_others(case, most, turn)
            yield from each_as_scalar_tensor(case, turn)
        yield from with_numbers(case, op.aten_name)
        if op.inplace_variant is not None and any(isinstance(leaf, Tensor) for leaf in leaves(case.args[:1])):
            called, targets = in_place_case(case, op.inplace_variant)
            yield from each_in_others(surrounded(called, targets), 1 if most == 1 else 2, turn, but=targets)
        if takes_out(op) and "out" not in case.kwargs and not case.uninitialised:
            given = out_case(case, op.op) if key.operator not in STRIDES_OF_OUT_IGNORED else None
            if given is not None:
                yield from out_in_others(*given, 1 if most == 1 else 2, turn)


class MixedDtypeCallSource(DerivedSource):
    """One tensor of the representative call of each module and overload in another dtype; targets in slices."""

    name = "mixed dtypes"

    def varies(self, key: GroupKey) -> bool:
        """Calls in float32, modules in training."""
        left_out = KERNEL_DIES | STRIDES_IGNORED | TRUSTING
        return key.dtype == THOROUGH and key.variant != "eval" and key.operator not in left_out

    def chosen(self, cases: Iterable[Case]) -> Iterable[Case]:
        """The representative call, one without empty tensors where there is one."""
        return filled(cases)

    def variations(self, key: GroupKey, case: Case) -> Iterator[Case]:
        """Of what writes, the source, then the target in another dtype, in a slice; of others some tensors."""
        turn = start_of(key)
        if not writes(key):
            if len(tensors_of(case)) > 1:
                yield from islice(each_in_others(case, 1, turn), turn % 2, None, 2)
            return
        given = schema_case(case)
        sliced = written_in(*given, slice_of_larger) if given is not None else None
        if given is not None and sliced is not None:
            yield from islice(each_in_others(sliced, 1, turn, but=given[1]), 1)
            for varied in out_in_others(*given, 1, turn):
                in_slice = written_in(varied, given[1], slice_of_larger)
                if in_slice is not None:
                    yield in_slice
