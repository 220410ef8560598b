"""Metal source on the host: kernels against numpy, waiting at barriers, compiling and checking.

Times are the best of several runs on this machine (processor time for kernels, the clock for compiling), simulated on
the CPU; they say nothing about an Apple GPU.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from tabulate import tabulate

from mpsmith.simulator import metal

ELEMENTS = 1 << 20
GROUP = 256
KERNELS = """
#include <metal_stdlib>
using namespace metal;
kernel void axpy(device float* out, constant float* x, constant float* y, constant float& a,
    uint i [[thread_position_in_grid]]) { out[i] = a * x[i] + y[i]; }
kernel void exponential(device float* out, constant float* x, uint i [[thread_position_in_grid]]) {
  out[i] = exp(x[i]); }
kernel void tree_sum(device float* out, constant float* x, uint i [[thread_position_in_grid]],
    uint t [[thread_index_in_threadgroup]], uint g [[threadgroup_position_in_grid]],
    uint n [[threads_per_threadgroup]]) {
  threadgroup float s[256];
  s[t] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint k = n / 2; k > 0; k /= 2) {
    if (t < k) s[t] += s[t + k];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (t == 0) out[g] = s[0];
}
kernel void simd_sums(device float* out, constant float* x, uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  float s = simd_sum(x[i]);
  if (lane == 0) out[i / 32] = s;
}
"""
MANY_KERNELS = "#include <metal_stdlib>\n#include <c10/metal/special_math.h>\nusing namespace metal;\n" + "".join(
    f"""
kernel void k{n}(device float* out, constant float* x, uint i [[thread_position_in_grid]],
    uint t [[thread_index_in_threadgroup]]) {{
  threadgroup float s[256];
  s[t] = exp(x[i]) + {n};
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float r = 0;
  for (int k = 0; k < 16; k++) r += s[(t + k) % 256] * c10::metal::i0(x[i]);
  out[i] = simd_sum(r);
}}"""
    for n in range(20)
)


def best(function: Callable[[], object], runs: int = 7) -> float:
    """Milliseconds of processor time of the fastest run, after one that does not count."""
    function()
    times = []
    for _ in range(runs):
        start = time.thread_time()
        function()
        times.append(time.thread_time() - start)
    return min(times) * 1e3


def elapsed(function: Callable[[str], object], text: str) -> float:
    """Milliseconds on the clock: most of the work is done by other processes."""
    start = time.perf_counter()
    function(text)
    return (time.perf_counter() - start) * 1e3


def execution() -> list[list[object]]:
    library = metal.compile(KERNELS)
    generator = np.random.default_rng(0)
    x, y = (generator.standard_normal(ELEMENTS).astype(np.float32) for _ in range(2))
    out, sums, lanes = np.empty_like(x), np.empty(ELEMENTS // GROUP, np.float32), np.empty(ELEMENTS // 32, np.float32)
    grid = {"threads": ELEMENTS, "group_size": GROUP}
    small = np.zeros(16, np.float32)
    cases: list[tuple[str, Callable[[], object], Callable[[], object]]] = [
        ("axpy", lambda: library.axpy(out, x, y, 2.5), lambda: 2.5 * x + y),
        ("exp", lambda: library.exponential(out, x), lambda: np.exp(x)),
        ("tree sum, 9 barriers", lambda: library.tree_sum(sums, x, **grid), lambda: x.reshape(-1, GROUP).sum(1)),
        ("simd_sum", lambda: library.simd_sums(lanes, x, **grid), lambda: x.reshape(-1, 32).sum(1)),
        ("a call on 16 elements", lambda: library.exponential(small, small), lambda: np.exp(small)),
    ]
    rows = []
    for name, kernel, reference in cases:
        ours, numpys = best(kernel), best(reference)
        rows.append([name, f"{ours:.3f}", f"{numpys:.3f}", f"{ours / numpys:.2f}"])
    return rows


def compilation() -> list[list[object]]:
    # Each round has a new text, which no cache has seen.
    metal.check("kernel void k(device int* a) {}")
    unseen = [f"// {time.time_ns()} {n}\n{MANY_KERNELS}" for n in range(6)]
    rows = []
    for name, function in (("compile", metal.compile), ("check", metal.check)):
        texts, unseen = unseen[:3], unseen[3:]
        cold = min(elapsed(function, text) for text in texts)
        warm = min(elapsed(function, texts[0]) for _ in range(7))
        rows.append([f"{name} 20 kernels", f"{cold:.1f}", f"{warm:.1f}"])
    return rows


def main() -> None:
    argparse.ArgumentParser(description=__doc__)
    print(f"{ELEMENTS} elements, milliseconds, simulated on the CPU")
    print(tabulate(execution(), headers=["kernel", "simulated Metal", "numpy", "ratio"], disable_numparse=True))
    print()
    print(tabulate(compilation(), headers=["", "not in the cache", "from the cache"], disable_numparse=True))


if __name__ == "__main__":
    main()
