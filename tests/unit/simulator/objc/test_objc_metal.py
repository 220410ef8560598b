"""Metal's host side: each interface and each misuse by a small program of programs/metal.mm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mpsmith.simulator.metal.binding import NO_THREADS

pytestmark = pytest.mark.network  # Metal's declarations are fetched: mpsmith check --setup

SAYS = {
    "kernel": "0 then 49.5, completed 1",
    "descriptors": "14 retained",
    "threadgroups": "2016 2144",
    "empty_indirect_grid": "completed 1",
    "simd": "16: -3 6 14 5",
    "function_constants": "30 33.25 ",
    "argument_encoder": "40 bytes: 5 10 15 20",
    "blit": "-cdef---",
    "cxx_alone": "6 completed 1, 1 device",
    "no_copy": "same given back",
    "events": "0 then 3",
    "macros": "(from_macro)",
    "no_such_function": "nil",
    "metallib": "nil nil: there is no library x.metallib",
    "labels": "k k: 8 of 8",
    "device": "Apple GPU, simulated by mpsmith Apple7 32768",
}
# What Metal's validation layer ends a process for on a Mac.
MISUSES = {
    "second_encoder": "a command encoder is already encoding to this command buffer",
    "commit_while_encoding": "commit was called while a command encoder is encoding: endEncoding is missing",
    "committed_twice": "commit was called twice on the same command buffer",
    "encoder_after_commit": "an encoder was asked of a command buffer that is committed",
    "wait_before_commit": "waitUntilCompleted was called before commit: on a Mac this never returns",
    "never_committed": "a command buffer with 1 encoded command(s) was released without commit: none of them ran",
    "never_ended": "a command encoder was released without endEncoding; on a Mac this ends the process",
    "command_after_end": "a command was encoded after endEncoding",
    "ended_twice": "endEncoding was called twice on the same encoder",
    "no_pipeline": "dispatchThreads: was called before setComputePipelineState:",
    "argument_of_no_structure": "'k' has no reference to a structure at buffer index 0",
    "argument_without_a_buffer": "setBuffer: of an argument encoder was called before setArgumentBuffer:offset:",
    "argument_beyond_the_structure": "setBuffer: has the index 5, and the structure of the arguments holds 5 pointers",
    "argument_buffer_too_small": "takes 40 bytes from the offset 4, beyond the buffer's length of 40",
    "unset_bytes": "the kernel 'k' reads buffer 1 ('step'), and nothing is bound there",
    "unset_pointer": "null pointer",
    "too_few_bytes": "the kernel 'k' reads 4 bytes of buffer 1 ('step'), which holds 2",
    "store_beyond_buffer": "argument 0 ('out')",
    "index_beyond_30": "buffer index 31 is beyond 30, Metal's last",
    "offset_beyond_buffer": "setBuffer: has the offset 17 beyond the buffer's length of 16 at index 0",
    "large_set_bytes": "setBytes: takes at most 4096 bytes, not 4097: use a buffer at index 1",
    "large_group": "a threadgroup of 2048 threads is larger than the 1024 of maxTotalThreadsPerThreadgroup",
    "empty_group": NO_THREADS,
    "empty_buffer": "newBufferWithLength: a buffer of 0 bytes cannot be made",
    "uneven_threadgroup_memory": "setThreadgroupMemoryLength: needs a multiple of 16, not 24",
    "much_threadgroup_memory": "a threadgroup takes 32784 bytes of threadgroup memory; the limit is 32768",
    "fill_beyond_buffer": "fillBuffer: goes beyond the buffer's length",
    "copy_beyond_buffer": "copyFromBuffer: goes beyond the length of the destination",
    "event_never_signalled": "a command buffer waits for an event at 1, which is at 0",
    "buffer_after_release": "a released object was used again: -[SimulatedBuffer length]",
}


@pytest.mark.parametrize("name", SAYS)
def test_interfaces_behave_as_on_a_mac(run: Callable[[str], str], name: str) -> None:
    assert run(name) == SAYS[name]


@pytest.mark.parametrize("name", ["empty_grid", "empty_group", "empty_buffer", "uneven_threadgroup_memory"])
def test_a_mac_without_validation_goes_on(
    run: Callable[[str], str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPSMITH_METAL_MODE", "fast")
    assert run(name) == "ran"


@pytest.mark.parametrize("name", ["empty_grid", "empty_group", "empty_buffer", "uneven_threadgroup_memory"])
def test_validation_errors_can_be_collected(
    run: Callable[[str], str], name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MPSMITH_METAL_MODE", "checked")
    monkeypatch.setenv("MPSMITH_METAL_FINDINGS", str(tmp_path / "findings"))
    assert run(name) == "ran"
    assert (tmp_path / "findings").read_text() == f"{MISUSES.get(name, NO_THREADS)}\n"


def test_an_empty_grid_is_refused_where_metals_validation_is_on(
    run: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("empty_grid") == "ran"
    monkeypatch.setenv("MPSMITH_METAL_MODE", "checked")
    assert run("empty_grid") == f"threw: Metal, simulated: {NO_THREADS}"


def test_metal_source_that_does_not_compile_is_an_nserror_with_its_line(run: Callable[[str], str]) -> None:
    said = run("metal_error")
    assert said.startswith("nil: ")
    assert "program_source:2" in said
    assert "flot" in said


@pytest.mark.parametrize("name", MISUSES)
def test_a_misuse_is_an_error_that_says_which(run: Callable[[str], str], name: str) -> None:
    said = run(name)
    assert said.startswith("threw: ")
    assert MISUSES[name] in said
