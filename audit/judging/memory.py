"""Compares which memory the results of a call share: with its arguments and with each other, and their strides."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..model.case import Case
from ..model.nested import leaves
from .compare import Difference
from .execution import Execution


def compare_memory(actual: Execution, expected: Execution, exactly: bool = True) -> Difference | None:
    """Compare which arguments and other outputs each output shares memory with, and its strides.

    Args:
        actual, expected: the call on the device and on the CPU.
        exactly: compare also which outputs share memory with each other, and which are an input itself. Otherwise a
            copy of an input that the call did not write is accepted.
    """
    inputs = actual.tensors, expected.tensors
    copies = frozenset() if exactly else _returned_arguments(expected)
    difference = _compare_with_inputs(actual.outputs, expected.outputs, *inputs, exactly=exactly, copies=copies)
    if difference is None and exactly and len(expected.outputs) > 1:
        difference = _compare_with_each_other(actual.outputs, expected.outputs)
    return difference


def _compare_with_inputs(
    outputs: list[Any],
    cpu_outputs: list[Any],
    mine: list[Tensor],
    cpus: list[Tensor],
    *,
    exactly: bool,
    copies: frozenset[int],
) -> Difference | None:
    my_storages, cpu_storages = _storages(mine), _storages(cpus)
    my_inputs, cpu_inputs = _positions(mine), _positions(cpus)
    for position, (output, cpu_output) in enumerate(zip(outputs, cpu_outputs, strict=True)):
        if not isinstance(output, Tensor) or output.layout is not torch.strided:
            continue
        shared = _shared_with(output, my_storages)
        cpu_shared = _shared_with(cpu_output, cpu_storages)
        if shared is None and position in copies:
            continue
        if shared != cpu_shared:
            what = "shares no memory with an input" if shared is None else f"shares the memory of input {shared}"
            return Difference(f"output {position} {what}, unlike the CPU's")
        if shared is None:
            continue
        if output.stride() != cpu_output.stride() and output.numel() > 1:
            return Difference(f"output {position}, a view, has stride {output.stride()}, not {cpu_output.stride()}")
        if output.storage_offset() != cpu_output.storage_offset() and output.numel():
            offsets = f"{output.storage_offset()}, not {cpu_output.storage_offset()}"
            return Difference(f"output {position}, a view, begins at element {offsets}")
        is_input, is_cpu_input = my_inputs.get(id(output)), cpu_inputs.get(id(cpu_output))
        if exactly and is_input != is_cpu_input:
            what = "is not input" if is_input is None else "is input"
            at = is_cpu_input if is_input is None else is_input
            return Difference(f"output {position} {what} {at} itself, unlike the CPU's")
    return None


def _returned_arguments(expected: Execution) -> frozenset[int]:
    """The positions of outputs that are an unchanged argument."""
    arguments = {
        id(tensor)
        for tensor, version in zip(expected.tensors, expected.versions, strict=False)
        if tensor._version == version
    }
    return frozenset(at for at, output in enumerate(expected.outputs) if id(output) in arguments)


def _compare_with_each_other(outputs: list[Any], cpu_outputs: list[Any]) -> Difference | None:
    mine, cpus = _first_of_its_storage(outputs), _first_of_its_storage(cpu_outputs)
    if mine == cpus:
        return None
    for position, (first, cpu_first) in enumerate(zip(mine, cpus, strict=True)):
        if first == cpu_first:
            continue
        if first != position:
            return Difference(f"output {position} shares the memory of output {first}, unlike the CPU's")
        if _sharing_is_promised(cpu_outputs[cpu_first], cpu_outputs[position]):
            return Difference(f"output {position} shares no memory with output {cpu_first}, unlike the CPU's")
    return None


def _sharing_is_promised(first: Tensor, second: Tensor) -> bool:
    """Whether two outputs share a storage by definition of the operator: views, or overlapping elements.

    Otherwise the CPU's kernel only allocated two independent results at once.
    """
    if first._is_view() and second._is_view():
        return True
    (begin, end), (other_begin, other_end) = _extent(first), _extent(second)
    return begin < other_end and other_begin < end


def _extent(tensor: Tensor) -> tuple[int, int]:
    """The range of bytes of its storage that a tensor may touch."""
    if tensor.numel() == 0:
        return 0, 0
    last = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    begin = int(tensor.storage_offset())
    return begin * tensor.element_size(), (begin + int(last) + 1) * tensor.element_size()


def compare_strides(case: Case, actual: Execution, expected: Execution) -> Difference | None:
    """Compare the strides of outputs where PyTorch promises them.

    Elementwise operators keep the memory format of their inputs ("Channels Last Memory Format in PyTorch" states
    the rule), which is one for all devices as long as the inputs are dense and do not overlap.
    """
    if not case.elementwise or not all(map(_is_dense, tensors_of((case.args, case.kwargs)))):
        return None
    for position, (output, cpus) in enumerate(zip(actual.outputs, expected.outputs, strict=True)):
        if isinstance(output, Tensor) and output.layout is torch.strided and steps(output) != steps(cpus):
            return Difference(f"output {position} has stride {output.stride()}, not {cpus.stride()}")
    return None


def tensors_of(tree: Any) -> list[Tensor]:
    """The tensors among the leaves, in their order."""
    return [leaf for leaf in leaves(tree) if isinstance(leaf, Tensor)]


def steps(tensor: Tensor) -> list[int]:
    """The strides of the dimensions with more than one element; the others have no effect."""
    if tensor.numel() == 0:
        return []
    return [step for size, step in zip(tensor.shape, tensor.stride(), strict=True) if size > 1]


def _storages(tensors: list[Tensor]) -> dict[int, int]:
    first_positions: dict[int, int] = {}
    for position, tensor in enumerate(tensors):
        if tensor.layout is torch.strided:
            first_positions.setdefault(tensor.untyped_storage()._cdata, position)
    return first_positions


def _positions(tensors: list[Tensor]) -> dict[int, int]:
    first_positions: dict[int, int] = {}
    for position, tensor in enumerate(tensors):
        first_positions.setdefault(id(tensor), position)
    return first_positions


def _shared_with(output: Any, storages: dict[int, int]) -> int | None:
    if not isinstance(output, Tensor) or output.layout is not torch.strided:
        return None
    return storages.get(output.untyped_storage()._cdata)


def _first_of_its_storage(outputs: list[Any]) -> list[int]:
    """For each output the position of the first output in the same storage."""
    first_positions: dict[int, int] = {}
    return [
        first_positions.setdefault(output.untyped_storage()._cdata, position)
        if isinstance(output, Tensor) and output.layout is torch.strided
        else position
        for position, output in enumerate(outputs)
    ]


def _is_dense(tensor: Tensor) -> bool:
    """Whether the tensor's elements fill a range of memory without overlap."""
    if tensor.layout is not torch.strided:
        return False
    filled = 1
    for step, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1 and step != filled:
            return False
        filled *= size
    return True
