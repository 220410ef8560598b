"""Kernels run as `metal.checking` says: each access watched, or the threads in several orders."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from mpsmith.simulator.air.bound_kernels import BoundKernel
from mpsmith.simulator.air.library import AirKernel
from mpsmith.simulator.errors import KernelFault
from mpsmith.simulator.metal import checking
from mpsmith.simulator.metal.binding import Buffer
from support.air_kernels import air_library, buffer, builtin, kernel
from support.needs import needs_metal_on_host

needs_metal_on_host()

VARIABLE = "@_ZZ4testE6shared = internal addrspace(3) global [64 x float] undef, align 4\n"
BARRIER = "declare void @air.wg.barrier(i32, i32)\n"
ARGUMENTS = [buffer("in", "float", 0), buffer("out", "float", 1), builtin("thread_position_in_threadgroup")]
PARAMETERS = "ptr addrspace(1) %in, ptr addrspace(1) %out, i32 %t"
SHARED = """
  %l = zext i32 %t to i64
  %p = getelementptr float, ptr addrspace(1) %in, i64 %l
  %v = load float, ptr addrspace(1) %p
  %s = getelementptr [64 x float], ptr addrspace(3) @_ZZ4testE6shared, i64 0, i64 %l
  store float %v, ptr addrspace(3) %s
  BARRIER
  %m = sub i64 63, %l
  %r = getelementptr [64 x float], ptr addrspace(3) @_ZZ4testE6shared, i64 0, i64 %m
  %w = load float, ptr addrspace(3) %r
  %q = getelementptr float, ptr addrspace(1) %out, i64 %l
  store float %w, ptr addrspace(1) %q
"""


def reversing(folder: Path, barrier: str) -> AirKernel:
    """A kernel that reverses 64 numbers over memory of the threadgroup, with a barrier or without one."""
    text = kernel("k", PARAMETERS, ARGUMENTS, SHARED.replace("BARRIER", barrier), declarations=VARIABLE + BARRIER)
    return air_library(folder, {"k": text}).kernel("k")


def launch(k: AirKernel, threads: int = 64) -> torch.Tensor:
    x, out = torch.arange(float(threads)), torch.zeros(threads)
    k.launch({"in": x, "out": out}, [threads], [threads])
    return out


@pytest.mark.parametrize("mode", ["checked", "schedules"])
def test_a_sound_kernel_gives_the_same(tmp_path: Path, mode: str) -> None:
    with checking(mode):  # type: ignore[arg-type]
        out = launch(reversing(tmp_path, "call void @air.wg.barrier(i32 2, i32 1)"))
    assert torch.equal(out, torch.arange(63.0, -1, -1))


def test_threads_may_return_before_a_barrier_of_the_others(tmp_path: Path) -> None:
    body = """  %l = zext i32 %t to i64
  %inside = icmp ult i32 %t, 40
  br i1 %inside, label %reads, label %end
reads:
  %p = getelementptr float, ptr addrspace(1) %in, i64 %l
  %v = load float, ptr addrspace(1) %p
  call void @air.wg.barrier(i32 2, i32 1)
  %q = getelementptr float, ptr addrspace(1) %out, i64 %l
  store float %v, ptr addrspace(1) %q
  br label %end
end:"""
    k = air_library(tmp_path, {"k": kernel("k", PARAMETERS, ARGUMENTS, body, declarations=BARRIER)}).kernel("k")
    with checking("checked"):
        out = launch(k)
    assert torch.equal(out, torch.arange(64.0).where(torch.arange(64) < 40, 0.0))


def test_a_missing_barrier_is_a_race_on_a_variable_of_the_threadgroup(tmp_path: Path) -> None:
    k = reversing(tmp_path, "")
    with checking("checked"), pytest.raises(KernelFault, match=r"byte .* of threadgroup variable 'shared'"):
        launch(k)


def test_a_barrier_for_other_memory_does_not_count(tmp_path: Path) -> None:
    k = reversing(tmp_path, "call void @air.wg.barrier(i32 1, i32 1)")
    with checking("checked"), pytest.raises(KernelFault, match="data race"):
        launch(k)


def test_a_result_that_depends_on_the_order_of_threads_is_seen(tmp_path: Path) -> None:
    body = """
  %v = uitofp i32 %t to float
  store float %v, ptr addrspace(1) %out
"""
    k = air_library(tmp_path, {"k": kernel("k", PARAMETERS, ARGUMENTS, body)}).kernel("k")
    with checking("schedules"), pytest.raises(KernelFault, match=r"argument 1 \('out'\) depends on the order"):
        launch(k)
    with checking("checked"), pytest.raises(KernelFault, match=r"data race on byte 2 of argument 1 \('out'\)"):
        launch(k)


ATOMIC = """
  %o = call float @air.atomic.global.add.f32(ptr addrspace(1) %out, float 1.0, i32 0, i32 2, i1 true)
"""


@pytest.mark.parametrize("mode", ["checked", "schedules"])
def test_atomic_operations_are_not_a_race(tmp_path: Path, mode: str) -> None:
    declaration = "declare float @air.atomic.global.add.f32(ptr addrspace(1), float, i32, i32, i1)"
    text = kernel("k", PARAMETERS, ARGUMENTS, ATOMIC, declarations=declaration)
    with checking(mode):  # type: ignore[arg-type]
        assert launch(air_library(tmp_path, {"k": text}).kernel("k"))[0] == 64


def test_host_code_launches_what_communicates_and_is_small_in_the_mode_of_its_case(tmp_path: Path) -> None:
    body = "  store float 3.0, ptr addrspace(1) %out"
    declaration = "declare float @air.atomic.global.add.f32(ptr addrspace(1), float, i32, i32, i1)"
    texts = {
        "alone": kernel("alone", PARAMETERS, ARGUMENTS, body),
        "atomic": kernel("atomic", PARAMETERS, ARGUMENTS, ATOMIC + body, declarations=declaration),
    }
    library = air_library(tmp_path, texts)
    out = torch.zeros(64)
    memory = Buffer(out.data_ptr(), out.data_ptr(), 256, out)

    def launch_bound(name: str, threads: int) -> None:
        BoundKernel(library.kernel(name)).launch((threads, 1, 1), (64, 1, 1), {0: memory, 1: memory}, {})

    with checking("checked"):
        launch_bound("alone", 64)
        launch_bound("atomic", 4160)
        with pytest.raises(KernelFault, match="data race"):
            launch_bound("atomic", 4096)
    launch_bound("atomic", 64)


def test_an_atomic_operation_and_a_plain_store_are_a_race(tmp_path: Path) -> None:
    declaration = "declare float @air.atomic.global.add.f32(ptr addrspace(1), float, i32, i32, i1)"
    body = ATOMIC + "  store float 3.0, ptr addrspace(1) %out"
    k = air_library(tmp_path, {"k": kernel("k", PARAMETERS, ARGUMENTS, body, declarations=declaration)}).kernel("k")
    with checking("checked"), pytest.raises(KernelFault, match="data race on byte 0"):
        launch(k)


def test_a_variable_of_the_threadgroup_has_bounds(tmp_path: Path) -> None:
    k = reversing(tmp_path, "call void @air.wg.barrier(i32 2, i32 1)")
    with checking("checked"), pytest.raises(KernelFault, match=r"out of bounds .* threadgroup variable 'shared'"):
        launch(k, 70)


def test_checks_in_one_place_are_for_large_buffers_too(tmp_path: Path) -> None:
    body = """
  %i = zext i32 %t to i64
  %far = mul i64 %i, 4096
  %p = getelementptr float, ptr addrspace(1) %out, i64 %far
  store float 1.0, ptr addrspace(1) %p
"""
    k = air_library(tmp_path, {"k": kernel("k", PARAMETERS, ARGUMENTS, body)}).kernel("k")
    arguments = {"in": None, "out": torch.zeros(200_000)}
    with checking("checked"), pytest.raises(KernelFault, match=r"past the end of argument 1 \('out'\) \(800000"):
        k.launch(arguments, [64], [64])
