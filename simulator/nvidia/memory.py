"""The memory of kernels on the GPU: copies of host buffers, and constants."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..metal.binding import Buffer
from ..metal.regions import merged_regions
from .driver import Driver

Addresses = Mapping[int, int]
"""Addresses on the GPU, by buffer index."""

_ALIGNMENT = 256
_WORD = 4
_ZERO = ctypes.create_string_buffer(_WORD)
_ARENA_BYTES = 8 << 20


class Constants:
    """Numbers and lists that launches pass by value. Sizes and strides repeat, so each is copied to the GPU once."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._kept: dict[bytes, int] = {}
        self._arena = 0
        self._used = 0

    def address(self, buffer: Buffer) -> int:
        """The GPU address of a copy of a host buffer, which no kernel may write to."""
        data = ctypes.string_at(buffer.address, buffer.available)
        address = self._kept.get(data)
        if address is None:
            address = self._room(len(data))
            self._driver.upload(address, buffer.address, len(data))
            self._kept[data] = address
        return address

    def _room(self, size: int) -> int:
        padded = -(-size // _ALIGNMENT) * _ALIGNMENT
        if not self._arena:
            self._arena = self._driver.allocate(_ARENA_BYTES)
        if self._used + padded > _ARENA_BYTES:
            # Pending launches on any stream may still read the old arena, so it is not freed.
            self._kept.clear()
            self._arena, self._used = self._driver.allocate(_ARENA_BYTES), 0
        address = self._arena + self._used
        self._used += padded
        return address


@contextlib.contextmanager
def copies(driver: Driver, buffers: Mapping[int, Buffer], written: Iterable[int]) -> Iterator[Addresses]:
    """Copies host buffers to the GPU on entry, and written ones back on exit.

    Each copy is a separate allocation, rounded up to words, so that compute-sanitizer detects accesses out of bounds.
    Overlapping buffers share one. A list of tensors is a buffer of addresses, which are translated.
    """
    lists = {index: pointees for index, buffer in buffers.items() if (pointees := _pointees(buffer))}
    behind = dict(enumerate(itertools.chain(*lists.values()), start=1 + max(buffers, default=0)))
    plain = {index: buffer for index, buffer in buffers.items() if index not in lists}
    copied: list[_Copy] = []
    tables: list[int] = []
    try:
        # A kernel may write to memory behind pointers.
        for begin, size, _, writable in merged_regions({**plain, **behind}, {*written, *behind}):
            # In words: Metal's atomics on narrow elements exchange the 32 bits around them.
            words = -(-size // _WORD) * _WORD
            copied.append(_Copy(begin, size, driver.allocate(words), writable))
            if words > size:
                driver.upload(copied[-1].address + words - _WORD, ctypes.addressof(_ZERO), _WORD)
            driver.upload(copied[-1].address, begin, size)
        addresses = {index: _translated(copied, buffer.address) for index, buffer in plain.items()}
        for index, pointees in lists.items():
            table = (ctypes.c_uint64 * len(pointees))(*(_translated(copied, pointee.address) for pointee in pointees))
            addresses[index] = driver.allocate(ctypes.sizeof(table))
            tables.append(addresses[index])
            driver.upload(addresses[index], ctypes.addressof(table), ctypes.sizeof(table))
        yield addresses
        for copy in copied:
            if copy.writable:
                driver.download(copy.begin, copy.address, copy.size)
    finally:
        for address in [*(copy.address for copy in copied), *tables]:
            driver.free(address)


@dataclass(frozen=True)
class _Copy:
    """Host memory from `begin` on, and its address on the GPU."""

    begin: int
    size: int
    address: int
    writable: bool


def _pointees(buffer: Buffer) -> Sequence[Buffer]:
    """The tensors of a list argument (simulator/metal/binding.py)."""
    owner = buffer.owner
    return owner[1] if isinstance(owner, tuple) else ()


def _translated(copied: Sequence[_Copy], address: int) -> int:
    """The GPU address of the copy of a host address; an empty tensor may be at the end of a copy."""
    for inclusive in (0, 1):
        for copy in copied:
            if copy.begin <= address < copy.begin + copy.size + inclusive:
                return copy.address + address - copy.begin
    return 0
