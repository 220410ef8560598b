"""One call of an operator on mps: which tensors it has, what it is, and the bytes that it moves."""

from __future__ import annotations

from typing import Any

import torch

from .classification import Conduct
from .recording import Kind

# Kinds as numbers, which are quick to compare and to look up.
KINDS = tuple(Kind)
FALLBACK, NATIVE, TO_MPS, FROM_MPS, SYNCHRONISATION = range(len(KINDS))


def tensors_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The tensors among the arguments, in order, those in lists too."""
    found = []
    tensor_type = torch.Tensor
    for value in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(value, tensor_type):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += [item for item in value if isinstance(item, tensor_type)]
    return found


def are_dense(tensors: list[Any]) -> bool:
    """Whether all of them are plain strided tensors."""
    return all(
        tensor.layout is torch.strided and not tensor.is_quantized and not tensor.is_nested for tensor in tensors
    )


def wrapped(conduct: Conduct, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with numbers that stand for tensors as tensors of the dtype that numbers count as."""
    for place in conduct.unwrapped:
        if place < len(args) and isinstance(args[place], (int, float, complex)):
            args = (*args[:place], torch.tensor(args[place]), *args[place + 1 :])
    return args


def kind_of(conduct: Conduct, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """What a call is, one of the numbers above."""
    if conduct.falls_back:
        return FALLBACK
    if conduct.copies:
        source, target = _ends_of_copy(conduct, args, kwargs)
        if source != target:
            return TO_MPS if target == "mps" else FROM_MPS
        return NATIVE
    return SYNCHRONISATION if conduct.waits and not conduct.composite else NATIVE


def _ends_of_copy(conduct: Conduct, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, str]:
    """The types of the devices that a copy is from and to."""
    if conduct.overload == "aten::_to_copy":
        device = kwargs.get("device")
        source = args[0].device.type
        return source, device.type if device is not None else source
    if conduct.overload == "aten::copy_":
        return args[1].device.type, args[0].device.type
    return args[0].device.type, args[1].device.type


def copied(conduct: Conduct, kind: int, tensors: list[Any], args: tuple[Any, ...], result: Any) -> tuple[int, int]:
    """The bytes that a call has copied to the CPU, and to the device.

    The fallback copies every tensor argument of the device to the CPU, those that are written to as well; then back
    what was written to, and the results.
    """
    if kind in (NATIVE, SYNCHRONISATION):
        return 0, 0
    if kind != FALLBACK:
        moved = _size(args[1] if conduct.overload == "aten::copy_" else args[0])
        return (moved, 0) if kind == FROM_MPS else (0, moved)
    to_cpu = sum(_size(tensor) for tensor in tensors if tensor.is_mps)
    written = sum(_size(args[position]) for position, _ in conduct.written if position < len(args))
    if not conduct.fresh or result is None:
        return to_cpu, written + (sum(map(_size, _results_out(conduct, result))) if not written else 0)
    results = result if isinstance(result, (tuple, list)) else (result,)
    fresh = sum(_size(results[position]) for position in conduct.fresh if position < len(results))
    return to_cpu, written + fresh


def _results_out(conduct: Conduct, result: Any) -> tuple[Any, ...]:
    """What an out variant returns are its outputs, which it was given by name."""
    if not conduct.written or result is None:
        return ()
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def _size(value: Any) -> int:
    """The bytes of a tensor, or of those in a list."""
    if isinstance(value, torch.Tensor):
        return value.numel() * value.element_size()
    if isinstance(value, (list, tuple)):
        return sum(map(_size, value))
    return 0
