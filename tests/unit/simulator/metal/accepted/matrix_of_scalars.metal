// out: 7 8 9 0
#include <metal_stdlib>
using namespace metal;
kernel void k(device float* out, uint i [[thread_position_in_grid]]) {
  const float3x3 m = float3x3(1, 2, 3, 4, 5, 6, 7, 8, 9);
  const half2x2 n(1.0h, 2.0h, 3.0h, 4.0h);
  out[i] = i < 3 ? (m * float3(0, 0, 1))[i] : float(n[1][0] - 3.0h);
}
