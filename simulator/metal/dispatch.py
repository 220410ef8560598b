"""Runs a built kernel through the C++ runtime, with the ctypes structures that both share."""

from __future__ import annotations

import ctypes
import functools
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from ..clang import CompilerMissingError
from .compiler import MetalCompiler
from .element_types import PARAMETER_NUMBERS, Numbers
from .entries import FIRST_THREADGROUP_SLOT
from .line_table import LineTable

Order = Literal["forward", "reverse", "random"]
_ORDERS: dict[Order, int] = {"forward": 0, "reverse": 1, "random": 2}
_MESSAGE_BYTES = 8192
_SHOWN_MESSAGES = 4
_PLACE = re.compile(r"@([0-9a-f]+)")
# Calls that need a stack for each thread, or the index of the running one.
_WAITS = (b"msl_threadgroup_barrier", b"msl_simdgroup_barrier", b"msl_exchange", b"msl_region_leave", b"msl_here")


class Region(ctypes.Structure):
    """Memory that a kernel may touch (struct Region of runtime.h)."""

    _fields_ = (
        ("source", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("guarded", ctypes.c_uint64),
        ("argument", ctypes.c_uint32),
        ("writable", ctypes.c_uint32),
        ("threadgroup", ctypes.c_uint32),
    )


class _LaneRead(ctypes.Structure):
    _fields_ = (("place", ctypes.c_uint64), ("operation", ctypes.c_char_p))


class _Dispatch(ctypes.Structure):
    """One call (struct Dispatch of runtime.h)."""

    _fields_ = (
        ("kernel", ctypes.c_void_p),
        ("grid", ctypes.c_uint32 * 3),
        ("group", ctypes.c_uint32 * 3),
        ("blocking", ctypes.c_uint32),
        ("one_by_one", ctypes.c_uint32),
        ("checked", ctypes.c_uint32),
        ("order", ctypes.c_uint32),
        ("seed", ctypes.c_uint64),
        ("arguments", ctypes.c_void_p),
        ("argument_count", ctypes.c_uint32),
        ("region_count", ctypes.c_uint32),
        ("regions", ctypes.c_void_p),
        ("shared", ctypes.c_void_p),
        ("shared_size", ctypes.c_uint64),
        ("variables", ctypes.c_void_p),
        ("variable_count", ctypes.c_uint64),
        ("message", ctypes.c_void_p),
        ("message_size", ctypes.c_uint64),
        ("flush_denormals", ctypes.c_uint32),
        ("refuse_unwritten", ctypes.c_uint32),
        ("returned_arrive", ctypes.c_uint32),
        ("error_count", ctypes.c_uint32),
        ("place_count", ctypes.c_uint32),
        ("places", ctypes.c_uint64 * 16),
        ("inactive_fill", ctypes.c_uint32),
        ("lane_read_count", ctypes.c_uint32),
        ("lane_reads", _LaneRead * 8),
    )


class _ParameterRow(ctypes.Structure):
    _fields_ = (
        ("index", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("numbers", ctypes.c_uint32),
        ("writable", ctypes.c_uint32),
        ("alignment", ctypes.c_uint32),
    )


class _Sections(ctypes.Structure):
    _fields_ = (
        ("shared_begin", ctypes.c_uint64),
        ("shared_end", ctypes.c_uint64),
        ("variables_begin", ctypes.c_uint64),
        ("variables_end", ctypes.c_uint64),
    )


@dataclass(frozen=True)
class KernelParameter:
    """A buffer parameter.

    Attributes:
        index: of the buffer.
        size: bytes of a reference; 0 for a pointer.
        numbers: the element type.
        writable: whether the kernel may write.
        alignment: bytes that the address of an element is a multiple of.
    """

    index: int
    size: int
    numbers: Numbers
    writable: bool
    alignment: int


@dataclass(frozen=True)
class LoadedKernel:
    """The machine code of a kernel, and its properties."""

    address: int
    blocking: bool
    uses_atomics: bool
    checked: bool
    reads_lanes: bool  # an operation of its checked build may read an inactive lane
    parameters: dict[int, KernelParameter]
    shared_address: int
    shared_size: int
    variables_address: int
    variable_count: int
    library: ctypes.CDLL
    content: bytes

    @functools.cached_property
    def lines(self) -> LineTable:
        """Maps instructions to source lines; only checked builds have it."""
        return LineTable(self.content)


def load_kernel(path: str, content: bytes, symbol: str, checked: bool) -> LoadedKernel:
    """Loads a built kernel. The runtime must be loaded."""
    library = ctypes.CDLL(path)
    count = ctypes.c_uint32()
    table = getattr(library, f"msl_parameters_{symbol}")
    table.restype = ctypes.POINTER(_ParameterRow)
    rows = table(ctypes.byref(count))
    parameters = {
        row.index: KernelParameter(
            row.index, row.size, PARAMETER_NUMBERS[row.numbers], bool(row.writable), row.alignment
        )
        for row in rows[: count.value]
    }
    sections = _Sections()
    getattr(library, f"msl_sections_{symbol}")(ctypes.byref(sections))
    address = ctypes.cast(getattr(library, f"msl_run_{symbol}"), ctypes.c_void_p).value
    assert address is not None
    return LoadedKernel(
        address=address,
        blocking=any(name in content for name in _WAITS),
        uses_atomics=b"msl_atomic_note" in content,
        checked=checked,
        reads_lanes=b"msl_inactive_read" in content,
        parameters=parameters,
        shared_address=sections.shared_begin,
        shared_size=sections.shared_end - sections.shared_begin,
        variables_address=sections.variables_begin,
        variable_count=(sections.variables_end - sections.variables_begin) // 24,
        library=library,
        content=content if checked else b"",
    )


@dataclass(frozen=True)
class GridLaunch:
    """The arguments of a run: grid and group in threads, addresses by slot, memory to guard."""

    grid: tuple[int, int, int]
    group: tuple[int, int, int]
    addresses: Sequence[int]  # by buffer index, 0 if nothing is bound
    regions: Sequence[tuple[int, int, int, bool]]  # address, bytes, first argument, writable
    order: Order = "forward"
    seed: int = 0
    one_by_one: bool = False
    flush_denormals: bool = False
    refuse_unwritten: bool = False  # checked builds: a load of unwritten threadgroup memory is an error
    returned_arrive: bool = False  # threads that have returned count as arrived at a barrier
    inactive_fill: int = 0  # each byte of the value of an inactive lane


@dataclass(frozen=True)
class RunReport:
    """The result of a run: its errors, and (in checked builds) its reads of inactive lanes.

    Attributes:
        errors: one a line.
        lane_reads: such as "simd_shuffle_down reads an inactive lane (reduce.metal:12)".
    """

    errors: list[str] = field(default_factory=list)
    lane_reads: list[str] = field(default_factory=list)


class Runtime:
    """The C++ runtime. One dispatch runs at a time in the process, without the GIL."""

    def __init__(self, path: str) -> None:
        try:
            ctypes.CDLL("libm.so.6", mode=ctypes.RTLD_GLOBAL)  # kernels call sinf and friends
            library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            raise CompilerMissingError(f"the runtime of the Metal simulator needs Linux with glibc: {error}") from error
        self._dispatch = library.msl_dispatch
        self._dispatch.argtypes = (ctypes.c_void_p,)
        self._dispatch.restype = None
        self._message = ctypes.create_string_buffer(_MESSAGE_BYTES)
        self._lock = threading.Lock()  # protects the state of the runtime and the message

    def run(self, kernel: LoadedKernel, launch: GridLaunch) -> list[str]:
        """Run the kernel; returns its errors, one a line. With errors, guarded memory does not change."""
        return self.report(kernel, launch).errors

    def report(self, kernel: LoadedKernel, launch: GridLaunch) -> RunReport:
        """Run the kernel; returns its errors and its reads of inactive lanes."""
        report = self._run(kernel, launch)
        errors = report.errors
        if errors and not launch.one_by_one and launch.regions and "a thread of" in errors[0]:
            # The caller's memory is unchanged: run again, slowly, to find the thread.
            again = self._run(kernel, replace(launch, one_by_one=True))
            return again if again.errors else report
        return report

    def _run(self, kernel: LoadedKernel, launch: GridLaunch) -> RunReport:
        addresses = (ctypes.c_uint64 * len(launch.addresses))(*launch.addresses)
        count = len(launch.regions)
        regions = (Region * max(count, 1))(
            *(Region(a, n, 0, index, w, index >= FIRST_THREADGROUP_SLOT) for a, n, index, w in launch.regions)
        )
        call = _Dispatch(
            kernel=kernel.address,
            grid=launch.grid,
            group=launch.group,
            blocking=kernel.blocking,
            one_by_one=launch.one_by_one,
            checked=kernel.checked,
            order=_ORDERS[launch.order],
            seed=launch.seed,
            arguments=ctypes.addressof(addresses),
            argument_count=len(launch.addresses),
            region_count=count,
            regions=ctypes.addressof(regions),
            shared=kernel.shared_address,
            shared_size=kernel.shared_size,
            variables=kernel.variables_address,
            variable_count=kernel.variable_count,
            message=ctypes.addressof(self._message),
            message_size=_MESSAGE_BYTES,
            flush_denormals=launch.flush_denormals,
            refuse_unwritten=launch.refuse_unwritten,
            returned_arrive=launch.returned_arrive,
            inactive_fill=launch.inactive_fill,
        )
        with self._lock:
            self._dispatch(ctypes.addressof(call))
            messages = self._message.value.decode(errors="replace").split("\n") if call.error_count else []
        errors = _summary(kernel, messages, list(call.places), call.error_count) if messages else []
        reads = [
            f"{read.operation.decode()} reads an inactive lane{_line(kernel, read.place)}"
            for read in call.lane_reads[: call.lane_read_count]
        ]
        return RunReport(errors, reads)


def _line(kernel: LoadedKernel, place: int) -> str:
    location = kernel.lines.locate(place)
    return f" ({location.file}:{location.line})" if location else ""


def _summary(kernel: LoadedKernel, messages: list[str], places: list[int], count: int) -> list[str]:
    """One message for each source line: most errors occur in all threads."""
    by_place: dict[object, str] = {}
    for message, place in zip(messages, places, strict=False):
        location = kernel.lines.locate(place) if place and kernel.content else None
        message = _PLACE.sub(lambda match: _line(kernel, int(match[1], 16)), message)
        text = f"{message}, at {location.file}:{location.line}" if location else message
        by_place.setdefault(location or message, text)
    shown = list(by_place.values())[:_SHOWN_MESSAGES]
    more = count - len(shown)
    return [*shown, f"and {more} more of the kind"] if more else shown


@functools.cache
def runtime_of(compiler: MetalCompiler) -> Runtime:
    """The runtime, built on first use and loaded once."""
    return Runtime(str(compiler.runtime))
