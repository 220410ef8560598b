// out: 4 4 4 0
#include <metal_stdlib>
using namespace metal;
kernel void k(device float* out, uint i [[thread_position_in_grid]]) {
#pragma clang fp contract(off)
  out[i] = 0;
  if (i == 3) return;
  out[i] = simd_sum(1.0f) + 1.0f;
}
