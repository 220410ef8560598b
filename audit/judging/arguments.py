"""Compares the arguments after a call on the device and on the CPU.

A call may write into arguments: in-place forms, out=, running statistics of a norm, the states of a fused optimiser.
What it writes is compared as an output is; what it leaves alone must be as it was, down to the memory around a view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from ..model.case import Case
from .compare import Difference, same_bits
from .execution import Execution
from .memory import steps, tensors_of

DifferenceOrError = Difference | float  # a difference, or the largest error in units of the tolerance


class Argument(NamedTuple):
    """One tensor among the arguments.

    Attributes:
        position: its index among the tensors of the arguments.
        mine, cpus: the argument after the call on the device, and on the CPU.
        original: the argument before both calls, on the CPU.
        written: how often the CPU's call announced a write to it.
    """

    position: int
    mine: Tensor
    cpus: Tensor
    original: Tensor
    written: int


CompareWritten = Callable[[Argument], DifferenceOrError]
# Whether the elements of an argument's storage on the device, which differ so from the CPU's, are accepted anyway.
AcceptsAround = Callable[[Argument, Tensor, Tensor, Difference], bool]


def compare_arguments(
    case: Case,
    actual: Execution,
    expected: Execution,
    compare_written: CompareWritten,
    accepts_around: AcceptsAround,
    accepts_metadata: Callable[[Argument], bool],
    *,
    values: bool,
) -> DifferenceOrError:
    """Compare every tensor among the arguments after the call.

    Args:
        case: has the arguments before the calls.
        actual, expected: the runs on the device and on the CPU.
        compare_written: compares the values of an argument that the CPU's call changed.
        accepts_around: whether a difference in the memory around an argument is accepted.
        accepts_metadata: whether another shape, dtype or stride of an argument is accepted.
        values: False if the written values are random or undefined: then the metadata are compared, and the values of
            arguments that the CPU's call does not write.
    """
    largest = 0.0
    returned = {id(mine): id(cpus) for mine, cpus in zip(actual.outputs, expected.outputs, strict=True)}
    seen: set[int] = set()
    for argument in _arguments(case, actual, expected):
        if argument.mine is argument.original:
            continue  # the operator wants it on the host; both calls got the same tensor
        is_output = returned.get(id(argument.mine)) == id(argument.cpus)  # which has been compared
        difference = compare_metadata(argument, case.rounded_to is not None)
        is_compared = is_output and argument.mine.shape != argument.cpus.shape
        if difference is not None and not (is_compared or accepts_metadata(argument)):
            return difference
        if argument.mine.layout is not torch.strided:
            continue
        if not is_output:
            result = _compare_values(argument, compare_written, values=values)
            if isinstance(result, Difference):
                return result
            largest = max(largest, result)
        if not _fills_its_storage(argument.original) and argument.original.untyped_storage()._cdata not in seen:
            seen.add(argument.original.untyped_storage()._cdata)
            around = _changes_around(argument, case)
            mine, cpus = storage_of(argument.mine), storage_of(argument.cpus)
            if around is not None and not accepts_around(argument, mine, cpus, around):
                return around
    return largest


def compare_cotangents(actual: Execution, expected: Execution) -> Difference | None:
    """Compare what the backward did to its cotangents."""
    for position, (mine, cpus) in enumerate(zip(actual.cotangents, expected.cotangents, strict=True)):
        if mine is not cpus and not same_bits(mine.detach().cpu(), cpus):
            return Difference(f"cotangent {position} was changed, which the CPU leaves alone")
    return None


def _arguments(case: Case, actual: Execution, expected: Execution) -> Iterator[Argument]:
    originals = tensors_of((case.args, case.kwargs))
    versions = expected.versions or [-1] * len(originals)  # unknown: any may have been written
    both = zip(actual.tensors, expected.tensors, originals, versions, strict=True)
    for position, (mine, cpus, original, version) in enumerate(both):
        yield Argument(position, mine, cpus, original, cpus._version - version)


def compare_metadata(argument: Argument, rounded: bool = False) -> Difference | None:
    """Compare what an argument is after the calls, except for its values."""
    position, mine, cpus, original, _ = argument
    if _looks_like(mine, cpus):
        return None
    if mine.shape != cpus.shape:
        text = f"has shape {list(mine.shape)} after the call, not {list(cpus.shape)}"
    elif mine.dtype is not cpus.dtype and not rounded:
        text = f"has dtype {mine.dtype} after the call, not {cpus.dtype}"
    elif mine.layout is not cpus.layout:
        text = f"has layout {mine.layout} after the call, not {cpus.layout}"
    elif mine.requires_grad is not cpus.requires_grad:
        text = f"{'requires' if mine.requires_grad else 'does not require'} a gradient after the call"
    elif _is_in_place(cpus, original) and steps(mine) != steps(cpus):
        text = f"has stride {mine.stride()} after the call, not {cpus.stride()}"
    elif _is_in_place(cpus, original) and mine.storage_offset() != cpus.storage_offset():
        text = f"begins at element {mine.storage_offset()} after the call, not {cpus.storage_offset()}"
    else:
        return None
    return Difference(f"input {position} {text}")


def _looks_like(mine: Tensor, cpus: Tensor) -> bool:
    return (
        mine.layout is torch.strided is cpus.layout
        and mine.dtype is cpus.dtype
        and mine.requires_grad is cpus.requires_grad
        and mine.shape == cpus.shape
        and mine.stride() == cpus.stride()
        and mine.storage_offset() == cpus.storage_offset()
    )


def _is_in_place(cpus: Tensor, original: Tensor) -> bool:
    """Whether the argument is still in the same memory. A resized tensor may have any strides."""
    if cpus.layout is not torch.strided or original.layout is not torch.strided:
        return False
    return cpus.shape == original.shape or cpus.untyped_storage().nbytes() == original.untyped_storage().nbytes()


def _compare_values(argument: Argument, compare_written: CompareWritten, *, values: bool) -> DifferenceOrError:
    position, mine, cpus, original, written = argument
    if same_bits(cpus, original):
        # An argument that receives random or undefined values may keep its own by chance.
        if (not values and written) or same_bits(mine.detach().cpu(), original):
            return 0.0
        return Difference(f"input {position} was changed, which the CPU leaves alone")
    if not values:
        return 0.0
    result = compare_written(argument)
    if isinstance(result, Difference):
        return replace(result, text=f"input {position} after the call: {result.text}")
    return result


def _fills_its_storage(tensor: Tensor) -> bool:
    return tensor.is_contiguous() and tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()


def _changes_around(argument: Argument, case: Case) -> Difference | None:
    """The elements outside of all arguments that the device changed in a storage and the CPU did not."""
    original = _bytes(argument.original)
    mine, cpus = _bytes(argument.mine).cpu(), _bytes(argument.cpus)
    if mine.shape != original.shape or cpus.shape != original.shape or torch.equal(mine, cpus):
        return None
    storage = argument.original.untyped_storage()._cdata
    looked_at = torch.zeros_like(original, dtype=torch.bool)
    for tensor in tensors_of((case.args, case.kwargs)):
        if tensor.layout is torch.strided and tensor.untyped_storage()._cdata == storage:
            _mark(looked_at, tensor)
    if argument.cpus.layout is torch.strided:
        _mark(looked_at, argument.cpus)  # an out tensor that was resized has what was around it
    changed = (mine != original) & (cpus == original) & ~looked_at
    if not bool(changed.any()):
        return None
    width = argument.original.element_size()
    wrong = changed[: len(changed) // width * width].view(-1, width).any(1)
    return Difference(f"the memory around input {argument.position} was changed, unlike the CPU's", wrong=wrong)


def storage_of(tensor: Tensor) -> Tensor:
    """The whole storage of a tensor, as elements of its dtype in one row."""
    return torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(tensor.untyped_storage())


def _bytes(tensor: Tensor) -> Tensor:
    """The whole storage of a tensor."""
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())


def _mark(looked_at: Tensor, tensor: Tensor) -> None:
    width = tensor.element_size()
    strides = [step * width for step in tensor.stride()]
    looked_at.as_strided((*tensor.shape, width), (*strides, 1), tensor.storage_offset() * width).fill_(True)
