"""What a kernel reads and writes, in the GPU's memory: tensors where they are, copies of what the host has."""

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
"""On the GPU, by buffer index."""

_ALIGNMENT = 256
_WORD = 4
_ZERO = ctypes.create_string_buffer(_WORD)
_ARENA_BYTES = 8 << 20


class Constants:
    """Numbers and lists that launches pass by value. Sizes and strides come again: each is copied to the GPU once."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._kept: dict[bytes, int] = {}
        self._arena = 0
        self._used = 0

    def address(self, buffer: Buffer) -> int:
        """Where the bytes of a buffer of the host stand on the GPU; no kernel may write there."""
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
            # Work under way on any stream may still read the old arena: it is left to it.
            self._kept.clear()
            self._arena, self._used = self._driver.allocate(_ARENA_BYTES), 0
        address = self._arena + self._used
        self._used += padded
        return address


@contextlib.contextmanager
def copies(driver: Driver, buffers: Mapping[int, Buffer], written: Iterable[int]) -> Iterator[Addresses]:
    """Inside, the host's memory of these buffers has a copy on the GPU; what was written comes back at the end.

    Each copy is an allocation of its size in whole words, so that compute-sanitizer sees an access beyond it. Buffers
    that overlap share one. A list of tensors is a buffer of their addresses, which become those of copies.
    """
    lists = {index: pointees for index, buffer in buffers.items() if (pointees := _pointees(buffer))}
    behind = dict(enumerate(itertools.chain(*lists.values()), start=1 + max(buffers, default=0)))
    plain = {index: buffer for index, buffer in buffers.items() if index not in lists}
    placed: list[_Copy] = []
    tables: list[int] = []
    try:
        # Whatever a kernel finds behind a pointer it may write.
        for begin, size, _, writable in merged_regions({**plain, **behind}, {*written, *behind}):
            # In whole words: Metal adds to a narrow element by exchanging the 32 bits that it stands in.
            words = -(-size // _WORD) * _WORD
            placed.append(_Copy(begin, size, driver.allocate(words), writable))
            if words > size:
                driver.upload(placed[-1].address + words - _WORD, ctypes.addressof(_ZERO), _WORD)
            driver.upload(placed[-1].address, begin, size)
        addresses = {index: _translated(placed, buffer.address) for index, buffer in plain.items()}
        for index, pointees in lists.items():
            table = (ctypes.c_uint64 * len(pointees))(*(_translated(placed, each.address) for each in pointees))
            addresses[index] = driver.allocate(ctypes.sizeof(table))
            tables.append(addresses[index])
            driver.upload(addresses[index], ctypes.addressof(table), ctypes.sizeof(table))
        yield addresses
        for copy in placed:
            if copy.writable:
                driver.download(copy.begin, copy.address, copy.size)
    finally:
        for address in [*(copy.address for copy in placed), *tables]:
            driver.free(address)


@dataclass(frozen=True)
class _Copy:
    """Memory of the host from `begin` on, and where it stands on the GPU."""

    begin: int
    size: int
    address: int
    writable: bool


def _pointees(buffer: Buffer) -> Sequence[Buffer]:
    """The tensors of a list that is bound as their addresses (simulator/metal/binding.py)."""
    owner = buffer.owner
    return owner[1] if isinstance(owner, tuple) else ()


def _translated(placed: Sequence[_Copy], address: int) -> int:
    """Where on the GPU an address of the host has its copy; a tensor without elements may be behind one."""
    for inclusive in (0, 1):
        for copy in placed:
            if copy.begin <= address < copy.begin + copy.size + inclusive:
                return copy.address + address - copy.begin
    return 0
