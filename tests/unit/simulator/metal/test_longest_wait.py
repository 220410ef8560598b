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


def longest(kernel: str, steps: int, mode: metal.Mode = "checked") -> int:
    call = getattr(metal.compile(SOURCE, mode=mode), kernel)
    runtime_of(default_compiler()).longest_wait()
    call(np.zeros(32, np.float32), steps, threads=32, group_size=8)
    return runtime_of(default_compiler()).longest_wait()


def test_the_thread_with_the_most_accesses_counts() -> None:
    assert longest("sums", 20) - longest("sums", 10) == 10 * 31 * DEVICE  # of the last of 32 threads
    assert longest("shared", 20) - longest("shared", 10) == 10 * SHARED
    assert runtime_of(default_compiler()).longest_wait() == 0
    assert longest("sums", 20, mode="fast") == 0
