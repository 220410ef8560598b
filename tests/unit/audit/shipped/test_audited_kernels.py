"""A shipped kernel costs what it costs itself: its compilation no case, its failure one try, its hang one process."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from mpsmith.audit.model import time_limit
from mpsmith.audit.shipped.kernels import (
    AuditedKernels,
    crashing_kernels,
    kernel_that_ran,
    record_crashing_kernel,
    record_slow_case,
    slow_positions,
)
from mpsmith.simulator.errors import SimulatorError
from mpsmith.simulator.metal.modes import MOST_CHECKED_THREADS, Mode, checking, current_mode

GRID = (1, 1, 1)


class FakeKernel:
    def __init__(self, library: FakeLibrary, name: str) -> None:
        self.library, self.name = library, name
        self.waits = self.communicates = name == "waiting"

    def compile(self) -> None:
        self.library.compiled.append(self.name)
        self.library.limits.append(signal.getitimer(signal.ITIMER_PROF)[0])
        if self.name == "broken":
            raise SimulatorError("the compiler refuses it")

    def prepare(
        self, arguments: Mapping[str, object], threads: object, group: object, threadgroup_memory: Sequence[int] = ()
    ) -> Callable[[], None]:
        self.library.modes.append(current_mode("fast"))
        self.library.limits.append(signal.getitimer(signal.ITIMER_PROF)[0])
        return lambda: self.library.launched(self.name)


class FakeLibrary:
    release = "9.9.9"
    names = ("good", "broken", "waiting")

    def __init__(self) -> None:
        self.compiled: list[str] = []
        self.limits: list[float] = []
        self.modes: list[Mode] = []
        self.launched: Callable[[str], None] = lambda name: None

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def signature(self, name: str) -> object:
        self.limits.append(signal.getitimer(signal.ITIMER_PROF)[0])
        return f"signature of {name}"

    def kernel(self, name: str) -> FakeKernel:
        return FakeKernel(self, name)

    def uses_mathematics(self, name: str) -> bool:
        return name == "good"

    def moved(self, seed: int) -> FakeLibrary:
        return FakeLibrary()


@pytest.fixture
def library() -> FakeLibrary:
    return FakeLibrary()


@pytest.fixture
def kernels(library: FakeLibrary, tmp_path: Path) -> AuditedKernels:
    return AuditedKernels(library, tmp_path)


def test_library_attributes_are_forwarded(kernels: AuditedKernels) -> None:
    assert (kernels.release, kernels.names) == ("9.9.9", FakeLibrary.names)
    assert kernels.signature("good") == "signature of good"
    assert "good" in kernels
    assert "other" not in kernels
    assert 3 not in kernels


def test_compiling_counts_against_no_limit(kernels: AuditedKernels, library: FakeLibrary) -> None:
    time_limit.start(1000)
    kernels.signature("good")
    kernels.kernel("good").prepare({}, GRID, GRID)
    left = signal.getitimer(signal.ITIMER_PROF)[0]
    time_limit.stop()
    assert library.limits == [0, 0, 0]
    assert 900 < left <= 1001


def test_a_kernel_is_compiled_once_whether_it_can_be_or_not(kernels: AuditedKernels, library: FakeLibrary) -> None:
    for _ in range(2):
        kernels.kernel("good").prepare({}, GRID, GRID)()
        with pytest.raises(SimulatorError, match=r"^the compiler refuses it$"):
            kernels.kernel("broken")
    assert library.compiled == ["good", "broken"]


def test_kernels_whose_threads_communicate_run_in_the_mode_of_their_case(
    kernels: AuditedKernels, library: FakeLibrary
) -> None:
    waiting, many = kernels.kernel("waiting"), (MOST_CHECKED_THREADS + 1, 1, 1)
    waiting.prepare({}, GRID, GRID)
    with checking("schedules"):
        waiting.prepare({}, GRID, GRID)
    with checking("checked"):
        waiting.prepare({}, GRID, GRID)
        waiting.prepare({}, many, GRID)
        kernels.kernel("good").prepare({}, GRID, GRID)
    assert library.modes == ["fast", "schedules", "checked", "fast", "fast"]


def test_moved_kernels_are_others_until_the_context_ends(kernels: AuditedKernels, library: FakeLibrary) -> None:
    plain = kernels.kernel("good")
    with kernels.moved(1):
        moved = kernels.kernel("good")
        assert moved is not plain
        assert library.compiled == ["good"]
    assert kernels.kernel("good") is plain
    with kernels.moved(1):
        assert kernels.kernel("good") is moved
    with kernels.moved(2):
        assert kernels.kernel("good") is not moved


def test_the_kernel_that_runs_is_known_to_who_finds_the_process_gone(
    kernels: AuditedKernels, library: FakeLibrary, tmp_path: Path
) -> None:
    seen: list[str] = []
    library.launched = lambda name: seen.append(kernel_that_ran(tmp_path, os.getpid()))
    assert kernel_that_ran(tmp_path, os.getpid()) == ""
    kernels.kernel("good").prepare({}, GRID, GRID)()
    assert seen == ["good"]
    assert kernel_that_ran(tmp_path, os.getpid()) == ""
    assert kernel_that_ran(tmp_path, 0) == ""


def test_a_kernel_that_raises_ran_to_its_end(kernels: AuditedKernels, library: FakeLibrary, tmp_path: Path) -> None:
    def out_of_bounds(name: str) -> None:
        raise SimulatorError(f"{name} reads out of bounds")

    library.launched = out_of_bounds
    with pytest.raises(SimulatorError, match="out of bounds"):
        kernels.kernel("good").prepare({}, GRID, GRID)()
    assert kernel_that_ran(tmp_path, os.getpid()) == ""


def test_kernels_that_crashed_a_worker_are_skipped_later(kernels: AuditedKernels, tmp_path: Path) -> None:
    kernels.kernel("good")
    record_crashing_kernel(tmp_path, "good")
    assert crashing_kernels(tmp_path) == ["good"]
    kernels.skip_crashing_kernels()
    with pytest.raises(SimulatorError, match="the kernel good ended a worker process of this audit"):
        kernels.kernel("good")
    kernels.skip_no_kernels()
    kernels.kernel("good")


def test_a_launch_too_large_for_the_host_is_left_to_the_stand_in(kernels: AuditedKernels) -> None:
    kernels.kernel("waiting").prepare({}, (1024, 32, 1), GRID)
    kernels.kernel("good").prepare({}, (1024, 2048, 1), GRID)
    for name, threads in (("waiting", (1024, 33, 1)), ("good", (1024, 2049, 1))):
        with pytest.raises(SimulatorError, match=r"^too many threads for the host$"):
            kernels.kernel(name).prepare({}, threads, GRID)


def test_a_slow_case_is_left_to_the_stand_ins_and_a_kernel_that_is_slow_twice_left_out(tmp_path: Path) -> None:
    assert slow_positions(tmp_path, 3) == frozenset()
    record_slow_case(tmp_path, 3, 7, "sort block")
    assert slow_positions(tmp_path, 3) == {7}
    assert slow_positions(tmp_path, 4) == frozenset()
    assert crashing_kernels(tmp_path) == []
    record_slow_case(tmp_path, 4, 0, "sort block")
    assert crashing_kernels(tmp_path) == ["sort block"]
    record_crashing_kernel(tmp_path, "other")
    assert crashing_kernels(tmp_path) == ["other", "sort block"]
