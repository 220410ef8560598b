"""Answers the requests of host code in another process for Metal kernels; `remote.cpp` is the other side."""

from __future__ import annotations

import ctypes
import struct
from functools import cached_property, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..air.library import AirLibrary

_NUMBER = struct.Struct("<q")
_TWO = struct.Struct("<2Q")
# The kernel's number and struct MetalLaunch, then struct MetalBinding, of metal/programs.h.
_LAUNCH, _BINDING = struct.Struct("<q24Q"), struct.Struct("<6Q")


class KernelRequests:
    """Runs LAPACK, Metal source and, with `library`, a release's kernels, on memory that both processes share."""

    def __init__(self, library: AirLibrary | None) -> None:
        self._library = library

    @cached_property
    def _bridge(self) -> Any:
        from ..objc import bridge

        return bridge

    def answer(self, kind: str, request: bytes) -> bytes:
        """The answer as bytes: whether the request failed, the size, and the content or the error message."""
        try:
            content = self._answered(kind, request)
        except Exception as error:  # none may leave the other process without an answer
            text = (str(error) or type(error).__name__).encode()
            return _TWO.pack(1, len(text)) + text
        return _TWO.pack(0, len(content)) + content

    def _answered(self, kind: str, request: bytes) -> bytes:
        if kind == "launch":
            return self._launched(request)
        from ..air.bound_kernels import BoundLibrary
        from ..metal.function_constants import Constant
        from ..objc import bridge

        if kind == "lapack":
            return _of_lapack(request)
        if kind == "compile":
            return _NUMBER.pack(bridge.compile_source(request))
        if kind == "load" and self._library is not None:
            return _NUMBER.pack(bridge.load_compiled(BoundLibrary(self._library)))
        (number,), rest = _NUMBER.unpack_from(request), request[_NUMBER.size :]
        if kind == "names":
            return bridge.names_of(number).encode() + b"\0"
        if kind == "specialize":
            rows = [line.split("\t") for line in rest.decode().splitlines()]
            constants = [Constant(int(index), name, value) for index, name, value in rows]
            return _NUMBER.pack(bridge.specialize(number, constants))
        if kind == "kernel":
            return _described(*bridge.add_kernel(number, rest.decode()))
        raise ValueError(f"{kind!r} is not a request")

    def _launched(self, request: bytes) -> bytes:
        number, *sizes = _LAUNCH.unpack_from(request)
        bindings = _BINDING.iter_unpack(request[_LAUNCH.size :])
        self._bridge.launch(number, tuple(sizes[:3]), tuple(sizes[3:6]), sizes[6:22], bindings)
        return b""


def _described(number: int, kernel: object) -> bytes:
    parameters = sorted(kernel.buffer_parameters.items())  # type: ignore[attr-defined]
    facts = (number, kernel.max_threads_per_threadgroup, kernel.static_thread_group_memory_length)  # type: ignore[attr-defined]
    rows = b"".join(_TWO.pack(index, size) for index, (_, size) in parameters)
    names = "".join(f"{name}\n" for _, (name, _) in parameters)
    return struct.pack("<4Q", *facts, len(parameters)) + rows + names.encode() + b"\0"


def _of_lapack(request: bytes) -> bytes:
    """Call a LAPACK function. A request is its name and the arguments' sizes in a line, then the arguments' bytes.

    Returns the bytes after the call. Lengths of Fortran strings may be left out with MKL and OpenBLAS, as in torch.
    """
    head, _, content = request.partition(b"\n")
    name, *sizes = head.decode().split()
    memory = ctypes.create_string_buffer(content, max(len(content), 1))
    starts = accumulate(map(int, sizes[:-1]), initial=ctypes.addressof(memory))
    try:
        function = getattr(_library_of_torch(), name)
    except AttributeError:
        raise ValueError(f"{name} of LAPACK is not simulated: this torch exports none") from None
    function(*map(ctypes.c_void_p, starts))
    return memory.raw


@lru_cache(maxsize=1)
def _library_of_torch() -> ctypes.CDLL:
    import torch

    return ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
