"""What a launch binds against what the kernel's parameters ask for: number, kind, type and size."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...simulator.errors import MetalRuntimeError
from ...simulator.metal.binding import ArgCasts, Buffer, Device, bind
from ...simulator.metal.dispatch import KernelParameter
from ...simulator.metal.element_types import mistaken, of_another_width


def binding_problems(
    parameters: Mapping[int, tuple[str, KernelParameter]],
    arguments: Sequence[object],
    arg_casts: ArgCasts,
    device: Device,
    error_buffer: int | None = None,
) -> Iterator[str]:
    """What is wrong, a problem at a time; nothing is run.

    Args:
        parameters: of the kernel: name and what is bound to it, by buffer index.
        arguments: what the launch passes, in the order of the buffers.
        arg_casts: torch's `arg_casts`.
        device: where tensors are.
        error_buffer: the index of the buffer that torch binds itself.
    """
    expected = {index: parameter for index, parameter in parameters.items() if index != error_buffer}
    asked = max(expected, default=-1) + 1
    if len(arguments) > asked:
        yield f"{len(arguments)} arguments are bound, and the kernel has buffers for {asked}"
    for index, (name, parameter) in sorted(expected.items()):
        if index >= len(arguments):
            yield f"buffer {index}, {name}, is not bound"
        elif problem := _problem(arguments[index], index, parameter, arg_casts, device):
            yield f"buffer {index}, {name}, {problem}"


def _problem(
    argument: object, index: int, parameter: KernelParameter, arg_casts: ArgCasts, device: Device
) -> str | None:
    is_number = isinstance(argument, bool | int | float)
    if is_number and parameter.writable:
        return "is written by the kernel, and a number is bound to it"
    if parameter.size and parameter.numbers and _elements(argument) > 1:
        return "is a number, and memory of several elements is bound to it"
    try:
        buffer = bind(argument, index, arg_casts, device, tight=True)
    except MetalRuntimeError as error:
        return f"cannot be bound: {error}"
    if parameter.size > buffer.available:
        return f"takes {parameter.size} bytes, and {buffer.available} are bound"
    return _of_numbers(buffer, parameter)


def _of_numbers(buffer: Buffer, parameter: KernelParameter) -> str | None:
    given = buffer.numbers, buffer.by_value, parameter.numbers
    return mistaken(*given) or of_another_width(*given)


def _elements(argument: Any) -> int:
    torch = sys.modules.get("torch")
    return int(argument.numel()) if torch is not None and isinstance(argument, torch.Tensor) else 1
