"""A release's compiled kernels by name, to launch on the host."""

from __future__ import annotations

import copy
import ctypes
import math
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ...errors import one_line
from ...metal_limits import MAX_BUFFERS, MAX_THREADGROUP_MEMORY, MAX_THREADS_PER_THREADGROUP
from ..errors import (
    AirError,
    KernelArgumentError,
    KernelCompileError,
    KernelFault,
    MetalRuntimeError,
    UnsupportedKernelError,
)
from ..metal.binding import NO_THREADS, Buffer, refused_by_validation
from ..metal.dispatch import GridLaunch, LoadedKernel, load_kernel, runtime_of
from ..metal.function_constants import Constant
from ..metal.modes import Mode, current_mode, mode_from_environment
from ..metal.regions import GUARDED_BYTES, merged_regions
from ..metal.schedules import run_schedules
from .binding import BoundArguments, Constants, bind
from .bitcode import declared_functions, signature_of_bitcode
from .compiler import AirCompiler, Build, default_air_compiler
from .container import LibraryFile, Version
from .entry_point import ENTRY, FIRST_THREADGROUP_SLOT
from .intrinsics import Perturbation
from .intrinsics.accuracy import is_moved
from .signature import CONSTANT, KernelSignature

Size = tuple[int, int, int]

NEWEST_AIR = Version(2, 8)
"""The newest version of AIR in a release of torch, whose kernels have run here."""


MOST_QUICK_THREADS = 1 << 16
"""The largest grid of a kernel that is compiled without optimization: with more threads that takes longer in all."""

SLOW_SECONDS = 0.5
"""A kernel of which one launch took more processor time is compiled with optimization. Its results are the same."""


class AirLibrary:
    """The kernels of a Metal library; each is compiled on its first launch. A project's own library has no release."""

    def __init__(self, path: Path, release: str = "", compiler: AirCompiler | None = None) -> None:
        self.path = path
        self.release = release
        self._file = LibraryFile(path)
        self._compiler = compiler
        self._signatures: dict[str, KernelSignature] = {}
        self._kernels: dict[str, AirKernel] = {}
        self.given: tuple[Constant, ...] | None = None if release else ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all kernels, in the library's order."""
        return self._file.names

    def __contains__(self, name: str) -> bool:
        return name in self._file

    def signature(self, name: str) -> KernelSignature:
        """The arguments of a kernel, read without compiling it.

        Raises:
            KeyError: there is no such kernel.
            AirError: its module cannot be read.
        """
        if name not in self._signatures:
            bitcode = self._file.bitcode(name)
            version = self._file.function(name).air
            try:
                if version > NEWEST_AIR and not self.release:
                    raise UnsupportedKernelError(f"the simulator does not support AIR {version}, only to {NEWEST_AIR}")
                self._signatures[name] = signature_of_bitcode(bitcode, name)
            except AirError as error:
                raise _about(error, name, self.release) from None
        return self._signatures[name]

    def kernel(self, name: str) -> AirKernel:
        """A kernel of the library.

        Raises:
            KeyError: there is no such kernel.
            AirError: its module cannot be read.
        """
        if name not in self._kernels:
            signature = self.signature(name)
            self._kernels[name] = AirKernel(signature, self._file.bitcode(name), self)
        return self._kernels[name]

    def specialized(self, constants: Sequence[Constant]) -> AirLibrary:
        """The same kernels with these values of their function constants."""
        other = copy.copy(self)
        other.given, other._kernels = tuple(constants), {}
        return other

    def moved(self, seed: int) -> AirLibrary:
        """The same kernels with results of mathematical functions moved within Apple's bounds, by this seed."""
        other = copy.copy(self)
        other._compiler, other._kernels = self.compiler.under(Perturbation(seed)), {}
        return other

    def uses_mathematics(self, name: str) -> bool:
        """Whether a kernel calls mathematical functions that Apple does not specify exactly.

        Raises:
            KeyError: there is no such kernel.
            AirError: its module cannot be read.
        """
        return is_moved(declared_functions(self._file.bitcode(name)))

    @property
    def compiler(self) -> AirCompiler:
        """The compiler of the kernels: the installed one by default."""
        if self._compiler is None:
            self._compiler = default_air_compiler()
        return self._compiler


def _about(error: AirError, name: str, release: str) -> AirError:
    return type(error)(f"{_named(name, release)}: {error}")


def _named(kernel: str, release: str) -> str:
    return f"shipped kernel {kernel} of torch {release}" if release else f"simulated Metal kernel '{kernel}'"


class AirKernel:
    """A kernel, compiled for the host on its first launch."""

    def __init__(self, signature: KernelSignature, bitcode: bytes, library: AirLibrary) -> None:
        self.signature = signature
        self.release, self._compiler, self._given = library.release, library.compiler, library.given
        self._bitcode = bitcode
        self._mode: Mode = "fast" if self.release else mode_from_environment()
        self._loaded: dict[Build, LoadedKernel] = {}
        self._constants: Constants = {}
        self._loading = threading.Lock()
        self._slow = False
        self._written = frozenset(argument.index for argument in signature.buffers if argument.writable)
        self._indirect = [argument for argument in signature.buffers if argument.indirect and argument.used]

    def __repr__(self) -> str:
        return f"<{_named(self.signature.name, self.release)}>"

    @property
    def max_threads(self) -> int:
        """The largest threadgroup."""
        return self.signature.max_threads or MAX_THREADS_PER_THREADGROUP

    @property
    def waits(self) -> bool:
        """Whether its threads wait for each other, which needs a stack switch for each; compiles the kernel."""
        return self._kernel("quick").blocking

    @property
    def communicates(self) -> bool:
        """Whether its threads wait for each other or use atomic operations; compiles the kernel."""
        kernel = self._kernel("quick")
        return kernel.blocking or kernel.uses_atomics

    def compile(self) -> None:
        """Compile and load the kernel before its first launch.

        Raises:
            AirError: it cannot be compiled.
        """
        self._kernel("quick")

    def launch(
        self,
        arguments: Mapping[str, object],
        threads: Sequence[int],
        group: Sequence[int],
        threadgroup_memory: Sequence[int] = (),
    ) -> None:
        """Run the kernel and wait for it.

        Raises:
            KernelArgumentError: the launch does not fit the kernel.
            KernelFault: the kernel did something invalid.
            AirError: it cannot be compiled.
        """
        self.prepare(arguments, threads, group, threadgroup_memory)()

    def prepare(
        self,
        arguments: Mapping[str, object],
        threads: Sequence[int],
        group: Sequence[int],
        threadgroup_memory: Sequence[int] = (),
    ) -> Callable[[], None]:
        """Bind the arguments, compile the kernel if needed, and return a function that runs it.

        The function raises KernelFault if the kernel does something invalid.

        Args:
            arguments: values by argument name, as for `binding.bind`.
            threads: the grid, in one to three dimensions.
            group: threads of a threadgroup, in the same dimensions.
            threadgroup_memory: bytes of each threadgroup argument.

        Raises:
            KernelArgumentError: the launch does not fit the kernel.
            AirError: it cannot be compiled.
        """
        try:
            grid, size = self._dimensions(threads, group)
            bound = bind(self.signature, arguments, self._constants)
            shared = self._threadgroup_buffers(threadgroup_memory)
            if why := self._refused(bound.buffers, grid):
                raise KernelArgumentError(why)
        except (KernelArgumentError, MetalRuntimeError) as error:
            raise _about(KernelArgumentError(str(error)), self.signature.name, self.release) from None
        return self._prepared(bound, shared, grid, size)

    def run_bound(self, grid: Size, group: Size, buffers: Mapping[int, Buffer], memory: Mapping[int, Buffer]) -> None:
        """Run the kernel on memory that host code bound: buffers and threadgroup memory by index.

        Raises:
            KernelFault: the kernel did something invalid.
            AirError: it cannot be compiled.
        """
        if why := self._refused(buffers, grid):
            raise KernelFault(self._explained([why], buffers))
        shared = {FIRST_THREADGROUP_SLOT + index: buffer for index, buffer in memory.items()}
        self._prepared(BoundArguments(buffers, self._pointed_at(buffers)), shared, grid, group)()

    def _pointed_at(self, buffers: Mapping[int, Buffer]) -> tuple[Buffer, ...]:
        """The bound buffers into which an argument buffer of pointers points, too."""
        given = [argument for argument in self._indirect if argument.index in buffers]
        if not given:
            return ()
        words = {w for a in given for w in (ctypes.c_uint64 * (a.size // 8)).from_address(buffers[a.index].address)}
        return tuple(b for b in buffers.values() if any(b.base <= word < b.base + b.size for word in words))

    def _prepared(
        self, bound: BoundArguments, shared: Mapping[int, Buffer], grid: Size, group: Size
    ) -> Callable[[], None]:
        mode = current_mode(self._mode)
        fast: Build = "quick" if math.prod(grid) <= MOST_QUICK_THREADS and not self._slow else "optimized"
        kernel = self._kernel("checked" if mode == "checked" else fast)
        launch = self._grid_launch(bound, shared, mode, grid, group)

        def run_in_order(schedule: GridLaunch) -> None:
            begin = time.process_time()
            messages = runtime_of(self._compiler.scheduler).run(kernel, schedule)
            self._slow |= time.process_time() - begin > SLOW_SECONDS
            if messages:
                raise KernelFault(self._explained(messages, {**bound.buffers, **shared}))

        def run() -> None:  # the closure keeps the memory of the launch alive
            if mode != "schedules":
                run_in_order(launch)
            elif (difference := run_schedules(run_in_order, launch)) and not kernel.uses_atomics:
                raise KernelFault(self._explained([difference], bound.buffers))

        return run

    # ------------------------------------------------------------------------------------------ building
    def _kernel(self, build: Build) -> LoadedKernel:
        if build not in self._loaded:
            with self._loading:
                self._loaded[build] = self._loaded.get(build) or self._load(build)
        return self._loaded[build]

    def _load(self, build: Build) -> LoadedKernel:
        runtime_of(self._compiler.scheduler)  # its symbols must be there before the kernel is loaded
        try:
            path, content = self._compiler.built(self._bitcode, self.signature.name, build, self._given)
        except AirError as error:
            raise _about(error, self.signature.name, self.release) from None
        try:
            return load_kernel(str(path), content, ENTRY, checked=build == "checked")
        except OSError as error:
            failure = KernelCompileError(f"its code cannot be loaded: {one_line(error, 300)}")
            raise _about(failure, self.signature.name, self.release) from None

    # ------------------------------------------------------------------------------------------ launching
    def _dimensions(self, threads: Sequence[int], group: Sequence[int]) -> tuple[Size, Size]:
        if not 1 <= len(threads) == len(group) <= 3:
            raise KernelArgumentError(f"threads {tuple(threads)} and group {tuple(group)} need the same dimensions")
        if not all(0 <= n < 2**32 for n in threads) or not all(n > 0 for n in group):
            raise KernelArgumentError(f"threads {tuple(threads)} and group {tuple(group)} are not sizes")
        total = 1
        for n in group:
            total *= n
        if total > self.max_threads:
            raise KernelArgumentError(f"a threadgroup of {total} threads, and the kernel takes {self.max_threads}")
        x, y, z = [*threads, 1, 1][:3]
        group_x, group_y, group_z = [*group, 1, 1][:3]
        return (x, y, z), (group_x, group_y, group_z)

    def _refused(self, buffers: Mapping[int, Buffer], grid: Size) -> str | None:
        """Why Metal's validation refuses a launch, or None."""
        if 0 in grid:
            return NO_THREADS
        checked = current_mode(self._mode) == "checked"
        for argument in self.signature.buffers:
            if argument.used and argument.index in buffers:
                in_constant = argument.address_space == CONSTANT
                why = refused_by_validation(buffers[argument.index], argument.alignment, in_constant, checked)
                if why:
                    return f"argument {argument.name} {why}"
        return None

    def _threadgroup_buffers(self, sizes: Sequence[int]) -> dict[int, Buffer]:
        arguments = self.signature.threadgroup_buffers
        if len(sizes) != len(arguments):
            names = ", ".join(argument.name for argument in arguments) or "none"
            raise KernelArgumentError(f"{len(sizes)} lengths of threadgroup memory; it has these: {names}")
        limit = MAX_THREADGROUP_MEMORY
        if sum(sizes) > limit:
            raise KernelArgumentError(f"{sum(sizes)} bytes of threadgroup memory; the limit is {limit}")
        buffers = {}
        for argument, size in zip(arguments, sizes, strict=True):
            memory = ctypes.create_string_buffer(b"\xff" * size, size)  # NaN to every float type
            address = ctypes.addressof(memory)
            buffers[FIRST_THREADGROUP_SLOT + argument.index] = Buffer(address, address, size, memory)
        return buffers

    def _grid_launch(
        self, bound: BoundArguments, shared: Mapping[int, Buffer], mode: Mode, grid: Size, group: Size
    ) -> GridLaunch:
        buffers = {**bound.buffers, **shared}
        addresses = [0] * (FIRST_THREADGROUP_SLOT + MAX_BUFFERS if shared else MAX_BUFFERS)
        for index, buffer in buffers.items():
            addresses[index] = buffer.address
        guarded = mode != "fast" or sum(buffer.size for buffer in buffers.values()) <= GUARDED_BYTES
        # Memory behind pointers is not copied, so the same memory as an argument must not be copied either.
        in_place = [(buffer.base, buffer.base + buffer.size) for buffer in bound.pointed_at]
        guards = {
            index: buffer
            for index, buffer in buffers.items()
            if not any(begin < buffer.base + buffer.size and buffer.base < end for begin, end in in_place)
        }
        regions = merged_regions(guards, self._written) if guarded else []
        flushing = self.signature.flush_denormals
        return GridLaunch(
            *(grid, group, addresses, regions),
            one_by_one=mode != "fast",
            flush_denormals=flushing,
            # Metal's specification does not say so, but Apple's GPUs do, and shipped kernels such as
            # sum_reduction_outer rely on it.
            returned_arrive=True,
        )

    def _explained(self, messages: Sequence[str], bound: Mapping[int, Buffer]) -> str:
        names = {argument.index: argument.name for argument in self.signature.buffers}
        names |= {FIRST_THREADGROUP_SLOT + a.index: a.name for a in self.signature.threadgroup_buffers}

        def with_name(match: re.Match[str]) -> str:
            name = names.get(int(match[1]))
            return f"argument {match[1]} ('{name}')" if name else match[0]

        text = "; ".join(re.sub(r"\bargument (\d+)", with_name, message) for message in messages)
        unbound = [a.name for a in self.signature.buffers if a.used and a.index not in bound]
        if unbound and "null pointer" in text:
            text += f"; not bound: {', '.join(unbound)}"
        return f"{_named(self.signature.name, self.release)}: {text}"
