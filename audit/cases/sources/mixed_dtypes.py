"""Tensors of different dtypes in one call: promoted if PyTorch allows it, refused otherwise.

Kernels for several tensors are compiled for one dtype, and a cast may be missing (pytorch/pytorch#78879, #149951). In
copies into slices the cast may ignore strides (#95417).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from ...model.case import Case
from ..covering.levels import DTYPE_NAMES
from .case_tensors import accepts, comparing_errors, strided_positions, tensors_of, with_one, with_tensors
from .derived import THOROUGH, BaseGroup, Factor, in_each_case, rotated
from .operand_forms import number_position
from .tensor_layouts import KERNEL_DIES, filled
from .write_targets import (
    STRIDES_IGNORED,
    opinfo_in_place,
    opinfo_with_out,
    schema_case,
    slice_of_larger,
    with_storage_around,
    written_in,
)

# How many tensors of a call or of a list are varied: a kernel that checks only the first two misses the third.
MOST_TENSORS = 3

OTHERS: dict[torch.dtype, tuple[torch.dtype, ...]] = {
    torch.float32: (torch.float16, torch.int64, torch.complex64),
    torch.float16: (torch.float32, torch.int32),
    torch.bfloat16: (torch.float32, torch.float16),
    torch.complex64: (torch.float32,),
    torch.int64: (torch.int32, torch.float32),
    torch.int32: (torch.int64, torch.float32),
    torch.int16: (torch.int64,),
    torch.int8: (torch.int64,),
    torch.uint8: (torch.bool, torch.int64),
    torch.bool: (torch.uint8, torch.float32),
}
# Tried too if more than one other dtype is tried.
FURTHER: dict[torch.dtype, tuple[torch.dtype, ...]] = {torch.float32: (torch.bool,)}
# A number of each category: torch promotes a tensor to the category of a number if that is higher.
NUMBERS: tuple[bool | int | float | complex, ...] = (True, 2, 2.5, 1 + 2j)


def in_dtype(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """The tensor in another dtype; what an integer dtype rounds to 0 becomes 1, so that nothing divides by 0."""
    if tensor.is_complex() and not dtype.is_complex:
        tensor = tensor.real
    other = tensor.resolve_conj().resolve_neg().to(dtype)
    was_floating = tensor.is_floating_point() or tensor.is_complex()
    if was_floating and not (dtype.is_floating_point or dtype.is_complex or dtype is torch.bool):
        other = torch.where(other == 0, torch.ones_like(other), other)
    return other


def others_of(dtype: torch.dtype, beside: Iterable[torch.dtype]) -> tuple[torch.dtype, ...]:
    """The other dtypes to try for one tensor. Next to floating tensors, int64 and int32 only replace each other."""
    others = OTHERS.get(dtype, ())
    if dtype in (torch.int64, torch.int32) and any(d.is_floating_point or d.is_complex for d in beside):
        return others[:1]  # they are indices or sizes
    return others


def one_in(case: Case, position: int, dtype: torch.dtype) -> Case | None:
    """The case with one tensor in another dtype, or None if it has this dtype already."""
    if tensors_of(case)[position].dtype is dtype:
        return None
    title = f"tensor {position} {DTYPE_NAMES[dtype]}"
    return with_one(of_mixed_dtypes(case), position, lambda tensor: in_dtype(tensor, dtype), title)


def of_mixed_dtypes(case: Case) -> Case:
    """The case marked: the CPU may refuse it, and strides are not compared: PyTorch defines them for one dtype."""
    return replace(comparing_errors(case), elementwise=False)


def each_in_others(case: Case, most: int, turn: int = 0, but: Sequence[int] = ()) -> Iterator[Case]:
    """Each tensor in at most `most` of its `OTHERS`, rotated by `turn`; if `most` is above 1, in `FURTHER` too."""
    dtypes = {tensor.dtype for tensor in tensors_of(case)}
    for position in [p for p in strided_positions(case) if p not in but][:MOST_TENSORS]:
        own = tensors_of(case)[position].dtype
        others = rotated(others_of(own, dtypes), turn + position)[:most]
        for dtype in (*others, *(FURTHER.get(own, ()) if most > 1 else ())):
            varied = one_in(case, position, dtype)
            if varied is not None:
                yield varied


def each_as_scalar_tensor(case: Case, turn: int) -> Iterator[Case]:
    """Each of several tensors as a 0-dim tensor of another dtype: only its category counts for promotion.

    If the call is not elementwise, only the first tensor, if the CPU accepts it: the input of addr broadcasts.
    """
    tensors = tensors_of(case)
    if len(tensors) < 2:
        return
    for position in strided_positions(case)[: MOST_TENSORS if case.elementwise else 1]:
        others = OTHERS.get(tensors[position].dtype, ())
        if not tensors[position].numel():
            continue
        in_turn = rotated(others, turn + position)
        varied = (_as_scalar_tensor(case, position, dtype) for dtype in (in_turn[:1] if case.elementwise else in_turn))
        yield from islice((made for made in varied if case.elementwise or accepts(made)), 1)


def _as_scalar_tensor(case: Case, position: int, dtype: torch.dtype) -> Case:
    def first(tensor: Tensor) -> Tensor:
        return in_dtype(tensor.flatten()[0], dtype).clone()

    varied = with_one(of_mixed_dtypes(case), position, first, f"tensor {position} 0-dim {DTYPE_NAMES[dtype]}")
    assert varied is not None
    return varied


def with_numbers(case: Case, aten_name: str) -> Iterator[Case]:
    """The case with a number of each category, for an argument that may be a number or a tensor."""
    position = number_position(aten_name)
    if position is None or position >= len(case.args) or not isinstance(case.args[0], Tensor):
        return
    for number in NUMBERS:
        args = (*case.args[:position], number, *case.args[position + 1 :])
        yield replace(of_mixed_dtypes(case), args=args, title=f"number {number}")


def with_three(case: Case) -> Case | None:
    """The case with three tensors in each of its lists of tensors, or None if it has no such list."""
    if not any(map(_is_list, case.args)):
        return None
    args = tuple(_three(arg) if _is_list(arg) else arg for arg in case.args)
    return replace(of_mixed_dtypes(case), args=args, title="three tensors")


def _is_list(arg: Any) -> bool:
    return isinstance(arg, (list, tuple)) and len(arg) > 0 and all(isinstance(t, Tensor) for t in arg)


def _three(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [*tensors[:3], *(tensors[-1].detach().clone() for _ in range(3 - len(tensors)))]


def out_in_others(case: Case, targets: Sequence[int], most: int, turn: int = 0) -> Iterator[Case]:
    """The case with its first target in at most `most` other dtypes: torch casts the result or refuses the call."""
    if not targets:
        return
    tensor = tensors_of(case)[targets[0]]
    others = OTHERS.get(tensor.dtype, ())
    for dtype in rotated(others, turn)[:most]:
        title = f"{case.title} {DTYPE_NAMES[dtype]}"
        yield with_tensors(of_mixed_dtypes(case), {targets[0]: in_dtype(tensor, dtype)}, title)


# ---- the factors

# Overloads whose CPU kernel does not check dtypes: its results are undefined, or the backward refuses them.
UNCHECKED_OPERATORS = frozenset({"_compute_linear_combination.out", "multilabel_margin_loss_forward.output"})
IN_TURN = ("float16", "int64", "bool")


def _variations(group: BaseGroup, case: Case) -> Iterator[Case]:
    """Plain calls; in-place calls with the other tensors in another dtype; out= of another dtype."""
    turn = group.first_variation
    most = 3 if group.key.dtype == THOROUGH else 1
    listed = with_three(case)
    if listed is not None:
        yield listed
        yield from each_in_others(listed, most, turn, but=(0, 1))
    elif len(tensors_of(case)) > 1:
        yield from each_in_others(case, most, turn)
        yield from each_as_scalar_tensor(case, turn)
    yield from with_numbers(case, group.opinfo.aten_name)
    given = opinfo_in_place(group, case)
    if given is not None:
        yield from each_in_others(with_storage_around(*given), min(most, 2), turn, but=given[1])
    given = opinfo_with_out(group, case)
    if given is not None:
        yield from out_in_others(*given, min(most, 2), turn)


def _applies_to_call(group: BaseGroup) -> bool:
    """Calls in float32, modules in training."""
    left_out = KERNEL_DIES | STRIDES_IGNORED | UNCHECKED_OPERATORS
    return group.key.dtype == THOROUGH and group.key.variant != "eval" and group.key.operator not in left_out


def _variations_of_call(group: BaseGroup, case: Case) -> Iterator[Case]:
    """For calls that write, the source, then the target as a slice in another dtype. For other calls, some tensors."""
    turn = group.first_variation
    if not group.writes:
        if len(tensors_of(case)) > 1:
            yield from islice(each_in_others(case, 1, turn), turn % 2, None, 2)
        return
    given = schema_case(case)
    if given is not None and 0 not in given[1] and len(tensors_of(given[0])) - len(given[1]) > 1:
        yield from islice(each_as_scalar_tensor(replace(given[0], elementwise=False), turn), 1)
    sliced = written_in(*given, slice_of_larger) if given is not None else None
    if given is not None and sliced is not None:
        yield from islice(each_in_others(sliced, 1, turn, but=given[1]), 1)
        for varied in out_in_others(*given, 1, turn):
            in_slice = written_in(varied, given[1], slice_of_larger)
            if in_slice is not None:
                yield in_slice


# OpInfos: one dtype of each category but complex, with which float32 is combined. Modules and overloads: float32.
MIXED_DTYPE_FACTOR = Factor(
    "mixed dtypes", in_each_case(_variations), applies=lambda group: group.key.dtype in (THOROUGH, *IN_TURN)
)
MIXED_DTYPE_CALL_FACTOR = Factor(
    "mixed dtypes", in_each_case(_variations_of_call), _applies_to_call, lambda group, cases: filled(cases)
)
