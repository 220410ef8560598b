"""Facts about one operator call on mps: its tensors, its kind, and the bytes that it copies."""

from __future__ import annotations

from typing import Any

import torch

from .classification import OverloadTraits
from .recording import CallKind

# An index of bool or uint8 is a mask: the host waits for the number of its true elements. Integers need no wait.
INDEXING = frozenset(
    {"aten::index.Tensor", "aten::index.Tensor_out", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"}
)
_MASKS = (torch.bool, torch.uint8)

# Kinds as numbers, which are faster to compare and to look up.
KINDS = tuple(CallKind)
FALLBACK, NATIVE, TO_MPS, FROM_MPS, SYNCHRONISATION = range(len(KINDS))


def tensors_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The tensors among the arguments, in order, those in lists too."""
    tensors = []
    tensor_type = torch.Tensor
    for value in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(value, tensor_type):
            tensors.append(value)
        elif isinstance(value, (list, tuple)):
            tensors += [item for item in value if isinstance(item, tensor_type)]
    return tensors


def are_dense(tensors: list[Any]) -> bool:
    """Whether all of them are plain strided tensors."""
    return all(
        tensor.layout is torch.strided and not tensor.is_quantized and not tensor.is_nested for tensor in tensors
    )


def wrapped(traits: OverloadTraits, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, with plain numbers in tensor positions converted to tensors."""
    for position in traits.unwrapped:
        if position < len(args) and isinstance(args[position], (int, float, complex)):
            args = (*args[:position], torch.tensor(args[position]), *args[position + 1 :])
    return args


def kind_of(traits: OverloadTraits, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """The kind of a call as one of the numbers above."""
    if traits.falls_back:
        return FALLBACK
    if traits.copies:
        source, target = _ends_of_copy(traits, args, kwargs)
        if source != target:
            return TO_MPS if target == "mps" else FROM_MPS
        return NATIVE
    if traits.overload in INDEXING:
        return SYNCHRONISATION if _has_mask(args) else NATIVE
    return SYNCHRONISATION if traits.waits and not traits.composite else NATIVE


def _has_mask(args: tuple[Any, ...]) -> bool:
    """Whether an index on the device is a mask; `args` are those of an indexing operator."""
    indices = args[1] if len(args) > 1 else ()
    return any(index is not None and index.dtype in _MASKS and index.is_mps for index in indices)


def _ends_of_copy(traits: OverloadTraits, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, str]:
    """The device types of the source and the target of a copy."""
    if traits.overload == "aten::_to_copy":
        device = kwargs.get("device")
        source = args[0].device.type
        return source, device.type if device is not None else source
    if traits.overload == "aten::copy_":
        return args[1].device.type, args[0].device.type
    return args[0].device.type, args[1].device.type


def copied(
    traits: OverloadTraits, kind: int, tensors: list[Any], args: tuple[Any, ...], result: Any
) -> tuple[int, int]:
    """The bytes that a call copied to the CPU, and to the device.

    The fallback copies every mps tensor argument to the CPU, written ones too. Then it copies written arguments and
    results back.
    """
    if kind in (NATIVE, SYNCHRONISATION):
        return 0, 0
    if kind != FALLBACK:
        moved = _size(args[1] if traits.overload == "aten::copy_" else args[0])
        return (moved, 0) if kind == FROM_MPS else (0, moved)
    to_cpu = sum(_size(tensor) for tensor in tensors if tensor.is_mps)
    written = sum(_size(args[position]) for position, _ in traits.written if position < len(args))
    if not traits.fresh or result is None:
        return to_cpu, written + (sum(map(_size, _results_out(traits, result))) if not written else 0)
    results = result if isinstance(result, (tuple, list)) else (result,)
    fresh = sum(_size(results[position]) for position in traits.fresh if position < len(results))
    return to_cpu, written + fresh


def _results_out(traits: OverloadTraits, result: Any) -> tuple[Any, ...]:
    """The outputs of an out variant, which returns its arguments."""
    if not traits.written or result is None:
        return ()
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def _size(value: Any) -> int:
    """The bytes of a tensor, or of those in a list."""
    if isinstance(value, torch.Tensor):
        return value.numel() * value.element_size()
    if isinstance(value, (list, tuple)):
        return sum(map(_size, value))
    return 0
