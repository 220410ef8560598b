"""The CUDA driver through ctypes: memory, modules, launches. It needs no CUDA toolkit, nvcc or NVRTC."""

from __future__ import annotations

import ctypes
import functools
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import NoNvidiaDriverError, NvidiaError, NvidiaTimeoutError
from .recursion import is_recursive

TIMEOUT_VARIABLE = "MPSMITH_NVIDIA_TIMEOUT"
_TIMEOUT_SECONDS = 60.0
_SPIN_SECONDS = 0.002
_PAUSE_SECONDS = 0.0002
_LIBRARY = "libcuda.so.1"
_LOG_BYTES = 4096

_SUCCESS, _OUT_OF_MEMORY, _NOT_READY = 0, 2, 600
# After these errors every later call in the context fails, too.
_STICKY = frozenset({700, 702, 714, 715, 716, 717, 718, 719})
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76
_HOST_MEMORY_OF_ALL_CONTEXTS, _HOST_MEMORY_ON_THE_GPU = 1, 2
_LIMIT_STACK = 0
# The stack of a thread, for recursive functions; the default of 1,024 bytes is too small for igamma, whose log_gamma is
# recursive.
_STACK_BYTES = 8192
_MAX_THREADS_OF_FUNCTION = 0
_JIT_MAX_REGISTERS, _JIT_ERROR_LOG, _JIT_ERROR_LOG_BYTES = 0, 5, 6
_REGISTERS_OF_A_GROUP = 65536

Size = tuple[int, int, int]


@dataclass(frozen=True)
class LoadedFunction:
    """A loaded kernel, and its largest group, which depends on its registers."""

    handle: ctypes.c_void_p
    max_threads: int


class Driver:
    """A GPU of this machine, in the context that torch uses; `library` is that of the driver."""

    def __init__(self, library: Any = None, ordinal: int = 0) -> None:
        self._library = library or _installed()
        self._timeout = _timeout_from_environment()
        self._lost = ""
        self._call("cuInit", 0)
        count = ctypes.c_int()
        self._call("cuDeviceGetCount", ctypes.byref(count))
        if count.value <= ordinal:
            raise NoNvidiaDriverError(f"the NVIDIA driver sees {count.value} GPUs; --on nvidia needs one")
        self._device = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(self._device), ordinal)
        self._context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), self._device)
        self.enter()

    def enter(self) -> None:
        """Set the GPU's context in this thread; needed once in every thread that calls the driver."""
        self._call("cuCtxSetCurrent", self._context)

    @functools.cached_property
    def name(self) -> str:
        """The name of the GPU."""
        text = ctypes.create_string_buffer(100)
        self._call("cuDeviceGetName", text, len(text), self._device)
        return text.value.decode()

    @functools.cached_property
    def capability(self) -> tuple[int, int]:
        """The GPU's compute capability, such as (9, 0)."""
        return self._attribute(_CAPABILITY_MAJOR), self._attribute(_CAPABILITY_MINOR)

    def load(self, ptx: str, entry: str, threads: int = 0) -> LoadedFunction:
        """Load a kernel of a PTX module; with `threads`, limit its registers so that groups may have that many threads.

        Raises:
            NvidiaError: the driver refuses the PTX.
        """
        if is_recursive(ptx):
            self._call("cuCtxSetLimit", _LIMIT_STACK, ctypes.c_size_t(_STACK_BYTES))
        module, function, limit = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
        log = ctypes.create_string_buffer(_LOG_BYTES)
        options = {_JIT_ERROR_LOG: ctypes.addressof(log), _JIT_ERROR_LOG_BYTES: len(log)}
        if threads:
            options[_JIT_MAX_REGISTERS] = _REGISTERS_OF_A_GROUP // threads // 8 * 8
        keys = (ctypes.c_int * len(options))(*options)
        values = (ctypes.c_void_p * len(options))(*options.values())
        try:
            self._call("cuModuleLoadDataEx", ctypes.byref(module), ptx.encode() + b"\0", len(options), keys, values)
        except NvidiaError as error:
            message = " ".join(log.value.decode(errors="replace").split())
            raise NvidiaError(f"{error}: {message}" if message else str(error)) from None
        self._call("cuModuleGetFunction", ctypes.byref(function), module, entry.encode())
        self._call("cuFuncGetAttribute", ctypes.byref(limit), _MAX_THREADS_OF_FUNCTION, function)
        return LoadedFunction(function, limit.value)

    def launch(
        self, function: LoadedFunction, groups: Size, group: Size, shared: int, stream: int, values: bytes
    ) -> None:
        """Launch a kernel; `values` are the bytes of its parameters."""
        data = ctypes.create_string_buffer(values, len(values))
        size = ctypes.c_size_t(len(values))
        extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(data), 2, ctypes.addressof(size), None)
        self._call("cuLaunchKernel", function.handle, *groups, *group, shared, ctypes.c_void_p(stream), None, extra)

    def wait(self, stream: int = 0) -> None:
        """Wait for a stream.

        Raises:
            NvidiaTimeoutError: it takes longer than MPSMITH_NVIDIA_TIMEOUT seconds.
            NvidiaError: a kernel did something invalid.
        """
        begin = time.monotonic()
        while True:
            result = self._result_of("cuStreamQuery", ctypes.c_void_p(stream))
            if result != _NOT_READY:
                return self._check("a kernel", result)
            waited = time.monotonic() - begin
            if waited > self._timeout:
                self._lost = f"a kernel did not end within {self._timeout:g} s ({TIMEOUT_VARIABLE})"
                raise NvidiaTimeoutError(f"{self._lost}; start another process to use the GPU again")
            if waited > _SPIN_SECONDS:
                time.sleep(_PAUSE_SECONDS)

    def allocate(self, size: int) -> int:
        """Allocate memory of the GPU; returns its address.

        Raises:
            NvidiaError: there is too little memory.
        """
        address = ctypes.c_uint64()
        result = self._result_of("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(size, 1)))
        if result == _OUT_OF_MEMORY:
            raise NvidiaError(f"the GPU has less than {size:,} bytes left; free tensors or use smaller ones")
        self._check("cuMemAlloc", result)
        return address.value

    def allocate_on_host(self, size: int) -> tuple[int, int]:
        """Allocate zeroed host memory that kernels can write to; returns its addresses on the host and on the GPU.

        Raises:
            NvidiaError: there is too little memory.
        """
        here, there = ctypes.c_void_p(), ctypes.c_uint64()
        flags = _HOST_MEMORY_OF_ALL_CONTEXTS | _HOST_MEMORY_ON_THE_GPU
        self._call("cuMemHostAlloc", ctypes.byref(here), ctypes.c_size_t(size), flags)
        self._call("cuMemHostGetDevicePointer_v2", ctypes.byref(there), here, 0)
        ctypes.memset(here, 0, size)
        return here.value or 0, there.value

    def free(self, address: int) -> None:
        """Free memory."""
        self._result_of("cuMemFree_v2", ctypes.c_uint64(address))

    def upload(self, address: int, source: int, size: int) -> None:
        """Copy from the host's address `source` and wait."""
        if size:
            self._call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), ctypes.c_void_p(source), ctypes.c_size_t(size))

    def download(self, target: int, address: int, size: int) -> None:
        """Copy to the host's address `target` and wait."""
        if size:
            self._call("cuMemcpyDtoH_v2", ctypes.c_void_p(target), ctypes.c_uint64(address), ctypes.c_size_t(size))

    def _attribute(self, which: int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), which, self._device)
        return value.value

    def _result_of(self, function: str, *arguments: object) -> int:
        if self._lost:
            raise NvidiaTimeoutError(f"{self._lost}; start another process to use the GPU again")
        return int(getattr(self._library, function)(*arguments))

    def _call(self, function: str, *arguments: object) -> None:
        self._check(function, self._result_of(function, *arguments))

    def _check(self, what: str, result: int) -> None:
        if result == _SUCCESS:
            return
        text = ctypes.c_char_p()
        self._library.cuGetErrorString(result, ctypes.byref(text))
        message = (text.value or b"unknown error").decode()
        if what == "cuInit":
            raise NoNvidiaDriverError(f"the NVIDIA driver does not start: {message} ({result})")
        again = "; start another process to use the GPU again" if result in _STICKY else ""
        raise NvidiaError(f"NVIDIA driver, {what}: {message} ({result}){again}")


def _installed() -> ctypes.CDLL:
    try:
        return ctypes.CDLL(_LIBRARY)
    except OSError:
        raise NoNvidiaDriverError(
            f"no NVIDIA driver on this machine ({_LIBRARY} is missing): --on nvidia needs one and a GPU"
        ) from None


def _timeout_from_environment() -> float:
    text = os.environ.get(TIMEOUT_VARIABLE)
    if text is None:
        return _TIMEOUT_SECONDS
    try:
        return float(text)
    except ValueError:
        raise NvidiaError(f"{TIMEOUT_VARIABLE} must be a number of seconds, not {text!r}") from None


@functools.cache
def default_driver() -> Driver:
    """The first GPU.

    Raises:
        NoNvidiaDriverError: there is no driver, or no GPU.
    """
    return Driver()


def parameters(*parts: Sequence[int]) -> bytes:
    """The bytes of a kernel's parameters: addresses (8 bytes each), then numbers (4 bytes each)."""
    addresses, numbers = parts
    return b"".join(a.to_bytes(8, "little") for a in addresses) + b"".join(n.to_bytes(4, "little") for n in numbers)
