"""Observes calls so that two devices can be compared bit by bit: results, arguments afterwards, surrounding memory."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..judging.transfer import move
from ..model.nested import leaves
from .argument_changes import Arguments


@dataclass(frozen=True)
class Raised:
    """An exception instead of a result; equal to any other one of the same type."""

    kind: str


def execute(
    overload: Any, calls: list[Arguments], device: str, *, threads: bool = False, whole: bool = False
) -> list[Any]:
    """Run the calls. Return the results and the arguments after each call in a comparable form, or Raised.

    `threads`: all but the first run in separate threads. `whole`: return only the arguments, as tensors.
    """
    keywords = {a.name for a in overload._schema.arguments if a.kwarg_only}
    kept: list[Any] = []

    def run(arguments: Arguments) -> None:
        ((moved,), _) = move((arguments,), {}, device)
        positional = [moved[a.name] for a in overload._schema.arguments if a.name not in keywords]
        named = {name: moved[name] for name in keywords}
        if named.get("device") is not None or ("device" in named and not any_tensor(arguments)):
            named["device"] = torch.device(device)
        sizes = [t.untyped_storage().nbytes() for t in _strided(moved)]
        with torch.no_grad():
            try:
                returned = overload(*positional, **named)
                kept.append((returned, moved, sizes))
            except Exception as error:
                kept.append(Raised(type(error).__name__))

    for position, arguments in enumerate(calls):
        if threads and position:
            other = threading.Thread(target=run, args=(arguments,))
            other.start()
            other.join()
        else:
            run(arguments)
    if whole:
        return [result if isinstance(result, Raised) else result[1] for result in kept]
    return [result if isinstance(result, Raised) else _observed(*result) for result in kept]


def any_tensor(arguments: Arguments) -> bool:
    """Whether a call has a tensor."""
    return any(isinstance(leaf, Tensor) for leaf in leaves(arguments))


def _strided(arguments: Arguments) -> list[Tensor]:
    given = leaves(list(arguments.values()))
    return [leaf for leaf in given if isinstance(leaf, Tensor) and leaf.layout is torch.strided]


def _observed(returned: Any, arguments: Arguments, sizes: list[int]) -> list[Any]:
    """Results and arguments in a comparable form: values on the CPU, strides, shared memory.

    The memory around arguments is included, unless the call resized them: then it is undefined.
    """
    tensors = [leaf for leaf in leaves([returned, list(arguments.values())]) if isinstance(leaf, Tensor)]
    strided = [t for t in tensors if t.layout is torch.strided]
    storages = [t.untyped_storage().data_ptr() for t in strided if t.numel()]
    sharing = [storages.index(s) for s in storages]
    values = [_bits(t) for t in tensors]
    given = zip(_strided(arguments), sizes, strict=True)
    around = [_whole_storage(t) for t, size in given if t.untyped_storage().nbytes() == size]
    plain = [leaf for leaf in leaves([returned]) if not isinstance(leaf, Tensor)]
    return [values, sharing, around, [repr(p) for p in plain]]


def _whole_storage(tensor: Tensor) -> Tensor:
    bytes_ = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
    return bytes_.cpu().clone()


def _bits(tensor: Tensor) -> tuple[Any, ...]:
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    here = tensor.detach().cpu().resolve_conj().resolve_neg()
    strides = tuple(tensor.stride())
    return str(tensor.dtype), tuple(tensor.shape), strides, here.contiguous().clone()


def differs(left: Any, right: Any) -> bool:
    """Whether two observations differ in any bit."""
    if isinstance(left, Raised) or isinstance(right, Raised):
        return getattr(left, "kind", "") != getattr(right, "kind", "")
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        return left.dtype is not right.dtype or left.shape != right.shape or not _same_bits(left, right)
    if isinstance(left, (list, tuple)):
        return len(left) != len(right) or any(map(differs, left, right))
    return bool(left != right)


def _same_bits(left: Tensor, right: Tensor) -> bool:
    return torch.equal(left.flatten().view(torch.uint8), right.flatten().view(torch.uint8)) if left.numel() else True
