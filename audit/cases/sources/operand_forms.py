"""Forms of a call that are about its operands: out= in the memory of the input, a number in place of a tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import torch
from torch import Tensor

from ...model.case import Case

Call = Callable[..., Any]

# What a call with out= in the memory of its input may do. PyTorch refuses some overlaps and defines others.
SOUND = "refuses, or gives the right result"
UNSOUND = "gives a wrong result without an error"


def overlapping(operator: Call, plain: Case) -> Iterator[Case]:
    """The case with out= being its first argument, and with out= one element further in the same storage.

    Only where the CPU is sound: what it computes wrongly in silence is undefined on every device.
    """
    first = plain.args[0] if plain.args else None
    if not isinstance(first, Tensor) or first.layout is not torch.strided or first.numel() < 2:
        return
    for title, place in (("out= is the input", _same), ("out= overlaps the input", _shifted)):
        call = _sound(operator, place)
        try:
            sound = call(*plain.args, **plain.kwargs) == SOUND
        except Exception:  # takes no such out= at all
            continue
        if sound:
            yield replace(plain, call=call, title=title)


def _same(first: Tensor) -> tuple[Tensor, Tensor]:
    target = first.clone()
    return target, target


def _shifted(first: Tensor) -> tuple[Tensor, Tensor]:
    storage = first.new_zeros(first.numel() + 1)
    source = storage[:-1].view(first.shape)
    source.copy_(first)
    return source, storage[1:].view(first.shape)


def _sound(operator: Call, place: Callable[[Tensor], tuple[Tensor, Tensor]]) -> Call:
    def call(first: Tensor, *args: Any, **kwargs: Any) -> str:
        alone = operator(first, *args, **kwargs)
        if not isinstance(alone, Tensor) or alone.dtype is not first.dtype or alone.shape != first.shape:
            return UNSOUND  # the result does not fit into the input's memory
        source, out = place(first)
        try:
            operator(source, *args, **kwargs, out=out)
        except RuntimeError:
            return SOUND
        return SOUND if _close(out, alone) else UNSOUND

    return call


def _close(actual: Tensor, expected: Tensor) -> bool:
    try:
        torch.testing.assert_close(actual, expected, equal_nan=True)
    except AssertionError:
        return False
    return True


def number_and_tensor(operator: Call, aten_name: str, plain: Case) -> Iterator[Case]:
    """The case with a number for an argument that may be a number or a tensor, and with the same in a 0-dim tensor.

    The two are different overloads (`.Scalar` and `.Tensor`) with their own kernels.
    """
    position = number_position(aten_name)
    if position is None or position >= len(plain.args):
        return
    number = _number_in(plain.args[position])
    if number is None:
        return
    args = (*plain.args[:position], number, *plain.args[position + 1 :])

    def call(*given: Any, **kwargs: Any) -> Any:
        value = torch.tensor(given[position], device=given[0].device)
        return [operator(*given, **kwargs), operator(*given[:position], value, *given[position + 1 :], **kwargs)]

    if isinstance(args[0], Tensor):
        yield replace(plain, call=call, args=args, title="a number and a 0-dim tensor", errors_count=True)


@cache
def number_position(aten_name: str) -> int | None:
    """The position of the argument for which an operator has overloads for numbers and for tensors, or None."""
    packet = getattr(torch.ops.aten, aten_name, None)
    if packet is None:
        return None
    kinds: dict[tuple[int, str], set[str]] = {}
    for name in packet.overloads():
        for position, argument in enumerate(getattr(packet, name)._schema.arguments):
            if position and not argument.kwarg_only:
                kind = str(argument.type).removeprefix("Optional[").removesuffix("]")
                kinds.setdefault((position, argument.name), set()).add(kind)
    return next((position for (position, _), types in kinds.items() if {"Tensor", "number"} <= types), None)


def _number_in(value: Any) -> bool | int | float | complex | None:
    if isinstance(value, Tensor):
        if value.numel() == 0 or value.layout is not torch.strided:
            return None
        number: bool | int | float | complex = value.detach().resolve_conj().resolve_neg().flatten()[0].item()
        return number
    return value if isinstance(value, bool | int | float | complex) else None
