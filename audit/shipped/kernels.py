"""A release's kernels as a worker process runs them: what they cost is theirs, not the case's that needs them first.

Compiling a kernel counts against no time limit of a case. A kernel that cannot be compiled is not tried again in this
process, and one that killed a worker process is not launched again in this audit: its calls are left to the stand-in.
One that does not end in time may be slow on the host alone, where a GPU has thousands of lanes: that case is run again
with the stand-ins, and only a kernel that did so in several cases is left out of all others.
"""

from __future__ import annotations

import math
import mmap
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from ...simulator.errors import SimulatorError
from ..model import time_limit

Size = tuple[int, int, int]

# So many threads of a launch the host runs within a case's time: those of kernels that wait, and of others.
MOST_WAITING_THREADS = 1 << 15
MOST_THREADS = 1 << 21

# The name of the kernel that is running, in a file that outlives the process.
LONGEST_NAME = 512
# In so many cases a kernel may fail to end in time before it is launched in no other.
MOST_SLOW = 2


class CompiledKernel(Protocol):
    """A kernel of a release (`simulator.air.library.AirKernel`)."""

    def compile(self) -> None:
        """Make it ready. Raises SimulatorError where that cannot be."""

    @property
    def waits(self) -> bool:
        """Whether its threads wait for each other."""

    def prepare(
        self, arguments: Mapping[str, object], threads: Size, group: Size, threadgroup_memory: Sequence[int] = ()
    ) -> Callable[[], None]:
        """What runs it. Raises SimulatorError where the arguments do not fit."""


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
        """What a kernel says of its arguments."""

    def kernel(self, name: str, /) -> CompiledKernel:
        """A kernel. Raises SimulatorError where its module cannot be read."""

    def uses_mathematics(self, name: str, /) -> bool:
        """Whether a kernel calls mathematics whose last bits are not known."""

    def moved(self, seed: int, /) -> KernelLibrary:
        """The same kernels with these last bits moved."""


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
        """What a kernel says of its arguments."""
        with time_limit.suspended():
            return self._library.signature(name)

    def kernel(self, name: str) -> AuditedKernel:
        """A kernel, compiled. Raises SimulatorError where that cannot be, or where it has ended a worker process."""
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
        """Whether a kernel calls mathematics whose last bits are not known."""
        with time_limit.suspended():
            return self._library.uses_mathematics(name)

    @contextmanager
    def moved(self, seed: int) -> Iterator[None]:
        """A context in which the results of the kernels' mathematics are moved within Apple's bounds."""
        plain = self._library, self._kernels, self._failures
        self._library, self._kernels, self._failures = self._library.moved(seed), {}, {}
        try:
            yield
        finally:
            self._library, self._kernels, self._failures = plain

    def skip_crashing_kernels(self) -> None:
        """From now on leave out the kernels that ended a worker process until now."""
        self._crashing = frozenset(crashing_kernels(self._scratch))

    def leave_out_none(self) -> None:
        """Launch every kernel, whatever it did before: for who wants to see it again."""
        self._crashing = frozenset()


class AuditedKernel:
    """One kernel, whose name is known while it runs."""

    def __init__(self, kernel: CompiledKernel, name: str, running: _RunningKernel) -> None:
        self._kernel, self._name, self._running = kernel, name.encode(), running

    def prepare(
        self, arguments: Mapping[str, object], threads: Size, group: Size, threadgroup_memory: Sequence[int] = ()
    ) -> Callable[[], None]:
        """What runs it.

        Raises SimulatorError where the arguments do not fit, or there are more threads than the host runs in time.
        """
        if math.prod(threads) > (MOST_WAITING_THREADS if self._kernel.waits else MOST_THREADS):
            raise SimulatorError("too many threads for the host")
        launch = self._kernel.prepare(arguments, threads, group, threadgroup_memory)

        def run() -> None:
            self._running.note(self._name)
            try:
                launch()
            finally:
                self._running.note(b"")

        return run


class _RunningKernel:
    """The name of the kernel that runs, in a file."""

    def __init__(self, path: Path) -> None:
        with path.open("w+b") as file:
            file.truncate(LONGEST_NAME)
            self._memory = mmap.mmap(file.fileno(), LONGEST_NAME)

    def note(self, name: bytes) -> None:
        self._memory[: len(name) + 1] = name + b"\0"


def running_file(scratch: Path, pid: int | None) -> Path:
    """Where the worker with this process id says which kernel it runs."""
    return scratch / f"{pid}.kernel"


def kernel_that_ran(scratch: Path, pid: int | None) -> str:
    """The kernel that a worker was in when it ended, "" where it was in none."""
    try:
        name, _, _ = running_file(scratch, pid).read_bytes().partition(b"\0")
    except OSError:
        return ""
    return name.decode()


def note_slow(scratch: Path, group: int, position: int, kernel: str) -> None:
    """Remember a case in which a kernel did not end in time."""
    with (scratch / "slow cases").open("a") as file:
        file.write(f"{group} {position} {kernel}\n")


def slow_positions(scratch: Path, group: int) -> frozenset[int]:
    """The cases of a group in which a kernel did not end in time: they are left to the stand-ins."""
    return frozenset(position for slow, position, _ in _slow_cases(scratch) if slow == group)


def _slow_cases(scratch: Path) -> list[tuple[int, int, str]]:
    try:
        lines = (scratch / "slow cases").read_text().splitlines()
    except OSError:
        return []
    return [(int(group), int(position), kernel) for group, position, kernel in (line.split(" ", 2) for line in lines)]


def note_crashing_kernel(scratch: Path, kernel: str) -> None:
    """Remember a kernel that ended a worker process."""
    with (scratch / "crashing kernels").open("a") as file:
        file.write(f"{kernel}\n")


def crashing_kernels(scratch: Path) -> list[str]:
    """The kernels that killed worker processes, or did not end in time in several cases."""
    slow = Counter(kernel for _, _, kernel in _slow_cases(scratch))
    too_slow = [kernel for kernel, times in slow.items() if times >= MOST_SLOW]
    try:
        return [*(scratch / "crashing kernels").read_text().splitlines(), *too_slow]
    except OSError:
        return too_slow
