"""Shader libraries and kernels with the calling convention of `torch.mps.compile_shader`."""

from __future__ import annotations

import operator
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from ...metal_limits import MAX_BUFFERS, MAX_THREADGROUP_MEMORY, SIMD_WIDTH
from ..errors import MetalRuntimeError, MetalValueError, UndefinedLanesError
from .binding import NO_THREADS, ArgCasts, Buffer, Device, bind, refused_by_validation, require_valid
from .binding import threadgroup_memory as memory_of_threadgroup
from .compiler import Build, MetalCompiler, default_compiler
from .dispatch import GridLaunch, LoadedKernel, load_kernel, runtime_of
from .element_types import element_mismatch
from .entries import FIRST_THREADGROUP_SLOT, EntryPoint
from .error_buffer import ErrorBuffer
from .function_constants import constants_of
from .includes import ProgramSource, with_includes
from .modes import Mode, current_mode, flushes_subnormals, validate_mode
from .regions import GUARDED_BYTES, merged_regions
from .schedules import run_schedules
from .translation import Translation, translate_and_build
from .undefined_lanes import run_with_poison
from .wrappers import symbol

NO_MEMORY: Mapping[int, Buffer] = MappingProxyType({})
NO_LENGTHS: Mapping[int, int] = MappingProxyType({})
NO_CONSTANTS: Mapping[int | str, bool | int | float] = MappingProxyType({})


class ShaderLibrary:
    """The kernels of a Metal program as attributes; `dir()` lists them. They are built on first use."""

    def __init__(self, translation: Translation, compiler: MetalCompiler, mode: Mode, device: Device) -> None:
        self._translation = translation
        self._compiler = compiler
        self._mode = mode
        self._device = device
        self._kernels: dict[str, SimulatedKernel] = {}

    def __getattr__(self, name: str) -> SimulatedKernel:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in self._kernels:
            entry = self._translation.kernels.get(name)
            if entry is None:
                raise MetalRuntimeError(f"Failed to create function state object for: {name}")
            self._kernels[name] = SimulatedKernel(entry, self._translation, self._compiler, self._mode, self._device)
        return self._kernels[name]

    def __dir__(self) -> list[str]:
        return list(self._translation.kernels)

    def __repr__(self) -> str:
        return f"<simulated Metal library of {len(self._translation.kernels)} kernels>"


class SimulatedKernel:
    """A kernel built for the CPU."""

    def __init__(
        self, entry: EntryPoint, translation: Translation, compiler: MetalCompiler, mode: Mode, device: Device
    ) -> None:
        entry.require_no_textures()
        self._entry = entry
        self._translation = translation
        self._compiler = compiler
        self._mode = mode
        self._device = device
        self._loaded: dict[Build, LoadedKernel] = {}
        self._building = threading.Lock()
        if self.static_thread_group_memory_length > MAX_THREADGROUP_MEMORY:
            raise MetalRuntimeError(
                f"Failed to created pipeline state object, error: kernel '{entry.name}' ({entry.location.file}:"
                f"{entry.location.line}) uses {self.static_thread_group_memory_length} bytes of threadgroup memory; "
                f"the limit is {MAX_THREADGROUP_MEMORY}"
            )

    @property
    def max_threads_per_threadgroup(self) -> int:
        """The largest threadgroup: 1,024 threads, or what the kernel declares.

        A GPU may allow fewer for a kernel that takes many registers.
        """
        return self._entry.max_threads

    @property
    def thread_execution_width(self) -> int:
        """Threads of a SIMD group."""
        return SIMD_WIDTH

    @property
    def static_thread_group_memory_length(self) -> int:
        """Bytes of threadgroup memory that the kernel declares, rounded up to 16 for each variable."""
        return (self._load("fast").shared_size + 15) // 16 * 16

    def __repr__(self) -> str:
        return f"<simulated Metal kernel {self._entry.name}>"

    def __call__(
        self,
        *args: object,
        threads: int | Sequence[int] | None = None,
        group_size: int | Sequence[int] | None = None,
        arg_casts: ArgCasts = None,
        error_buf_idx: int | None = None,
        threadgroup_lengths: Mapping[int, int] = NO_LENGTHS,
    ) -> None:
        """Run the kernel and wait for it.

        Args:
            args: argument i is buffer i: a tensor, a number, or a list of numbers or tensors.
            threads: the grid, in one to three dimensions; by default one thread for each element of the first tensor.
            group_size: threads of a threadgroup, with the dimensions of `threads`.
            arg_casts: "fp16", "bf16", "int32", "int16", "int8" or "uint8" for all numbers, or a cast by index.
            error_buf_idx: the index of the buffer for TORCH_REPORT_ERROR.
            threadgroup_lengths: bytes of `[[threadgroup(n)]]` arguments by index; torch cannot set these.

        Raises:
            MetalRuntimeError: arguments do not fit, or the kernel did something invalid.
            UndefinedLanesError: in `checked` mode, the result depends on inactive lanes of a SIMD group.
            MetalValueError: the threadgroup is too large.
        """
        mode = current_mode(self._mode)
        tight = mode == "checked"
        buffers = {i: bind(a, i, arg_casts, self._device, tight) for i, a in enumerate(args)}
        errors = ErrorBuffer() if error_buf_idx is not None else None
        if errors is not None and error_buf_idx is not None:
            buffers[error_buf_idx] = errors.buffer
        grid, group = grid_and_group(args, threads, group_size, self._device, self._entry.max_threads)
        self.launch(grid, group, buffers, {i: memory_of_threadgroup(n) for i, n in threadgroup_lengths.items()})
        if errors is not None:
            errors.raise_first()

    @property
    def buffer_parameters(self) -> dict[int, tuple[str, int]]:
        """The name of each buffer parameter and the bytes that a reference reads (0 for a pointer), by index."""
        loaded = self._load("fast").parameters
        buffers = [a for a in self._entry.arguments if a.kind == "buffer" and a.index in loaded]
        return {a.index: (a.name, loaded[a.index].size) for a in buffers}

    def launch(
        self,
        grid: tuple[int, int, int],
        group: tuple[int, int, int],
        buffers: Mapping[int, Buffer],
        threadgroup_memory: Mapping[int, Buffer] = NO_MEMORY,
    ) -> None:
        """Run the kernel on bound memory: buffers and `[[threadgroup(n)]]` memory by index.

        Raises:
            MetalRuntimeError: the memory does not fit, or the kernel did something invalid.
        """
        mode = current_mode(self._mode)
        kernel = self._load("checked" if mode == "checked" else "fast")
        taken = self.static_thread_group_memory_length + sum(m.size for m in threadgroup_memory.values())
        if taken > MAX_THREADGROUP_MEMORY:
            raise MetalRuntimeError(
                self._explain([f"{taken} bytes of threadgroup memory; the limit is {MAX_THREADGROUP_MEMORY}"])
            )
        slots = {FIRST_THREADGROUP_SLOT + index: memory for index, memory in threadgroup_memory.items()}
        self._check_buffers(kernel, buffers, slots)
        if 0 in grid:
            require_valid(self._explain([NO_THREADS]))
            return
        bound = {**buffers, **slots}
        addresses = [bound[i].address if i in bound else 0 for i in range(max([MAX_BUFFERS - 1, *slots]) + 1)]
        guarded = mode != "fast" or sum(b.size for b in bound.values()) <= GUARDED_BYTES
        # Threadgroup memory is not a result.
        written = {i for i, parameter in kernel.parameters.items() if parameter.writable and i not in slots}
        regions = merged_regions(bound, written) if guarded else []
        launch = GridLaunch(
            *(grid, group, addresses, regions),
            one_by_one=mode != "fast",
            flush_denormals=flushes_subnormals(mode),
            refuse_unwritten=mode == "checked",
        )
        if mode == "schedules":
            self._run_schedules(kernel, launch)
        elif kernel.reads_lanes:
            self._run_with_poison(kernel, launch)
        else:
            self._run(kernel, launch)

    # ------------------------------------------------------------------------------------------ building
    def _load(self, build: Build) -> LoadedKernel:
        loaded = self._loaded.get(build)
        if loaded is None:
            with self._building:
                loaded = self._loaded.get(build) or self._build(build)
                self._loaded[build] = loaded
        return loaded

    def _build(self, build: Build) -> LoadedKernel:
        compiler, name = self._compiler, self._entry.name
        runtime_of(compiler)
        key = self._translation.key_of(name, build)
        kept = compiler.cache.find(key, ".so")
        if kept is None:
            content = compiler.build(self._translation.unit(name), build)
            kept = compiler.cache.store(key, ".so", content), content
        path, content = kept
        return load_kernel(str(path), content, symbol(name), checked=build == "checked")

    # ------------------------------------------------------------------------------------------ running
    def _run(self, kernel: LoadedKernel, launch: GridLaunch) -> None:
        messages = runtime_of(self._compiler).run(kernel, launch)
        if messages:
            self._fail(kernel, launch, messages)

    def _fail(self, kernel: LoadedKernel, launch: GridLaunch, messages: list[str]) -> NoReturn:
        missing = [f"argument {i}" for i in kernel.parameters if i < MAX_BUFFERS and not launch.addresses[i]]
        if missing and "null pointer" in messages[0]:
            messages.append(f"not passed: {', '.join(missing)}")
        raise MetalRuntimeError(self._explain(messages))

    def _run_schedules(self, kernel: LoadedKernel, launch: GridLaunch) -> None:
        difference = run_schedules(lambda schedule: self._run(kernel, schedule), launch)
        # With atomic operations, results may depend on the order of threads.
        if difference and not kernel.uses_atomics:
            raise MetalRuntimeError(self._explain([difference]))

    def _run_with_poison(self, kernel: LoadedKernel, launch: GridLaunch) -> None:
        runtime = runtime_of(self._compiler)
        errors, reliance = run_with_poison(lambda poisoned: runtime.report(kernel, poisoned), launch)
        if errors:
            self._fail(kernel, launch, errors)
        if reliance:
            raise UndefinedLanesError(self._explain([f"relies on undefined lanes: {reliance}"]))

    def _explain(self, messages: list[str]) -> str:
        names = {a.slot: a.name for a in self._entry.arguments if a.kind != "builtin"}

        def with_name(match: re.Match[str]) -> str:
            name = names.get(int(match[1]))
            return f"argument {match[1]} ('{name}')" if name else match[0]

        location = self._entry.location
        text = "\n  ".join(re.sub(r"\bargument (\d+)", with_name, m) for m in messages)
        return f"simulated Metal kernel '{self._entry.name}' ({location.file}:{location.line}): {text}"

    def _check_buffers(
        self, kernel: LoadedKernel, buffers: Mapping[int, Buffer], threadgroup_memory: Mapping[int, Buffer]
    ) -> None:
        if any(i >= MAX_BUFFERS for i in buffers):
            raise MetalRuntimeError(self._explain([f"{max(buffers) + 1} arguments; Metal has {MAX_BUFFERS} buffers"]))
        for index, parameter in kernel.parameters.items():
            if index in threadgroup_memory:
                continue
            if index >= FIRST_THREADGROUP_SLOT:
                asked = f"[[threadgroup({index - FIRST_THREADGROUP_SLOT})]]"
                raise MetalRuntimeError(self._explain([f"{asked} needs a length, which compile_shader cannot set"]))
            buffer = buffers.get(index)
            if buffer is None and parameter.size == 0:
                continue  # a pointer that the kernel may never follow
            if buffer is None:
                raise MetalRuntimeError(self._explain([f"argument {index} is not passed"]))
            if parameter.size > buffer.available:
                raise MetalRuntimeError(
                    self._explain(
                        [f"argument {index} holds {buffer.available} bytes, and the kernel reads {parameter.size}"]
                    )
                )
            if why := element_mismatch(buffer.numbers, buffer.by_value, parameter.numbers):
                raise MetalRuntimeError(self._explain([f"argument {index} {why}"]))
            in_constant = any(a.index == index and a.in_constant for a in self._entry.arguments)
            checked = current_mode(self._mode) == "checked"
            if why := refused_by_validation(buffer, parameter.alignment, in_constant, checked):
                raise MetalRuntimeError(self._explain([f"argument {index} {why}"]))


def _dimensions(value: int | Sequence[int] | None, name: str) -> list[int] | None:
    if value is None:
        return None
    try:
        numbers = [operator.index(n) for n in (value if isinstance(value, Sequence) else [value])]
    except TypeError:
        numbers = [-1]
    if not all(0 <= n < 2**32 for n in numbers):
        raise MetalValueError(f"{name} must hold whole numbers from 0 to 2^32-1, not {value!r}")
    return numbers


def grid_and_group(
    args: Sequence[Any],
    threads: int | Sequence[int] | None,
    group_size: int | Sequence[int] | None,
    device: Device,
    limit: int,
) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """The grid and the threadgroup, in three dimensions each.

    Raises MetalRuntimeError or MetalValueError, as torch does, if they are missing, do not fit or exceed `limit`.
    """
    grid = _dimensions(threads, "threads")
    group = _dimensions(group_size, "group_size")
    if grid is None:
        grid = _default_threads(args, device)
    if grid is None or not 0 < len(grid) < 4:
        raise MetalRuntimeError("Number of threads is undefined or has wrong dimension: pass threads=")
    if group is not None and len(group) != len(grid):
        raise MetalRuntimeError(
            f"threads and group_size must have the same number of dimensions, not {len(grid)} and {len(group)}"
        )
    if group is None:
        group = [min(grid[0], limit) if len(grid) == 1 else limit] + [1] * (len(grid) - 1)
    total = 1
    for n in group:
        total *= n
    if total > limit:
        raise MetalValueError(f"Threadgroup size exceeds {limit} limit")
    if total == 0 and 0 not in grid:
        raise MetalValueError("group_size must be at least 1 in each dimension")
    padding = [1] * (3 - len(grid))
    x, y, z = [*grid, *padding]
    gx, gy, gz = [*group, *padding]
    return (x, y, z), (gx, gy, gz)


def _default_threads(args: Sequence[Any], device: Device) -> list[int] | None:
    torch = sys.modules.get("torch")
    for argument in args:
        if torch is not None and isinstance(argument, torch.Tensor):
            return [argument.numel()]
        if device == "cpu" and type(argument).__name__ == "ndarray":
            return [argument.size]
    return None


def compile_library(
    source: str,
    *,
    mode: Mode = "fast",
    filename: str | Path | None = None,
    include: Sequence[Path] = (),
    defines: Sequence[str] = (),
    constants: Mapping[int | str, bool | int | float] = NO_CONSTANTS,
    device: Device = "cpu",
) -> ShaderLibrary:
    """Compile Metal source as a project's build does, with includes and macros.

    Args:
        source: the program. `#include` finds the headers of the installed torch, and files beside `filename`.
        mode: the checking mode of its kernels; see `checking`.
        filename: the file of the source, for messages and includes.
        include: more folders for `#include`.
        defines: macros, as `NAME` or `NAME=VALUE`.
        constants: values of function constants by index or by name; the others stay undefined.
        device: "cpu" for CPU tensors and numpy arrays, "mps" for tensors of the simulated device.

    Raises:
        MetalSyntaxError: the source does not compile.
        MetalRuntimeError: a function constant cannot be set.
        CompilerMissingError: there is no compiler on this machine.
    """
    program = with_includes(source, filename, include, defines)
    return compile_program(replace(program, constants=constants_of(constants)), mode=mode, device=device)


def compile_program(program: ProgramSource, *, mode: Mode, device: Device) -> ShaderLibrary:
    """Compile a program with resolved includes.

    Raises:
        MetalSyntaxError: the source does not compile.
        CompilerMissingError: there is no compiler on this machine.
    """
    compiler = default_compiler()
    return ShaderLibrary(translate_and_build(program, compiler), compiler, validate_mode(mode), device)
