"""Threadgroup memory that nothing wrote: reading it is an error in `checked`, whatever is done with the value."""

from __future__ import annotations

import numpy as np
import pytest

from mpsmith.simulator import metal
from mpsmith.simulator.metal import MetalRuntimeError
from support.needs import needs_metal_on_host

needs_metal_on_host()

SOURCE = """
#include <metal_stdlib>
using namespace metal;
struct Sums { float a; float b; int n; long many[3]; };
kernel void guarded_write(device float* out, constant long& n, uint i [[thread_position_in_threadgroup]]) {
  threadgroup float partial[64];
  if (i < n) partial[i] = i;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = partial[63 - i];
}
kernel void ignored(device float* out, uint i [[thread_position_in_threadgroup]]) {
  threadgroup float partial[64];
  if (i == 0) partial[0] = 7;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = max(partial[i], 0.0f) * 0 + partial[0];
}
kernel void first_alone(device float* out, uint i [[thread_position_in_threadgroup]]) {
  threadgroup float total[1];
  if (i == 3) total[0] = 5;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = i < 100 ? total[0] : 0;
}
kernel void unread(device float* out, constant long& n, uint i [[thread_position_in_threadgroup]]) {
  threadgroup float total[1];
  if (n > 1000) total[0] = 5;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float x = 1;
  if (n > 1000) x = total[0];
  out[i] = x + (n > 1000 ? total[0] : 0);
}
kernel void counted(device uint* out, constant long& n, uint i [[thread_position_in_threadgroup]]) {
  threadgroup atomic_uint count;
  if (i == 0 && n > 0) atomic_store_explicit(&count, 0, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = atomic_load_explicit(&count, memory_order_relaxed);
}
kernel void whole_structs(device float* out, constant Sums& start, uint i [[thread_position_in_threadgroup]]) {
  threadgroup Sums sums[64];
  sums[i] = start;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  threadgroup Sums others[64];
  others[i] = sums[63 - i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = others[i].a + others[i].n + others[i].many[1];
}
kernel void field_by_field(device float* out, uint i [[thread_position_in_threadgroup]]) {
  threadgroup Sums sums[64];  // four bytes of padding stand behind n
  sums[i].a = i; sums[i].b = 2; sums[i].n = 3; sums[i].many[0] = sums[i].many[1] = sums[i].many[2] = 4;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  Sums other = sums[63 - i];
  out[i] = other.a + other.b + other.n + other.many[i % 3];
}
kernel void unwritten_struct(device float* out, uint i [[thread_position_in_threadgroup]]) {
  threadgroup Sums sums[64];
  threadgroup Sums others[64];
  if (i < 63) sums[i] = Sums{1, 2, 3, {4, 5, 6}};
  threadgroup_barrier(mem_flags::mem_threadgroup);
  others[i] = sums[63 - i];
  out[i] = 0;
}
kernel void wide(device long* out, uint i [[thread_position_in_threadgroup]]) {
  threadgroup long4 wide[64];
  threadgroup float3 three[64];
  wide[i] = long4(i); three[i] = float3(i);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = wide[63 - i].w + long(three[i].z);
}
kernel void next_group(device float* out, uint i [[thread_position_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]) {
  threadgroup float total[1];
  if (group == 0 && i == 0) total[0] = 5;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[group] = total[0];
}
kernel void given(device float* out, threadgroup float* scratch [[threadgroup(0)]], constant long& n,
    uint i [[thread_position_in_threadgroup]], uint group [[threadgroup_position_in_grid]]) {
  if (i < n) scratch[i] = i;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[64 * group + i] = scratch[63 - i];
}
"""


@pytest.fixture(scope="module")
def library() -> metal.ShaderLibrary:
    return metal.compile(SOURCE, mode="checked")


def call(kernel: metal.SimulatedKernel, *args: object, threads: int = 64, dtype: type = np.float32) -> list[float]:
    out = np.zeros(64 if threads < 65 else threads, dtype)
    kernel(out, *args, threads=threads, group_size=64)
    return [float(x) for x in out]


def test_written_memory_may_be_read(library: metal.ShaderLibrary) -> None:
    assert call(library.guarded_write, 64)[:2] == [63, 62]
    assert call(library.first_alone)[9] == 5
    assert call(library.counted, 1, dtype=np.uint32)[5] == 64


def test_a_load_of_uninitialized_memory_names_bytes_thread_and_line(library: metal.ShaderLibrary) -> None:
    with pytest.raises(MetalRuntimeError) as caught:
        call(library.guarded_write, 63)
    expected = r"load of 4 bytes at byte 252 of threadgroup variable 'partial', which nothing in the threadgroup wrote"
    assert expected in str(caught.value)
    assert "by thread (0, 0, 0)" in str(caught.value)
    assert "program_source:9" in str(caught.value)


@pytest.mark.parametrize("name", ["ignored", "next_group"])
def test_the_value_need_not_show(library: metal.ShaderLibrary, name: str) -> None:
    with pytest.raises(MetalRuntimeError, match="nothing in the threadgroup wrote"):
        call(getattr(library, name), threads=128)


def test_adding_to_a_counter_that_nothing_set_is_a_load(library: metal.ShaderLibrary) -> None:
    with pytest.raises(MetalRuntimeError, match="variable 'count', which nothing in the threadgroup wrote"):
        call(library.counted, 0, dtype=np.uint32)


def test_a_branch_that_is_not_taken_loads_nothing(library: metal.ShaderLibrary) -> None:
    assert call(library.unread, 1)[0] == 1


def test_copies_of_whole_structs_and_wide_vectors_count_as_writes(library: metal.ShaderLibrary) -> None:
    start = np.zeros(40, np.uint8)  # -1 and NaN have many bytes like those of unwritten memory
    start[:4] = np.frombuffer(np.float32(2).tobytes(), np.uint8)
    start[8:12] = np.frombuffer(np.int32(-7).tobytes(), np.uint8)
    start[24:32] = np.frombuffer(np.int64(-300).tobytes(), np.uint8)
    assert call(library.whole_structs, start)[0] == 2 - 7 - 300
    assert call(library.wide, dtype=np.int64)[1] == 62 + 1


def test_padding_may_be_unwritten(library: metal.ShaderLibrary) -> None:
    assert call(library.field_by_field)[0] == 63 + 2 + 3 + 4
    with pytest.raises(MetalRuntimeError, match="of threadgroup variable 'sums', which nothing in the threadgroup"):
        call(library.unwritten_struct)


def test_memory_whose_length_the_launch_sets(library: metal.ShaderLibrary) -> None:
    out = np.zeros(128, np.float32)
    kernel = library.given
    kernel(out, 64, threads=128, group_size=64, threadgroup_lengths={0: 256})
    assert out[64:66].tolist() == [63, 62]  # two groups write the same place, each its own
    with pytest.raises(MetalRuntimeError, match=r"'scratch'\), which nothing in the threadgroup wrote"):
        kernel(out, 63, threads=128, group_size=64, threadgroup_lengths={0: 256})
    with metal.checking("schedules"):
        kernel(out, 64, threads=128, group_size=64, threadgroup_lengths={0: 256})


def test_other_modes_show_it_by_its_value(library: metal.ShaderLibrary) -> None:
    with metal.checking("fast"):
        assert np.isnan(call(library.guarded_write, 63)[0])
