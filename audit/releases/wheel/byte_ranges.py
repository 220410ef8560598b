"""Ranges of bytes of a large file: from memory in any order, or from a stream in ascending order.

A shared library inside a wheel is one deflated zip member, so its end can be reached only by inflating all of it.
Asking for ranges in ascending order lets the reader hold only what it needs.
"""

from __future__ import annotations

import mmap
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol

from .errors import MalformedBinaryError, WheelError

CHUNK = 1 << 20


class ByteRanges(Protocol):
    """A file of `size` bytes from which ranges are taken in ascending order."""

    size: int

    def take(self, offset: int, size: int) -> memoryview:
        """The bytes from `offset` on, read-only. Raises MalformedBinaryError for a range outside the file."""
        ...

    def finish(self) -> None:
        """Read the rest of the file, so that its checksum is verified."""
        ...


def check_range(offset: int, size: int, total: int) -> None:
    """Raise MalformedBinaryError unless the range lies inside a file of `total` bytes."""
    if offset < 0 or size < 0 or offset + size > total:
        raise MalformedBinaryError(f"the binary refers to bytes {offset} to {offset + size}, but it has {total}")


class StreamRanges:
    """Ranges of a stream that can only be read forward. The bytes between them are read and dropped."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        self.size = size
        self._stream = stream
        self._position = 0

    def take(self, offset: int, size: int) -> memoryview:
        """See ByteRanges.take. Also raises MalformedBinaryError for a range that begins before the last one ended."""
        check_range(offset, size, self.size)
        if offset < self._position:
            raise MalformedBinaryError(f"two parts of the binary overlap at byte {offset}")
        self._skip(offset - self._position)
        buffer = bytearray(size)
        view = memoryview(buffer)
        filled = 0
        while filled < size:
            chunk = self._read(min(CHUNK, size - filled))
            view[filled : filled + len(chunk)] = chunk
            filled += len(chunk)
        return view.toreadonly()

    def finish(self) -> None:
        """Read to the end of the stream; the zip reader compares the checksum there."""
        self._skip(self.size - self._position)
        if self._stream.read(1):
            raise WheelError("the zip member is longer than its entry says")

    def _skip(self, count: int) -> None:
        while count:
            count -= len(self._read(min(CHUNK, count)))

    def _read(self, count: int) -> bytes:
        chunk = self._stream.read(count)
        if not chunk:
            raise MalformedBinaryError(f"the binary ends after {self._position} bytes, {self.size} were announced")
        self._position += len(chunk)
        return chunk


class MemoryRanges:
    """Ranges of bytes in memory."""

    def __init__(self, data: bytes | mmap.mmap) -> None:
        self._view = memoryview(data)
        self.size = len(self._view)

    def take(self, offset: int, size: int) -> memoryview:
        """See ByteRanges.take; ranges may come in any order. Nothing is copied."""
        check_range(offset, size, self.size)
        return self._view[offset : offset + size]

    def finish(self) -> None:
        """Bytes in memory have no checksum to verify."""


class MappedRanges(MemoryRanges):
    """Ranges of a file on disk, mapped into memory: pages that are not used are not read."""

    def __init__(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                super().__init__(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except (OSError, ValueError) as error:
            raise WheelError(f"cannot read {path}: {error}") from None

    def __enter__(self) -> MappedRanges:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Views that the caller still holds keep the mapping open until they are gone; closing it then raises.
        self._view.release()
