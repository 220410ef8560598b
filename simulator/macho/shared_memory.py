"""Memory that this process and the process of a release's libraries map at the same address, and tensors in it."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import MachOError

# Far from what the system and qemu choose themselves.
_FIRST_ADDRESS = 0x3000_0000_0000
_BYTES, _FOR_ARGUMENTS = 1 << 33, 1 << 31
_ALIGNMENT = 256
_ZEROS_BEHIND = 4096
_MAP_NORESERVE, _MAP_FIXED_NOREPLACE = 0x4000, 0x100000
# By torch's number.
_DTYPE_NAMES = """
uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool qint8 quint8 qint32 bfloat16
quint4x2 quint2x4 bits1x8 bits2x4 bits4x2 bits8 bits16 float8_e5m2 float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz uint16
uint32 uint64
"""
DTYPES = tuple(_DTYPE_NAMES.split())
_LAYOUTS = ("strided", "sparse_coo", "sparse_csr")
_FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")


class SharedMemory:
    """A range of addresses that this process shares with one other. Pages are allocated when they are first used.

    Raises MachOError if the system does not provide it.
    """

    _next = _FIRST_ADDRESS

    def __init__(self) -> None:
        self.file = os.memfd_create("mpsmith")
        os.ftruncate(self.file, _BYTES)
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.mmap.restype = ctypes.c_void_p
        self.address = SharedMemory._next
        SharedMemory._next += 2 * _BYTES
        flags = mmap.MAP_SHARED | _MAP_NORESERVE | _MAP_FIXED_NOREPLACE
        mapped = self._libc.mmap(
            ctypes.c_void_p(self.address),
            ctypes.c_size_t(_BYTES),
            mmap.PROT_READ | mmap.PROT_WRITE,
            flags,
            self.file,
            ctypes.c_int64(0),
        )
        if mapped != self.address:
            raise MachOError(f"no memory can be shared at {self.address:#x}: {os.strerror(ctypes.get_errno())}")
        self._used = 0
        self._most_used = 0  # since the last release
        self._placed: dict[tuple[bool, int], tuple[int, Any]] = {}  # address there, storage here

    @property
    def environment(self) -> dict[str, str]:
        """The variable that describes the memory to the other process, which has to inherit `file`."""
        return {"MPSMITH_SHARED_MEMORY": f"{self.file} {self.address} {_BYTES} {_FOR_ARGUMENTS}"}

    def close(self) -> None:
        """Unmap the memory; no tensor over it may be used afterwards."""
        if self.file >= 0:
            self._libc.munmap(ctypes.c_void_p(self.address), ctypes.c_size_t(_BYTES))
            os.close(self.file)
            self.file = -1

    def take_back(self) -> None:
        """Copy the arguments' memory, which a call may have changed, back to the original tensors."""
        for address, storage in self._placed.values():
            ctypes.memmove(storage.data_ptr(), address, storage.nbytes())

    def forget_arguments(self) -> None:
        """Forget the arguments of a call, which keep their tensors' memory allocated as long as they are known."""
        self._most_used = max(self._most_used, self._used)
        self._used = 0
        self._placed.clear()

    def release(self, ranges: Iterable[Sequence[int]]) -> None:
        """Give the pages of earlier arguments and of these ranges (address, bytes) back to the system: they are zero.

        Raises MachOError if the system refuses.
        """
        for address, size in ((self.address, -(-self._most_used // mmap.PAGESIZE) * mmap.PAGESIZE), *ranges):
            if size and self._libc.madvise(ctypes.c_void_p(address), ctypes.c_size_t(size), mmap.MADV_REMOVE):
                raise MachOError(f"shared memory at {address:#x} is not released: {os.strerror(ctypes.get_errno())}")
        self._most_used = 0

    def place(self, value: Any) -> Any:
        """An argument in the driver's form: tensors' memory is copied once; dtypes and so on become numbers.

        Raises MachOError for an argument that cannot be sent.
        """
        import torch

        if isinstance(value, torch.Tensor):
            return self._placed_tensor(value)
        if isinstance(value, (list, tuple)):
            return [self.place(element) for element in value]
        if isinstance(value, torch.dtype):
            return DTYPES.index(str(value).removeprefix("torch."))
        if isinstance(value, torch.layout):
            return _LAYOUTS.index(str(value).removeprefix("torch."))
        if isinstance(value, torch.memory_format):
            return _FORMATS.index(str(value).removeprefix("torch."))
        if isinstance(value, torch.device):
            return str(value)
        if isinstance(value, torch.Generator) and value.device.type == "mps":
            return None  # its state is sent
        if value is None or isinstance(value, (bool, int, float, complex, str)):
            return value
        raise MachOError(f"an argument of type {type(value).__name__} cannot be sent to the release's process")

    def _placed_tensor(self, tensor: Any) -> tuple[object, ...]:
        import torch

        if tensor.layout is not torch.strided or tensor._is_zerotensor():
            raise MachOError(
                f"a {tensor.layout} tensor, or one without memory, cannot be sent to the release's process"
            )
        storage = tensor.untyped_storage()
        on_mps, size, source = tensor.device.type == "mps", storage.nbytes(), storage.data_ptr()
        key = on_mps, source if size else storage._cdata  # the empty memory of two tensors grows apart
        if key not in self._placed:
            if self._used + size > _FOR_ARGUMENTS:
                raise MachOError(f"the arguments take more than the {_FOR_ARGUMENTS >> 20} MiB that are shared")
            self._placed[key] = self.address + self._used, storage
            ctypes.memmove(self._placed[key][0], source, size)
            taken = (size + _ZEROS_BEHIND) // _ALIGNMENT * _ALIGNMENT
            ctypes.memset(self._placed[key][0] + size, 0, taken - size)  # kernels may read further
            self._used += taken
        dtype = DTYPES.index(str(tensor.dtype).removeprefix("torch."))
        place = int(on_mps), self._placed[key][0], size, dtype, tensor.storage_offset()
        return *place, list(tensor.shape), list(tensor.stride()), tensor.is_conj(), tensor.is_neg()


def tensors(value: Any) -> Any:
    """CPU tensors over shared memory from the driver's descriptions, also in lists; other values are unchanged."""
    import torch

    if isinstance(value, list):
        return [tensors(element) for element in value]
    if not isinstance(value, tuple):
        return value
    _, address, size, dtype, offset, shape, stride, *_ = value
    memory = torch._C._construct_storage_from_data_pointer(address, torch.device("cpu"), size)
    return torch.empty(0, dtype=torch_dtype(dtype), device="cpu").set_(memory, offset, shape, stride)


def torch_dtype(number: int) -> Any:
    """The dtype with torch's number for it."""
    import torch

    return getattr(torch, DTYPES[number])


def pickled(value: Any) -> bytes:
    """A placed argument as a pickle for torch's C++: integers take 8 bytes, which Python's own pickles shorten."""
    return b"\x80\x02" + _pickled(value) + b"."


def _pickled(value: Any) -> bytes:
    if value is None:
        return b"N"
    if isinstance(value, bool):
        return b"\x88" if value else b"\x89"
    if isinstance(value, int):
        return b"\x8a\x08" + struct.pack("<q", value)
    if isinstance(value, float):
        return b"G" + struct.pack(">d", value)
    if isinstance(value, complex):
        return b"cbuiltins\ncomplex\n" + _pickled((value.real, value.imag)) + b"R"
    if isinstance(value, str):
        return b"X" + struct.pack("<I", len(value.encode())) + value.encode()
    elements = b"(" + b"".join(map(_pickled, value))
    return elements + b"t" if isinstance(value, tuple) else b"]" + elements + b"e"
