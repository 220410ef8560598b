"""Records launches of shipped kernels on the host, to replay them on an NVIDIA GPU and compare the results.

A recording holds all memory that a launch reads, and the host's results in memory that it may write.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ...metal_limits import MAX_THREADGROUP_MEMORY
from ..air.binding import BoundArguments, bind
from ..air.library import AirKernel
from ..air.signature import KernelSignature
from ..errors import NvidiaError
from ..metal.binding import Buffer
from ..metal.regions import merged_regions
from .air_compiler import AirCode
from .driver import Driver, LoadedFunction, Size, parameters
from .entry_point import ENTRY
from .launching import launches

_SHARED_ALIGNMENT = 16


@dataclass(frozen=True)
class RecordedRegion:
    """Memory of one launch.

    Attributes:
        before: its bytes when the launch began.
        after: its bytes after the host's run; None if the kernel may not write to it.
        type_name: the Metal type of its elements.
    """

    before: bytes
    after: bytes | None
    type_name: str


@dataclass(frozen=True)
class Pointer:
    """An address in a region that points into another region, and is translated on the GPU."""

    region: int
    offset: int
    target: int
    inside: int


@dataclass(frozen=True)
class RecordedLaunch:
    """A launch; `places` has the region and the offset of each buffer, by index."""

    kernel: str
    grid: Size
    group: Size
    threadgroup_memory: tuple[int, ...]
    regions: tuple[RecordedRegion, ...]
    places: Mapping[int, tuple[int, int]]
    pointers: tuple[Pointer, ...]


@contextmanager
def recorded(
    keep: Callable[[RecordedLaunch, AirKernel], None], wanted: Callable[[str], bool], limit: int
) -> Iterator[None]:
    """Pass launches of the kernels that `wanted` accepts, with at most `limit` bytes of memory, to `keep`."""
    original = AirKernel.prepare

    @functools.wraps(original)
    def prepare(
        self: AirKernel,
        arguments: Mapping[str, object],
        threads: Sequence[int],
        group: Sequence[int],
        threadgroup_memory: Sequence[int] = (),
    ) -> Callable[[], None]:
        run = original(self, arguments, threads, group, threadgroup_memory)
        if not wanted(self.signature.name):
            return run
        bound = bind(self.signature, arguments)

        def run_and_record() -> None:
            memory = _Memory(self.signature, bound)
            if memory.size > limit:
                return run()
            before = memory.snapshot()
            run()
            x, y, z = [*threads, 1, 1][:3]
            group_x, group_y, group_z = [*group, 1, 1][:3]
            grid, size = (x, y, z), (group_x, group_y, group_z)
            keep(memory.recording(grid, size, tuple(threadgroup_memory), before), self)

        return run_and_record

    AirKernel.prepare = prepare  # type: ignore[method-assign]
    try:
        yield
    finally:
        AirKernel.prepare = original  # type: ignore[method-assign]


class _Memory:
    """The memory of a launch: regions of host memory, and the offsets of its buffers."""

    def __init__(self, signature: KernelSignature, bound: BoundArguments) -> None:
        self._signature = signature
        self._bound = bound
        behind = dict(enumerate(bound.pointed_at, start=1 + max(bound.buffers, default=0)))
        written = {argument.index for argument in signature.buffers if argument.writable} | set(behind)
        self._regions = merged_regions({**bound.buffers, **behind}, written)

    @property
    def size(self) -> int:
        """Bytes of all regions."""
        return sum(size for _, size, _, _ in self._regions)

    def snapshot(self) -> list[bytes]:
        """The current contents of the regions."""
        return [ctypes.string_at(begin, size) for begin, size, _, _ in self._regions]

    def recording(
        self, grid: Size, group: Size, threadgroup_memory: tuple[int, ...], before: list[bytes]
    ) -> RecordedLaunch:
        """The recording of the launch that has just run."""
        types = {argument.index: argument.type_name for argument in self._signature.buffers}
        regions = tuple(
            RecordedRegion(old, new if writable else None, types.get(self._typed(begin, size, first), ""))
            for (begin, size, first, writable), old, new in zip(self._regions, before, self.snapshot(), strict=True)
        )
        places = {index: self._place(buffer.address) for index, buffer in self._bound.buffers.items()}
        pointers = tuple(self._pointers(places))
        name = self._signature.name
        return RecordedLaunch(name, grid, group, threadgroup_memory, regions, places, pointers)

    def _typed(self, begin: int, size: int, first: int) -> int:
        """The index of a writable buffer in a region, or of the first."""
        writable = {argument.index for argument in self._signature.buffers if argument.writable}
        inside = (i for i, b in self._bound.buffers.items() if begin <= b.address <= begin + size and i in writable)
        return next(inside, first)

    def _place(self, address: int) -> tuple[int, int]:
        for inclusive in (0, 1):
            for number, (begin, size, _, _) in enumerate(self._regions):
                if begin <= address < begin + size + inclusive:
                    return number, address - begin
        raise NvidiaError("a buffer is outside of all regions")

    def _pointers(self, places: Mapping[int, tuple[int, int]]) -> Iterator[Pointer]:
        targets = {buffer.address: self._place(buffer.address) for buffer in self._bound.pointed_at}
        for index, buffer in self._bound.buffers.items() if targets else ():
            if _is_inline(buffer):
                region, start = places[index]
                for offset in range(0, buffer.available - 7, 8):
                    address = int.from_bytes(ctypes.string_at(buffer.address + offset, 8), "little")
                    if address in targets:
                        yield Pointer(region, start + offset, *targets[address])


def _is_inline(buffer: Buffer) -> bool:
    return not hasattr(buffer.owner, "untyped_storage")


class LaunchReplay:
    """A recording in the GPU's memory, which can be launched repeatedly; `close` frees the memory.

    Raises:
        NvidiaError: the driver refuses the PTX, or the GPU has too little memory.
    """

    def __init__(self, driver: Driver, code: AirCode, recording: RecordedLaunch) -> None:
        self._driver = driver
        self._code = code
        self._recording = recording
        self._function = self._loaded()
        self._addresses: list[int] = []
        for region in recording.regions:
            self._addresses.append(driver.allocate(len(region.before)))
        for number, address in enumerate(self._addresses):
            _upload(driver, address, self._content(number))

    def launch(self, stream: int = 0) -> None:
        """Launch the kernel.

        Raises:
            NvidiaError: it needs more threadgroup memory than Metal has, or the driver refuses the launch.
        """
        recording, code = self._recording, self._code
        lengths = [-(-size // _SHARED_ALIGNMENT) * _SHARED_ALIGNMENT for size in recording.threadgroup_memory]
        if sum(lengths) > MAX_THREADGROUP_MEMORY:
            raise NvidiaError(f"{sum(lengths)} bytes of threadgroup memory; the limit is {MAX_THREADGROUP_MEMORY}")
        starts = [sum(lengths[:number]) for number in range(len(lengths))]
        order = [sorted(code.threadgroup_slots).index(slot) for slot in code.threadgroup_slots]
        places = (recording.places.get(slot) for slot in code.slots)
        pointers = [self._addresses[place[0]] + place[1] if place else 0 for place in places]
        for launch in launches(recording.grid, recording.group, cut=code.waits):
            values = parameters(pointers, [*launch.numbers, *(starts[i] for i in order)])
            self._driver.launch(self._function, launch.groups, launch.group, sum(lengths), stream, values)

    def results(self) -> list[bytes]:
        """Wait for all launches; returns the contents of the regions."""
        self._driver.wait()
        regions = zip(self._recording.regions, self._addresses, strict=True)
        return [_download(self._driver, address, len(region.before)) for region, address in regions]

    def close(self) -> None:
        """Free the memory."""
        for address in self._addresses:
            self._driver.free(address)
        self._addresses.clear()

    def _loaded(self) -> LoadedFunction:
        group = self._recording.group
        function = self._driver.load(self._code.ptx, ENTRY)
        if group[0] * group[1] * group[2] <= function.max_threads:
            return function
        return self._driver.load(self._code.ptx, ENTRY, self._code.max_threads)

    def _content(self, number: int) -> bytes:
        data = bytearray(self._recording.regions[number].before)
        for pointer in self._recording.pointers:
            if pointer.region == number:
                there = self._addresses[pointer.target] + pointer.inside
                data[pointer.offset : pointer.offset + 8] = there.to_bytes(8, "little")
        return bytes(data)


def _upload(driver: Driver, address: int, data: bytes) -> None:
    memory: Any = ctypes.create_string_buffer(data, len(data))
    driver.upload(address, ctypes.addressof(memory), len(data))


def _download(driver: Driver, address: int, size: int) -> bytes:
    memory: Any = ctypes.create_string_buffer(max(size, 1))
    driver.download(ctypes.addressof(memory), address, size)
    return bytes(memory.raw[:size])
