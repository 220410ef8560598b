"""Connects the simulated Metal framework to `simulator.metal`, which runs the kernels.

The framework is C++ and calls these functions through ctypes. No exception may pass through C, so each function returns
the message of its error.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from ..air.bound_kernels import BoundKernel, BoundLibrary
from ..air.library import AirLibrary, Size
from ..air.metallib import SourceLibrary, compiled_library, programs_in
from ..errors import MetalRuntimeError
from ..metal.binding import Buffer, threadgroup_memory
from ..metal.element_types import HOST_NUMBERS
from ..metal.function_constants import Constant
from ..metal.includes import ProgramSource, embed
from ..metal.library import SimulatedKernel

_THREADGROUP_SLOTS = 16
_U64 = ctypes.c_uint64
_counted = [0]
_TEXT = ctypes.c_void_p  # an address: the bytes are kept in _texts


class MetalBinding(ctypes.Structure):
    """struct MetalBinding of metal/programs.h."""

    _fields_ = tuple((name, _U64) for name in ("index", "address", "base", "size", "element_type", "by_value"))


class _Parameter(ctypes.Structure):
    _fields_ = (("index", _U64), ("size", _U64), ("name", ctypes.c_char_p))


class _Kernel(ctypes.Structure):
    _fields_ = (
        ("number", ctypes.c_int64),
        ("max_threads", _U64),
        ("threadgroup_bytes", _U64),
        ("parameter_count", _U64),
        ("parameters", ctypes.POINTER(_Parameter)),
    )


class _Constant(ctypes.Structure):
    _fields_ = (("index", ctypes.c_int64), ("name", ctypes.c_char_p), ("value", ctypes.c_char_p))


class MetalLaunch(ctypes.Structure):
    """struct MetalLaunch of metal/programs.h."""

    _fields_ = (
        ("grid", _U64 * 3),
        ("group", _U64 * 3),
        ("threadgroup_bytes", _U64 * _THREADGROUP_SLOTS),
        ("binding_count", _U64),
        ("bindings", ctypes.POINTER(MetalBinding)),
    )


_P = ctypes.POINTER
_COMPILE = ctypes.CFUNCTYPE(_TEXT, _P(ctypes.c_char), _U64, _P(ctypes.c_int64))
_NAMES = ctypes.CFUNCTYPE(_TEXT, ctypes.c_int64, _P(ctypes.c_void_p))
_SPECIALIZE = ctypes.CFUNCTYPE(_TEXT, ctypes.c_int64, _P(_Constant), _U64, _P(ctypes.c_int64))
_LOAD = ctypes.CFUNCTYPE(_TEXT, ctypes.c_void_p, _U64, _P(ctypes.c_int64))
_KERNEL = ctypes.CFUNCTYPE(_TEXT, ctypes.c_int64, ctypes.c_char_p, _P(_Kernel))
_LAUNCH = ctypes.CFUNCTYPE(_TEXT, ctypes.c_int64, _P(MetalLaunch))


class MetalPrograms(ctypes.Structure):
    """struct MetalPrograms of metal/programs.h."""

    _fields_ = (
        ("compile", _COMPILE),
        ("names", _NAMES),
        ("specialize", _SPECIALIZE),
        ("kernel", _KERNEL),
        ("launch", _LAUNCH),
        ("load", _LOAD),
    )


_programs: list[tuple[ProgramSource, ...]] = []  # by number, as `_libraries`; none for a compiled one
_libraries: list[SourceLibrary | BoundLibrary] = []
_kernels: list[SimulatedKernel | BoundKernel] = []
_compiled: list[AirLibrary] = []
_kernel_rows: list[Any] = []  # C++ keeps pointers into these
_texts = threading.local()


def _text_address(text: str, slot: str = "problem") -> int:
    kept = ctypes.create_string_buffer(text.encode())
    setattr(_texts, slot, kept)
    return ctypes.addressof(kept)


def _guarded(function: Callable[..., None]) -> Callable[..., int | None]:
    def call(*arguments: object) -> int | None:
        try:
            function(*arguments)
            return None
        except Exception as error:
            return _text_address(str(error) or type(error).__name__)

    return call


def _add_library(*programs: ProgramSource) -> int:
    _libraries.append(SourceLibrary(programs))
    _programs.append(programs)
    return len(_libraries) - 1


def compile_source(source: bytes) -> int:
    """The number of a library of Metal source. Raises MpsmithError if it does not compile."""
    # torch embeds its headers before it passes source to Metal, and other programs cannot include any.
    return _add_library(embed(source.decode()))


def answer_with(library: AirLibrary) -> None:
    """Make `newLibraryWithData:` return the compiled kernels of a release, for any section of its binary."""
    _compiled[:] = [library]


def load_compiled(library: BoundLibrary) -> int:
    """The number of a library of compiled kernels."""
    _libraries.append(library)
    _programs.append(())
    return len(_libraries) - 1


def names_of(library: int) -> str:
    """The names of a library's kernels, one a line."""
    return "\n".join(dir(_libraries[library]))


def specialize(library: int, constants: Sequence[Constant]) -> int:
    """The number of a library with these function constants. Raises MpsmithError if it cannot be built."""
    programs, kernels = _programs[library], _libraries[library]
    if isinstance(kernels, BoundLibrary):
        return load_compiled(BoundLibrary(kernels.library.specialized(constants)))
    return _add_library(*(replace(program, constants=tuple(constants)) for program in programs))


def add_kernel(library: int, name: str) -> tuple[int, SimulatedKernel | BoundKernel]:
    """A kernel and its number. Raises AttributeError if the library has none of this name."""
    _kernels.append(getattr(_libraries[library], name))
    return len(_kernels) - 1, _kernels[-1]


def _buffer(address: int, base: int, size: int, element_type: int, by_value: int) -> Buffer:
    """A bound buffer. Its element type is "" (any type) for zeros that are passed by value."""
    zeros = by_value and not any(ctypes.string_at(address, size))
    return Buffer(address, base, size, None, "" if zeros else HOST_NUMBERS[element_type], bool(by_value))


def launch(
    number: int, grid: Size, group: Size, threadgroup_bytes: Iterable[int], bindings: Iterable[tuple[int, ...]]
) -> None:
    """Run a kernel; a binding has the fields of MetalBinding.

    Raises KernelFault if the kernel does something invalid, and MpsmithError if it cannot be run.
    """
    buffers = {index: _buffer(*fields) for index, *fields in bindings}
    memory = {slot: threadgroup_memory(size) for slot, size in enumerate(threadgroup_bytes) if size}
    _kernels[number].launch(grid, group, buffers, memory)
    _counted[0] += 1


@_guarded
def _compile(source: Any, size: int, number: Any) -> None:
    number[0] = compile_source(ctypes.string_at(source, size))


@_guarded
def _load(section: Any, size: int, number: Any) -> None:
    data = ctypes.string_at(section, size)
    if programs := programs_in(data):
        number[0] = _add_library(*programs)
        return
    library = compiled_library(data) or (BoundLibrary(_compiled[0]) if _compiled else None)
    if library is None:
        raise MetalRuntimeError(
            "this is not a Metal library, which begins with MTLB, and no release's kernels are loaded here"
        )
    number[0] = load_compiled(library)


@_guarded
def _names(library: int, names: Any) -> None:
    names[0] = _text_address(names_of(library), "names")


@_guarded
def _specialize(library: int, rows: Any, count: int, number: Any) -> None:
    constants = [Constant(row.index, row.name.decode(), row.value.decode()) for row in rows[:count]]
    number[0] = specialize(library, constants)


@_guarded
def _kernel(library: int, name: bytes, facts: Any) -> None:
    number, kernel = add_kernel(library, name.decode())
    parameters = kernel.buffer_parameters
    rows = (_Parameter * max(len(parameters), 1))(
        *(_Parameter(index, size, text.encode()) for index, (text, size) in sorted(parameters.items()))
    )
    _kernel_rows.append(rows)
    facts[0] = _Kernel(
        number,
        kernel.max_threads_per_threadgroup,
        kernel.static_thread_group_memory_length,
        len(parameters),
        ctypes.cast(rows, _P(_Parameter)),
    )


@_guarded
def _launch(number: int, rows: Any) -> None:
    given = rows[0]
    bindings = [tuple(getattr(row, name) for name, _ in row._fields_) for row in given.bindings[: given.binding_count]]
    launch(number, tuple(given.grid), tuple(given.group), given.threadgroup_bytes, bindings)


def launches() -> int:
    """The number of kernel launches in this process."""
    return _counted[0]


PROGRAMS = MetalPrograms(
    _COMPILE(_compile), _NAMES(_names), _SPECIALIZE(_specialize), _KERNEL(_kernel), _LAUNCH(_launch), _LOAD(_load)
)
"""The argument of `metal_host_install`."""
