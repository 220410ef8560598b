"""Binds the arguments of a call to buffers, as torch's `compile_shader` does.

A tensor is bound as its storage from its offset on, without its strides. An int or a bool becomes an int64, a float a
float32, and a list has the type of its first element. `arg_casts` narrows scalars and lists.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ...metal_limits import CONSTANT_ALIGNMENT, MAX_BUFFER_BYTES, MAX_INLINE_BYTES
from ..errors import MetalRuntimeError
from .element_types import Numbers, numbers_of_dtype, numbers_of_value

if TYPE_CHECKING:
    import numpy as np
    import torch

ArgCasts = str | Mapping[int, str] | None
Device = Literal["cpu", "mps"]


@dataclass(frozen=True)
class Buffer:
    """Bytes bound to an index: `address` is inside the `size` bytes from `base` on."""

    address: int
    base: int
    size: int
    owner: object  # keeps the memory alive
    numbers: Numbers = ""  # from the caller's dtype
    by_value: bool = False
    before: int = 0  # bytes of the tensor's storage in front of `base`

    @property
    def offset(self) -> int:
        """Bytes from the begin of the storage to `address`."""
        return self.before + self.address - self.base

    @property
    def available(self) -> int:
        """Bytes from `address` to the end."""
        return self.base + self.size - self.address


# The validation says of a grid or threadgroup that its size "must not be 0". A Mac without it runs no thread.
NO_THREADS = (
    "no threads: Metal's API validation (MTL_DEBUG_LAYER=1) refuses an empty grid or threadgroup; return before the "
    "launch if nothing is to do"
)


def require_valid(message: str) -> None:
    """Raise MetalRuntimeError for a call that only Metal's validation refuses.

    In `mpsmith try` a file gets the message, and the program continues (like require_valid in objc/metal/host.h).
    """
    path = os.environ.get("MPSMITH_METAL_FINDINGS")
    if path is None:
        raise MetalRuntimeError(message)
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(f"{message}\n")


def refused_by_validation(buffer: Buffer, alignment: int, in_constant: bool, checked: bool) -> str | None:
    """Why Metal's validation refuses to bind a buffer to elements of this alignment (0: any), or None.

    `checked`: also refuse a binding that not every Mac accepts.
    """
    offset = buffer.offset
    if alignment and offset % alignment:
        return (
            f"starts at byte {offset} of its memory, and the kernel reads elements that are aligned to "
            f"{alignment} bytes: copy the tensor, or read single elements"
        )
    if checked and in_constant and offset % CONSTANT_ALIGNMENT:
        return (
            f"starts at byte {offset} of its memory: the offset of a constant buffer is a multiple of "
            f"{CONSTANT_ALIGNMENT} (Metal feature set tables)"
        )
    if checked and buffer.before + buffer.size > MAX_BUFFER_BYTES:
        return (
            f"has {buffer.before + buffer.size} bytes: a Mac with 8 GB has no buffers beyond {MAX_BUFFER_BYTES}"
            " (MTLDevice.maxBufferLength)"
        )
    return None


_ALIGNMENT = 32
"""The alignment of a number or a list: that of long4, the largest of any type."""


def _bits(value: int, width: int) -> int:
    """`value` wrapped to `width` bits, as a C cast does."""
    return value & ((1 << width) - 1)


def _bfloat16(value: float) -> int:
    (bits,) = struct.unpack("<I", struct.pack("<f", _float32(value)))
    if value != value:
        return 0x7FC0
    return int((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)


def _float32(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _float16(value: float) -> bytes:
    try:
        return struct.pack("<e", _float32(value))
    except OverflowError:
        return struct.pack("<e", float("inf") if value > 0 else float("-inf"))


_PACK_CAST: dict[str, Callable[[float], bytes]] = {
    "fp16": _float16,
    "bf16": lambda v: struct.pack("<H", _bfloat16(v)),
    "int32": lambda v: struct.pack("<I", _bits(int(v), 32)),
    "int16": lambda v: struct.pack("<H", _bits(int(v), 16)),
    "int8": lambda v: struct.pack("<B", _bits(int(v), 8)),
    "uint8": lambda v: struct.pack("<B", _bits(int(v), 8)),
}


def cast_for(arg_casts: ArgCasts, index: int) -> str:
    """The cast for argument `index`, or "".

    Raises:
        MetalRuntimeError: `arg_casts` is neither a string nor a dictionary.
    """
    if arg_casts is None:
        return ""
    if isinstance(arg_casts, str):
        return arg_casts
    if isinstance(arg_casts, Mapping):
        return arg_casts.get(index, "")
    raise MetalRuntimeError(f"arg_casts must be a string or a dictionary of {{index: string}}, not {arg_casts!r}")


def _pack(values: Sequence[int] | Sequence[float], is_int: bool, cast: str) -> bytes:
    if cast:
        pack = _PACK_CAST.get(cast)
        if pack is None:
            raise MetalRuntimeError(f"Unsupported cast instruction {cast}; use one of {', '.join(_PACK_CAST)}")
        return b"".join(map(pack, values))
    if is_int:
        try:
            return struct.pack(f"<{len(values)}q", *values)
        except struct.error:
            raise MetalRuntimeError(f"an argument does not fit into int64: {list(values)}") from None
    return struct.pack(f"<{len(values)}f", *map(_float32, values))


def bind(argument: object, index: int, arg_casts: ArgCasts, device: Device, tight: bool) -> Buffer:
    """The buffer for positional argument `index`.

    Args:
        argument: a tensor, a numpy array (device "cpu" only), a number, or a list of numbers or tensors.
        index: the argument's position, and so its buffer index.
        arg_casts: torch's `arg_casts`.
        device: the device that tensors must be on.
        tight: a tensor's memory ends at its last element, not at the end of its storage.

    Raises:
        MetalRuntimeError: torch refuses the argument, too.
    """
    torch = sys.modules.get("torch")  # a tensor cannot exist before torch is imported
    if torch is not None and isinstance(argument, torch.Tensor):
        return _bind_tensor(argument, index, device, tight)
    if isinstance(argument, int | float):
        return _bind_numbers([argument], isinstance(argument, int), index, arg_casts)
    if isinstance(argument, list | tuple):
        return _bind_list(argument, index, arg_casts, device)
    numpy = sys.modules.get("numpy")
    if device == "cpu" and numpy is not None and isinstance(argument, numpy.ndarray):
        return _bind_array(argument, index)
    raise MetalRuntimeError(f"Unsupported argument type: argument {index} is {_describe(argument)}")


def _describe(argument: object) -> str:
    return "None" if argument is None else f"a {type(argument).__name__}"


def _bind_numbers(values: Sequence[int] | Sequence[float], is_integer: bool, index: int, arg_casts: ArgCasts) -> Buffer:
    cast = cast_for(arg_casts, index)
    return replace(inline(_pack(values, is_integer, cast), index), numbers=numbers_of_value(is_integer, cast))


def inline(data: bytes, index: int) -> Buffer:
    """A buffer that holds a number or a list, as Metal passes them by value.

    Raises:
        MetalRuntimeError: it is larger than Metal's limit.
    """
    if len(data) > MAX_INLINE_BYTES:
        raise MetalRuntimeError(
            f"argument {index} takes {len(data)} bytes; Metal passes at most {MAX_INLINE_BYTES} bytes by value: "
            "use a tensor"
        )
    buffer = threadgroup_memory(len(data))
    ctypes.memmove(buffer.address, data, len(data))
    return replace(buffer, by_value=True)


def threadgroup_memory(size: int) -> Buffer:
    """Aligned memory of `size` bytes, for an argument with `[[threadgroup(n)]]`."""
    memory = ctypes.create_string_buffer(size + _ALIGNMENT)
    address = -(-ctypes.addressof(memory) // _ALIGNMENT) * _ALIGNMENT
    return Buffer(address, address, size, memory)


def _bind_list(argument: Sequence[Any], index: int, arg_casts: ArgCasts, device: Device) -> Buffer:
    if not argument:
        raise MetalRuntimeError(f"Empty list/tuple can not be an argument to metal kernel (argument {index})")
    first = argument[0]
    torch = sys.modules.get("torch")
    if isinstance(first, int):
        if not all(isinstance(v, int) for v in argument):
            raise MetalRuntimeError(f"argument {index}: a list that starts with an int must hold ints alone")
        return _bind_numbers(argument, True, index, arg_casts)
    if isinstance(first, float):
        if not all(isinstance(v, int | float) for v in argument):
            raise MetalRuntimeError(f"argument {index}: a list that starts with a float must hold numbers alone")
        return _bind_numbers(argument, False, index, arg_casts)
    if torch is not None and isinstance(first, torch.Tensor):
        bound = [_bind_tensor(t, index, device, tight=False) for t in argument]
        pointers = inline(struct.pack(f"<{len(bound)}Q", *(b.address for b in bound)), index)
        return Buffer(pointers.address, pointers.base, pointers.size, (pointers.owner, bound))
    raise MetalRuntimeError(f"Unexpected argument types: argument {index} is a list of {type(first).__name__}")


def _bind_tensor(tensor: torch.Tensor, index: int, device: Device, tight: bool) -> Buffer:
    import torch

    tensor_device = tensor.device.type
    if tensor_device == "cpu" and device == "mps":
        if tensor.dim() != 0:
            raise MetalRuntimeError(f"Passed CPU tensor to MPS op (argument {index} of shape {tuple(tensor.shape)})")
        narrowed = {torch.float64: torch.float32, torch.complex128: torch.complex64}.get(tensor.dtype, tensor.dtype)
        # torch ignores the offset and passes the first element of the storage; a converted tensor has its own storage.
        first = torch.as_strided(tensor.detach().to(narrowed), (1,), (1,), 0)
        return replace(inline(bytes(first.view(torch.uint8).tolist()), index), numbers=numbers_of_dtype(narrowed))
    if tensor_device != device:
        raise MetalRuntimeError(f"argument {index} is on {tensor_device}, and the kernel runs on {device}")
    if tensor.layout is not torch.strided:
        raise MetalRuntimeError(f"argument {index} has the layout {tensor.layout}; a kernel takes strided tensors")
    storage = tensor.untyped_storage()
    try:
        base = storage.data_ptr()
    except RuntimeError:
        base = 0
    size = storage.nbytes()
    if not base and size:
        raise MetalRuntimeError(
            f"argument {index} is a {type(tensor).__name__} without memory: launch the kernel in an operator of "
            "torch.library, into which torch.compile does not trace"
        )
    offset = int(tensor.storage_offset()) * tensor.element_size()
    numbers = numbers_of_dtype(tensor.dtype)
    if tight:
        last = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True)) if tensor.numel() else -1
        size = (last + 1) * tensor.element_size()
        return Buffer(base + offset, base + offset, size, tensor, numbers, before=offset)
    return Buffer(base + offset, base, size, tensor, numbers)


def _bind_array(array: np.ndarray[Any, Any], index: int) -> Buffer:
    if not array.flags.c_contiguous or not array.flags.writeable:
        raise MetalRuntimeError(f"argument {index}: a numpy array must be contiguous and writable")
    address = array.ctypes.data
    return Buffer(address, address, array.nbytes, array, numbers_of_dtype(array.dtype))
