"""Shader libraries and kernels of an NVIDIA GPU with the calling convention of `torch.mps.compile_shader`."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from ...metal_limits import MAX_BUFFERS, MAX_THREADGROUP_MEMORY, SIMD_WIDTH
from ..errors import MetalRuntimeError
from ..metal.binding import ArgCasts, Buffer, bind
from ..metal.binding import Device as BoundDevice
from ..metal.error_buffer import BYTES as ERROR_BYTES
from ..metal.error_buffer import ErrorBuffer
from ..metal.includes import PROGRAM, embed, include_folders
from ..metal.library import grid_and_group
from .compiler import DEFAULT_ARCHITECTURE, architecture_from_environment, architecture_of
from .driver import Driver, LoadedFunction, Size, default_driver, parameters
from .entry_point import ENTRY
from .launching import launches
from .memory import Addresses, Constants, copies
from .program import Code, PtxProgram, default_cache

Device = Literal["cpu", "mps", "cuda"]
"""The device of tensors; kernels run on copies of host tensors."""

# The default size of groups for kernels that do not depend on it: enough groups for every multiprocessor.
_GROUP = 256


class NvidiaLibrary:
    """The kernels of a Metal program as attributes; `dir()` lists them. They are built on first use."""

    def __init__(self, program: PtxProgram, driver: Driver, device: Device) -> None:
        self._program = program
        self._driver = driver
        self._device = device
        self._constants = Constants(driver)
        self._kernels: dict[str, NvidiaKernel] = {}

    def __getattr__(self, name: str) -> NvidiaKernel:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in self._kernels:
            try:
                code = self._program.code(name)
            except KeyError:
                raise MetalRuntimeError(f"Failed to create function state object for: {name}") from None
            self._kernels[name] = NvidiaKernel(code, self._driver, self._device, self._constants)
        return self._kernels[name]

    def __dir__(self) -> list[str]:
        return list(self._program.kernels)

    def __repr__(self) -> str:
        return f"<Metal library of {len(self._program.kernels)} kernels on {self._driver.name} (NVIDIA)>"


class NvidiaKernel:
    """A kernel, loaded by the driver on its first launch."""

    def __init__(self, code: Code, driver: Driver, device: Device, constants: Constants) -> None:
        if code.shared > MAX_THREADGROUP_MEMORY:
            raise MetalRuntimeError(
                f"Failed to created pipeline state object, error: kernel '{code.name}' ({code.place}) uses "
                f"{code.shared} bytes of threadgroup memory; the limit is {MAX_THREADGROUP_MEMORY}"
            )
        self._code = code
        self._driver = driver
        self._device = device
        self._constants = constants
        self._functions: dict[int, LoadedFunction] = {}
        self._loading = threading.Lock()

    @property
    def max_threads_per_threadgroup(self) -> int:
        """The largest threadgroup: 1,024 threads, or what the kernel declares."""
        return self._code.max_threads

    @property
    def thread_execution_width(self) -> int:
        """Threads of a SIMD group: a warp."""
        return SIMD_WIDTH

    @property
    def static_thread_group_memory_length(self) -> int:
        """Bytes of threadgroup memory that the kernel declares, rounded up to 16 for each variable."""
        return self._code.shared

    def __repr__(self) -> str:
        return f"<Metal kernel {self._code.name} on {self._driver.name} (NVIDIA)>"

    def __call__(
        self,
        *args: object,
        threads: int | Sequence[int] | None = None,
        group_size: int | Sequence[int] | None = None,
        arg_casts: ArgCasts = None,
        error_buf_idx: int | None = None,
    ) -> None:
        """Run the kernel; with tensors on the GPU only launch it, on torch's current stream.

        Args:
            args: argument i is buffer i: a tensor, a number, or a list of numbers or tensors.
            threads: the grid, in one to three dimensions; by default one thread for each element of the first tensor.
            group_size: threads of a threadgroup, with the dimensions of `threads`.
            arg_casts: "fp16", "bf16", "int32", "int16", "int8" or "uint8" for all numbers, or a cast by index.
            error_buf_idx: the index of the buffer for TORCH_REPORT_ERROR; with tensors on the GPU, the next launch with
                such a buffer raises the error, or `synchronize`.

        Raises:
            MetalRuntimeError: arguments do not fit.
            NvidiaError: the kernel did something invalid.
            MetalValueError: the threadgroup is too large.
            torch.AcceleratorError: the kernel reported an error; with tensors of the GPU, an earlier launch did.
        """
        device = cast(BoundDevice, self._device)
        buffers = {i: bind(a, i, arg_casts, device, tight=False) for i, a in enumerate(args)}
        errors: ErrorBuffer | None = None
        reported: Addresses = {}
        if error_buf_idx is not None:
            errors, on_gpu = self._error_buffer()
            errors.raise_first()
            buffers[error_buf_idx], reported = errors.buffer, {error_buf_idx: on_gpu}
        grid, group = grid_and_group(args, threads, group_size, device, self._code.max_threads)
        if group_size is None and not self._code.waits:
            group = (min(group[0], _GROUP), *group[1:])
        self._check_buffers(buffers)
        if 0 in grid:
            return
        if self._device == "cuda":
            self._run_in_place(grid, group, buffers, reported)
        else:
            self._run_on_copies(grid, group, buffers)
            if errors is not None:
                errors.raise_first()

    # ------------------------------------------------------------------------------------------ running
    def _run_on_copies(self, grid: Size, group: Size, buffers: Mapping[int, Buffer]) -> None:
        written = {slot for slot, writes in zip(self._code.slots, self._code.writable, strict=True) if writes}
        with copies(self._driver, buffers, written) as addresses:
            self._start(grid, group, addresses, stream=0)
            self._driver.wait()

    def _run_in_place(self, grid: Size, group: Size, buffers: Mapping[int, Buffer], reported: Addresses) -> None:
        addresses = {index: self._on_gpu(buffer) for index, buffer in buffers.items() if index not in reported}
        self._start(grid, group, {**addresses, **reported}, _current_stream())

    def _error_buffer(self) -> tuple[ErrorBuffer, int]:
        """The error buffer and its address on the GPU, or 0 for one that is copied."""
        if self._device == "cuda":
            shared = _shared_errors(self._driver)
            return shared.errors, shared.on_gpu
        return ErrorBuffer(), 0

    def _on_gpu(self, buffer: Buffer) -> int:
        owner = buffer.owner
        return buffer.address if hasattr(owner, "untyped_storage") else self._constants.address(buffer)

    def _start(self, grid: Size, group: Size, addresses: Addresses, stream: int) -> None:
        function = self._function(group[0] * group[1] * group[2])
        pointers = [addresses.get(slot, 0) for slot in self._code.slots]
        for launch in launches(grid, group, cut=self._code.waits):
            values = parameters(pointers, launch.numbers)
            self._driver.launch(function, launch.groups, launch.group, 0, stream, values)

    def _function(self, threads: int) -> LoadedFunction:
        """The loaded kernel, with few enough registers for this group size."""
        with self._loading:
            plain = self._functions.get(0) or self._driver.load(self._code.ptx, ENTRY)
            self._functions[0] = plain
            if threads <= plain.max_threads:
                return plain
            narrow = self._functions.get(1) or self._driver.load(self._code.ptx, ENTRY, self._code.max_threads)
            self._functions[1] = narrow
            return narrow

    def _check_buffers(self, buffers: Mapping[int, Buffer]) -> None:
        code = self._code
        if any(index >= MAX_BUFFERS for index in buffers):
            raise MetalRuntimeError(self._about(f"{max(buffers) + 1} arguments; Metal has {MAX_BUFFERS} buffers"))
        for slot, name, size in zip(code.slots, code.names, code.sizes, strict=True):
            buffer = buffers.get(slot)
            if buffer is None and size:
                raise MetalRuntimeError(self._about(f"argument {slot} ('{name}') is not passed"))
            if buffer is not None and size > buffer.available:
                holds = f"argument {slot} ('{name}') holds {buffer.available} bytes, and the kernel reads {size}"
                raise MetalRuntimeError(self._about(holds))

    def _about(self, text: str) -> str:
        return f"Metal kernel '{self._code.name}' ({self._code.place}) on NVIDIA: {text}"


@dataclass(frozen=True)
class _SharedErrors:
    """The error buffer of all launches on GPU tensors: host memory, so that launches need not wait."""

    errors: ErrorBuffer
    on_gpu: int


@functools.cache
def _shared_errors(driver: Driver) -> _SharedErrors:
    here, there = driver.allocate_on_host(ERROR_BYTES)
    return _SharedErrors(ErrorBuffer(here), there)


def synchronize() -> None:
    """Wait for the launches on torch's current stream and raise the first reported error.

    Raises:
        torch.AcceleratorError: a kernel reported an error.
        NvidiaTimeoutError: a kernel takes longer than MPSMITH_NVIDIA_TIMEOUT seconds.
        NvidiaError: a kernel did something invalid.
    """
    driver = default_driver()
    driver.wait(_current_stream())
    _shared_errors(driver).errors.raise_first()


def _current_stream() -> int:
    """torch's current CUDA stream."""
    return int(sys.modules["torch"].cuda.current_stream().cuda_stream)


def compile_library(source: str, *, device: Device = "cuda") -> NvidiaLibrary:
    """Compile Metal source for the first NVIDIA GPU.

    Args:
        source: the program. `#include` finds the headers of the installed torch.
        device: "cuda" for tensors on the GPU; "cpu" or "mps" for host tensors, which are copied.

    Raises:
        MetalSyntaxError: the source does not compile.
        NoNvidiaDriverError: this machine has no NVIDIA GPU.
        CompilerMissingError: the PTX is not in the cache, and there is no compiler.
    """
    driver = default_driver()
    return NvidiaLibrary(program_of(source, architecture_of(driver.capability)), driver, device)


def program_of(source: str, architecture: str | None = None) -> PtxProgram:
    """A Metal program for an architecture: the one given, that of MPSMITH_NVIDIA_ARCH, or sm_90. Needs no GPU."""
    selected = architecture_from_environment() or architecture or DEFAULT_ARCHITECTURE
    return PtxProgram(embed(source, PROGRAM, include_folders(None)), selected, default_cache())
