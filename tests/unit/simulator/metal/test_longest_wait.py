"""How long the longest thread of a launch waits for memory, by the runtime's estimate."""

from __future__ import annotations

import numpy as np

from mpsmith.simulator import metal
from mpsmith.simulator.metal.compiler import default_compiler
from mpsmith.simulator.metal.dispatch import runtime_of
from support.needs import needs_metal_on_host

needs_metal_on_host()

SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void sums(device volatile float* x, constant long& n, uint i [[thread_position_in_grid]]) {
  const long most = n * long(i);
  for (long k = 0; k < most; ++k) x[i] = 1.0f;
}
kernel void shared(device float* x, constant long& n, uint i [[thread_position_in_threadgroup]]) {
  threadgroup float y[64];
  const long most = n;
  for (long k = 0; k < most; ++k) y[i * 8 + k % 8] = float(k);
  x[i] = y[i * 8];
}
"""
DEVICE, SHARED = 1000, 50  # nanoseconds


def longest(kernel: str, steps: int, *, threads: int, mode: metal.Mode) -> int:
    runtime = runtime_of(default_compiler())
    runtime.longest_wait()
    getattr(metal.compile(SOURCE, mode=mode), kernel)(
        np.zeros(threads, np.float32), steps, threads=threads, group_size=8
    )
    return runtime.longest_wait()


def test_the_thread_with_the_most_accesses_counts() -> None:
    (first, second) = (longest("sums", steps, threads=32, mode="checked") for steps in (10, 20))
    assert second - first == 10 * 31 * DEVICE  # the last of 32 threads
    (first, second) = (longest("shared", steps, threads=32, mode="checked") for steps in (10, 20))
    assert second - first == 10 * SHARED


def test_a_question_clears_it_and_fast_builds_count_nothing() -> None:
    assert longest("sums", 10, threads=32, mode="checked") > 0
    assert runtime_of(default_compiler()).longest_wait() == 0
    assert longest("sums", 10, threads=32, mode="fast") == 0
