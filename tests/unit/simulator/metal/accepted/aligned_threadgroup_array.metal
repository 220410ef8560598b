// out: 1 2 3 0
#include <metal_stdlib>
using namespace metal;
kernel void k(device float* out, uint i [[thread_position_in_grid]]) {
  threadgroup float shared[2][4] __attribute__((aligned(128)));
  shared[1][i] = i;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = shared[1][(i + 1) % 4];
}
