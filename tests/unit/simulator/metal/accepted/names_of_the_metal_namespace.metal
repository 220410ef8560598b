// out: 0 1 2 3
#include <metal_stdlib>
using metal::uint;
using metal::float4;
using metal::half;
kernel void k(device float* out, uint i [[thread_position_in_grid]]) {
  metal::uint n = i;
  out[i] = metal::uint32_t(n) + float(half(0.0));
}
