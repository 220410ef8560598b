"""Shipped kernels in a worker process.

Compiling a kernel does not count against the time limit of a case. A kernel that cannot be compiled is not tried again
in this process. A kernel that crashed a worker is not launched again in this audit: its calls keep the stand-in. A
kernel that exceeds the time limit may be slow only on the host, without a GPU's thousands of lanes: that case runs
again with the stand-ins, and a kernel that did so in several cases is skipped in all others.
"""

from __future__ import annotations

import math
import mmap
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ...simulator.errors import SimulatorError
from ..model import time_limit

if TYPE_CHECKING:
    from ...simulator.metal.modes import Mode

Size = tuple[int, int, int]

# The most threads of a launch that the host runs in time: of kernels that synchronize, and of others.
MOST_WAITING_THREADS = 1 << 15
MOST_THREADS = 1 << 21

# The name of the kernel that is running, in a file that outlives the process.
LONGEST_NAME = 512
# A kernel that exceeded the time limit in this many cases is skipped.
MOST_SLOW = 2


class CompiledKernel(Protocol):
    """A kernel of a release (`simulator.air.library.AirKernel`)."""

    def compile(self) -> None:
        """Compile it. Raises SimulatorError if that fails."""

    @property
    def waits(self) -> bool:
        """Whether its threads synchronize."""

    @property
    def communicates(self) -> bool:
        """Whether its threads synchronize or use atomic operations."""

    def prepare(
        self, arguments: Mapping[str, object], threads: Size, group: Size, threadgroup_memory: Sequence[int] = ()
    ) -> Callable[[], None]:
        """Bind arguments and return the launch. Raises SimulatorError if they do not fit."""


class KernelLibrary(Protocol):
    """The kernels of a release (`simulator.air.library.AirLibrary`)."""

    @property
    def release(self) -> str:
        """The release of torch."""

    @property
    def names(self) -> Sequence[str]:
        """The names of all kernels."""

    def __contains__(self, name: str, /) -> bool: ...

    def signature(self, name: str, /) -> object:
        """The signature of a kernel."""

    def kernel(self, name: str, /) -> CompiledKernel:
        """A kernel. Raises SimulatorError if its module cannot be read."""

    def uses_mathematics(self, name: str, /) -> bool:
        """Whether a kernel calls functions of Apple's library whose last bits are unknown."""

    def moved(self, seed: int, /) -> KernelLibrary:
        """The same kernels with the last bits of library functions perturbed."""


class AuditedKernels:
    """The kernels of a release, for the workers of one audit.

    Args:
        library: the kernels.
        scratch: a folder that all workers of the audit share.
    """

    def __init__(self, library: KernelLibrary, scratch: Path) -> None:
        self._library = library
        self._scratch = scratch
        self._running = _RunningKernel(running_file(scratch, os.getpid()))
        self._kernels: dict[str, AuditedKernel] = {}
        self._failures: dict[str, str] = {}
        self._crashing: frozenset[str] = frozenset()
        self._moved: dict[int, tuple[KernelLibrary, dict[str, AuditedKernel], dict[str, str]]] = {}

    @property
    def release(self) -> str:
        """The release of torch."""
        return self._library.release

    @property
    def names(self) -> Sequence[str]:
        """The names of all kernels."""
        return self._library.names

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._library

    def signature(self, name: str) -> object:
        """The signature of a kernel."""
        with time_limit.suspended():
            return self._library.signature(name)

    def kernel(self, name: str) -> AuditedKernel:
        """A compiled kernel. Raises SimulatorError if it does not compile, or has crashed a worker."""
        if name in self._crashing:
            raise SimulatorError(f"the kernel {name} ended a worker process of this audit")
        if name in self._failures:
            raise SimulatorError(self._failures[name])
        if name not in self._kernels:
            try:
                with time_limit.suspended():
                    kernel = self._library.kernel(name)
                    kernel.compile()
            except SimulatorError as error:
                self._failures[name] = str(error)
                raise
            self._kernels[name] = AuditedKernel(kernel, name, self._running)
        return self._kernels[name]

    def uses_mathematics(self, name: str) -> bool:
        """Whether a kernel calls functions of Apple's library whose last bits are unknown."""
        with time_limit.suspended():
            return self._library.uses_mathematics(name)

    @contextmanager
    def moved(self, seed: int) -> Iterator[None]:
        """A context in which library functions of the kernels are perturbed within Apple's bounds."""
        plain = self._library, self._kernels, self._failures
        if seed not in self._moved:
            self._moved[seed] = self._library.moved(seed), {}, {}
        self._library, self._kernels, self._failures = self._moved[seed]
        try:
            yield
        finally:
            self._library, self._kernels, self._failures = plain

    def skip_crashing_kernels(self) -> None:
        """Skip the kernels that have crashed a worker so far."""
        self._crashing = frozenset(crashing_kernels(self._scratch))

    def skip_no_kernels(self) -> None:
        """Launch every kernel, also those that crashed: to reproduce a crash."""
        self._crashing = frozenset()


class AuditedKernel:
    """One kernel, which records its name while it runs."""

    def __init__(self, kernel: CompiledKernel, name: str, running: _RunningKernel) -> None:
        # A Mac's audit imports this module, and no Metal.
        from ...simulator.air.library import MOST_QUICK_THREADS
        from ...simulator.metal.modes import affordable_mode, checking

        self._kernel, self._name, self._running = kernel, name.encode(), running
        self._communicates = kernel.communicates
        self._most_threads = MOST_WAITING_THREADS if kernel.waits else MOST_THREADS
        self._most_quick_threads, self._checking, self._affordable_mode = MOST_QUICK_THREADS, checking, affordable_mode
        self._builds: set[tuple[Mode, bool]] = set()

    def prepare(
        self, arguments: Mapping[str, object], threads: Size, group: Size, threadgroup_memory: Sequence[int] = ()
    ) -> Callable[[], None]:
        """A function that launches in the current mode; in `fast` if threads are many or do not communicate.

        Raises SimulatorError if the arguments do not fit, or if there are too many threads for the host.
        """
        all_threads = math.prod(threads)
        if all_threads > self._most_threads:
            raise SimulatorError("too many threads for the host")
        with self._checking(self._affordable_mode(self._communicates, all_threads)) as mode:
            build = mode, all_threads > self._most_quick_threads
            # The first launch of a build compiles it.
            unlimited = nullcontext() if build in self._builds else time_limit.suspended()
            self._builds.add(build)
            with unlimited:
                launch = self._kernel.prepare(arguments, threads, group, threadgroup_memory)

        def run() -> None:
            self._running.note(self._name)
            try:
                launch()
            finally:
                self._running.note(b"")

        return run


class _RunningKernel:
    """A file with the name of the running kernel."""

    def __init__(self, path: Path) -> None:
        with path.open("w+b") as file:
            file.truncate(LONGEST_NAME)
            self._memory = mmap.mmap(file.fileno(), LONGEST_NAME)

    def note(self, name: bytes) -> None:
        self._memory[: len(name) + 1] = name + b"\0"


def running_file(scratch: Path, pid: int | None) -> Path:
    """The file with the running kernel of the worker with this process id."""
    return scratch / f"{pid}.kernel"


def kernel_that_ran(scratch: Path, pid: int | None) -> str:
    """The kernel that a worker was running when it ended, or ""."""
    try:
        name, _, _ = running_file(scratch, pid).read_bytes().partition(b"\0")
    except OSError:
        return ""
    return name.decode()


def record_slow_case(scratch: Path, group: int, position: int, kernel: str) -> None:
    """Record a case in which a kernel exceeded the time limit."""
    with (scratch / "slow cases").open("a") as file:
        file.write(f"{group} {position} {kernel}\n")


def slow_positions(scratch: Path, group: int) -> frozenset[int]:
    """The cases of a group in which a kernel exceeded the time limit. They run with the stand-ins."""
    return frozenset(position for slow, position, _ in _slow_cases(scratch) if slow == group)


def _slow_cases(scratch: Path) -> list[tuple[int, int, str]]:
    try:
        lines = (scratch / "slow cases").read_text().splitlines()
    except OSError:
        return []
    return [(int(group), int(position), kernel) for group, position, kernel in (line.split(" ", 2) for line in lines)]


def record_crashing_kernel(scratch: Path, kernel: str) -> None:
    """Record a kernel that crashed a worker."""
    with (scratch / "crashing kernels").open("a") as file:
        file.write(f"{kernel}\n")


def crashing_kernels(scratch: Path) -> list[str]:
    """The kernels that crashed workers, or exceeded the time limit in several cases."""
    slow = Counter(kernel for _, _, kernel in _slow_cases(scratch))
    too_slow = [kernel for kernel, times in slow.items() if times >= MOST_SLOW]
    try:
        return [*(scratch / "crashing kernels").read_text().splitlines(), *too_slow]
    except OSError:
        return too_slow
