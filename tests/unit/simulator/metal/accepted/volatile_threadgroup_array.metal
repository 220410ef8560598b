// out: 3 2 1 0
#include <metal_stdlib>
using namespace metal;
kernel void k(device float* out, uint i [[thread_position_in_threadgroup]]) {
  threadgroup float volatile shared[4];
  shared[i] = i;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = shared[3 - i];
}
