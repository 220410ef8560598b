// out: -8 -2 4 1
#include <metal_stdlib>
using namespace metal;
kernel void k(device float* out, uint i [[thread_position_in_grid]]) {
  int2 v = int2(-1, 1) << uint2(3, 2);
  int2 w = int2(-8, 4) >> uint2(2);
  v >>= uint2(0);
  const float results[] = {float(v.x), float(w.x), float(v.y), float(w.y)};
  out[i] = results[i];
}
