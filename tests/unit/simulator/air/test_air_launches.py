"""Kernels written by hand run on the host: values, positions, threadgroups, faults."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest
import torch

from mpsmith.simulator.air.bound_kernels import BoundKernel
from mpsmith.simulator.air.library import AirLibrary
from mpsmith.simulator.errors import KernelArgumentError, KernelFault
from mpsmith.simulator.metal.binding import Buffer
from support.air_kernels import FLUSHING, RELEASE, air_library, buffer, builtin, elementwise, kernel
from support.needs import needs_metal_on_host

needs_metal_on_host()

COPY = """
  %i = zext i32 %t to i64
  %p = getelementptr float, ptr addrspace(1) %in, i64 %i
  %v = load float, ptr addrspace(1) %p
  %q = getelementptr float, ptr addrspace(1) %out, i64 %i
  store float %v, ptr addrspace(1) %q
"""
TWO_BUFFERS = [buffer("in", "float", 0), buffer("out", "float", 1), builtin("thread_position_in_grid")]
TWO_PARAMETERS = "ptr addrspace(1) %in, ptr addrspace(1) %out, i32 %t"


def copy_kernel(name: str = "copy_float") -> str:
    return kernel(name, TWO_PARAMETERS, TWO_BUFFERS, COPY)


@pytest.fixture
def copying(tmp_path: Path) -> AirLibrary:
    return air_library(tmp_path, {"copy_float": copy_kernel()})


def test_a_kernel_computes_every_element(tmp_path: Path) -> None:
    library = air_library(tmp_path, {"exp_float": elementwise("exp_float", "air.exp.f32", "float", "float")})
    x = torch.linspace(-5, 5, 1000)
    out = torch.zeros(1000)
    library.kernel("exp_float").launch({"a": x, "out": out}, [1000], [256])
    torch.testing.assert_close(out, x.exp())


def test_a_kernel_with_a_slow_launch_is_optimized(copying: AirLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    builds: list[str] = []
    built = copying.compiler.built
    monkeypatch.setattr(copying.compiler, "built", lambda *given: builds.append(given[2]) or built(*given))
    copy, x, out = copying.kernel("copy_float"), torch.ones(4), torch.zeros(4)
    for slow in (10.0, -1.0, 10.0):
        monkeypatch.setattr("mpsmith.simulator.air.library.SLOW_SECONDS", slow)
        copy.launch({"in": x, "out": out}, [4], [4])
    assert builds == ["quick", "optimized"]
    assert out.tolist() == x.tolist()


def test_buffers_are_bound_by_name_at_any_index(tmp_path: Path) -> None:
    swapped = [buffer("in", "float", 5), buffer("out", "float", 2), builtin("thread_position_in_grid")]
    library = air_library(tmp_path, {"copy_float": kernel("copy_float", TWO_PARAMETERS, swapped, COPY)})
    x, out = torch.arange(4.0), torch.zeros(4)
    library.kernel("copy_float").launch({"out": out, "in": x}, [4], [4])
    assert out.tolist() == [0, 1, 2, 3]


def test_launches_that_metals_validation_refuses_raise(copying: AirLibrary) -> None:
    copy, memory = copying.kernel("copy_float"), torch.zeros(33, dtype=torch.uint8)
    with pytest.raises(KernelArgumentError, match=r"no threads: Metal's API validation .* refuses an empty grid"):
        copy.launch({"in": torch.zeros(0), "out": torch.zeros(0)}, [0], [1])
    base = memory.data_ptr()
    moved = {0: Buffer(base + 2, base, 33, memory), 1: Buffer(base, base, 33, memory)}
    with pytest.raises(KernelFault, match=r"argument in starts at byte 2 of its memory.*aligned to 4 bytes"):
        BoundKernel(copy).launch((4, 1, 1), (4, 1, 1), moved, {})
    with pytest.raises(KernelFault, match="no threads"):
        BoundKernel(copy).launch((0, 1, 1), (4, 1, 1), {}, {})


POSITIONS = {
    "thread_position_in_grid": [(x, y, z) for z in range(2) for y in range(3) for x in range(5)],
    "thread_position_in_threadgroup": [(x % 2, y % 3, z % 1) for z in range(2) for y in range(3) for x in range(5)],
    "threadgroup_position_in_grid": [(x // 2, y // 3, z) for z in range(2) for y in range(3) for x in range(5)],
    "threads_per_threadgroup": [(2 if x < 4 else 1, 3, 1) for z in range(2) for y in range(3) for x in range(5)],
    "threadgroups_per_grid": [(3, 1, 2)] * 30,
    "threads_per_grid": [(5, 3, 2)] * 30,
}


@pytest.mark.parametrize("kind", POSITIONS)
def test_a_thread_knows_its_place_in_three_dimensions(tmp_path: Path, kind: str) -> None:
    body = """
  %x = extractelement <3 x i32> %t, i64 0
  %y = extractelement <3 x i32> %t, i64 1
  %z = extractelement <3 x i32> %t, i64 2
  %zy = mul i32 %z, 3
  %row = add i32 %zy, %y
  %rows = mul i32 %row, 5
  %index = add i32 %rows, %x
  %i = zext i32 %index to i64
  %p = getelementptr <4 x i32>, ptr addrspace(1) %out, i64 %i
  %v = shufflevector <3 x i32> %b, <3 x i32> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 poison>
  store <4 x i32> %v, ptr addrspace(1) %p
"""
    arguments = [buffer("out", "int", 0, size=16), builtin("thread_position_in_grid", "uint3"), builtin(kind, "uint3")]
    text = kernel("place", "ptr addrspace(1) %out, <3 x i32> %t, <3 x i32> %b", arguments, body)
    out = torch.zeros(30, 4, dtype=torch.int32)
    air_library(tmp_path, {"place": text}).kernel("place").launch({"out": out}, [5, 3, 2], [2, 3, 1])
    assert [tuple(row[:3]) for row in out.tolist()] == POSITIONS[kind]


SCALARS = {
    "thread_index_in_threadgroup": [i % 40 for i in range(100)],
    "thread_index_in_simdgroup": [i % 40 % 32 for i in range(100)],
    "simdgroup_index_in_threadgroup": [i % 40 // 32 for i in range(100)],
    "simdgroups_per_threadgroup": [2] * 80 + [1] * 20,
    "dispatch_simdgroups_per_threadgroup": [2] * 100,
    "dispatch_threads_per_threadgroup": [40] * 100,
    "threads_per_simdgroup": [32] * 100,
    "thread_execution_width": [32] * 100,
}


@pytest.mark.parametrize("kind", SCALARS)
def test_a_thread_knows_its_place_in_one_dimension(tmp_path: Path, kind: str) -> None:
    body = """
  %i = zext i32 %t to i64
  %v = zext i16 %b to i32
  %p = getelementptr i32, ptr addrspace(1) %out, i64 %i
  store i32 %v, ptr addrspace(1) %p
"""
    arguments = [buffer("out", "int", 0), builtin("thread_position_in_grid"), builtin(kind, "ushort")]
    text = kernel("place", "ptr addrspace(1) %out, i32 %t, i16 %b", arguments, body)
    out = torch.zeros(100, dtype=torch.int32)
    air_library(tmp_path, {"place": text}).kernel("place").launch({"out": out}, [100], [40])
    assert out.tolist() == SCALARS[kind]


REVERSE_DECLARATIONS = """
@shared = internal addrspace(3) global [64 x float] undef, align 4
declare void @air.wg.barrier(i32, i32)
"""
REVERSE = """
  %l = zext i32 %lane to i64
  %i = zext i32 %t to i64
  %p = getelementptr float, ptr addrspace(1) %in, i64 %i
  %v = load float, ptr addrspace(1) %p
  %s = getelementptr [64 x float], ptr addrspace(3) @shared, i64 0, i64 %l
  store float %v, ptr addrspace(3) %s
  call void @air.wg.barrier(i32 2, i32 1)
  %m = sub i64 63, %l
  %r = getelementptr [64 x float], ptr addrspace(3) @shared, i64 0, i64 %m
  %w = load float, ptr addrspace(3) %r
  %q = getelementptr float, ptr addrspace(1) %out, i64 %i
  store float %w, ptr addrspace(1) %q
"""


def test_threads_of_a_group_share_memory_and_wait_at_barriers(tmp_path: Path) -> None:
    text = kernel(
        "reverse",
        f"{TWO_PARAMETERS}, i32 %lane",
        [*TWO_BUFFERS, builtin("thread_position_in_threadgroup")],
        REVERSE,
        declarations=REVERSE_DECLARATIONS,
    )
    x, out = torch.arange(192.0), torch.zeros(192)
    air_library(tmp_path, {"reverse": text}).kernel("reverse").launch({"in": x, "out": out}, [192], [64])
    assert torch.equal(out, x.view(3, 64).flip(1).flatten())


def test_memory_of_the_threadgroup_as_an_argument(tmp_path: Path) -> None:
    text = kernel(
        "reverse",
        f"{TWO_PARAMETERS}, i32 %lane, ptr addrspace(3) %memory",
        [*TWO_BUFFERS, builtin("thread_position_in_threadgroup"), buffer("memory", "float", 0, space="threadgroup")],
        REVERSE.replace("@shared", "%memory"),
        declarations="declare void @air.wg.barrier(i32, i32)",
    )
    reverse = air_library(tmp_path, {"reverse": text}).kernel("reverse")
    x, out = torch.arange(64.0), torch.zeros(64)
    reverse.launch({"in": x, "out": out}, [64], [64], threadgroup_memory=[256])
    assert torch.equal(out, x.flip(0))
    with pytest.raises(KernelFault, match=r"past the end of argument 32 \('memory'\)"):
        reverse.launch({"in": x, "out": out}, [64], [64], threadgroup_memory=[128])
    with pytest.raises(KernelArgumentError, match="0 lengths of threadgroup memory; it has these: memory"):
        reverse.launch({"in": x, "out": out}, [64], [64])
    with pytest.raises(KernelArgumentError, match="40000 bytes of threadgroup memory; the limit is 32768"):
        reverse.launch({"in": x, "out": out}, [64], [64], threadgroup_memory=[40000])


def test_a_store_past_the_end_is_a_fault_that_changes_nothing(copying: AirLibrary) -> None:
    x, out = torch.arange(10.0), torch.full((8,), -1.0)
    fault = (
        rf"shipped kernel copy_float of torch {RELEASE}: out of bounds store 0 bytes past the end of "
        r"argument 1 \('out'\) \(32 bytes\) by thread \(8, 0, 0\) of threadgroup \(0, 0, 0\)"
    )
    with pytest.raises(KernelFault, match=fault):
        copying.kernel("copy_float").launch({"in": x, "out": out}, [10], [10])
    assert out.tolist() == [-1] * 8


def test_a_null_pointer_names_the_unbound_argument(copying: AirLibrary) -> None:
    with pytest.raises(KernelFault, match=r"load through a null pointer.*; not bound: in"):
        copying.kernel("copy_float").launch({"in": None, "out": torch.zeros(8)}, [8], [8])


def test_arguments_that_overlap_are_one_memory(copying: AirLibrary) -> None:
    x = torch.arange(8.0)
    copying.kernel("copy_float").launch({"in": x[4:], "out": x[:4]}, [4], [4])
    assert x.tolist() == [4, 5, 6, 7, 4, 5, 6, 7]


@pytest.mark.parametrize(
    ("threads", "group", "message"),
    [
        ([8, 1], [8], "need the same dimensions"),
        ([], [], "need the same dimensions"),
        ([8], [0], "are not sizes"),
        ([-1], [1], "are not sizes"),
        ([2048], [2048], "a threadgroup of 2048 threads, and the kernel takes 1024"),
    ],
)
def test_a_launch_that_no_gpu_takes_is_refused(
    copying: AirLibrary, threads: list[int], group: list[int], message: str
) -> None:
    with pytest.raises(KernelArgumentError, match=message):
        copying.kernel("copy_float").launch({"in": torch.zeros(8), "out": torch.zeros(8)}, threads, group)


def test_a_kernel_may_take_fewer_threads(tmp_path: Path) -> None:
    text = kernel(
        *("copy_float", TWO_PARAMETERS, TWO_BUFFERS, COPY),
        entry="!{ptr @NAME, !1, !2, !3}",
        metadata='!3 = !{!"air.max_work_group_size", i32 64}',
    )
    library = air_library(tmp_path, {"copy_float": text})
    assert library.kernel("copy_float").max_threads == 64
    with pytest.raises(KernelArgumentError, match="a threadgroup of 65 threads, and the kernel takes 64"):
        library.kernel("copy_float").launch({"in": torch.zeros(65), "out": torch.zeros(65)}, [65], [65])


SMALLEST = 2.0**-149


def test_subnormal_numbers_are_flushed_where_the_module_says_so(tmp_path: Path) -> None:
    plain = elementwise("plain", "air.fma.f32", "float", "float", "float", "float")
    flushing = elementwise("flushing", "air.fma.f32", "float", "float", "float", "float", metadata=FLUSHING)
    library = air_library(tmp_path, {"plain": plain, "flushing": flushing})
    a, b, c = torch.tensor([SMALLEST]), torch.tensor([1.0]), torch.tensor([0.0])
    for name, expected in (("plain", SMALLEST), ("flushing", 0.0)):
        out = torch.ones(1)
        library.kernel(name).launch({"a": a, "b": b, "c": c, "out": out}, [1], [1])
        assert out.item() == expected, name
    assert library.signature("flushing").flush_denormals
    assert not library.signature("plain").flush_denormals


def keeps_subnormal_numbers() -> bool:
    """Whether this thread's processor computes with them."""
    return float(numpy.float32(SMALLEST) * numpy.float32(1)) == SMALLEST


@pytest.mark.parametrize("faulty", [False, True])
def test_the_processor_keeps_subnormal_numbers_after_a_launch(tmp_path: Path, faulty: bool) -> None:
    text = kernel("copy_float", TWO_PARAMETERS, TWO_BUFFERS, COPY, metadata=FLUSHING)
    copy = air_library(tmp_path, {"copy_float": text}).kernel("copy_float")
    if faulty:
        with pytest.raises(KernelFault):
            copy.launch({"in": None, "out": torch.zeros(8)}, [8], [8])
    else:
        copy.launch({"in": torch.zeros(8), "out": torch.zeros(8)}, [8], [8])
    assert keeps_subnormal_numbers()


def test_memory_behind_a_pointer_that_is_bound_too_keeps_what_was_written_through_either(tmp_path: Path) -> None:
    pointers = buffer("pointers", "void", 0, size=8).replace("air.buffer", "air.indirect_buffer", 1)
    body = """
  %p = load ptr addrspace(1), ptr addrspace(1) %pointers
  store float 1.0, ptr addrspace(1) %p
  %q = getelementptr float, ptr addrspace(1) %out, i64 1
  store float 2.0, ptr addrspace(1) %q
"""
    arguments = [pointers, buffer("out", "float", 1), builtin("thread_position_in_grid")]
    parameters = "ptr addrspace(1) %pointers, ptr addrspace(1) %out, i32 %t"
    library = air_library(tmp_path, {"fill": kernel("fill", parameters, arguments, body)})
    out = torch.zeros(2)
    table = torch.tensor([out.data_ptr()])
    bound = {i: Buffer(t.data_ptr(), t.data_ptr(), t.nbytes, t) for i, t in enumerate((table, out))}
    library.kernel("fill").run_bound((1, 1, 1), (1, 1, 1), bound, {})
    assert out.tolist() == [1, 2]
