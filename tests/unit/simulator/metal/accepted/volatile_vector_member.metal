// out: 5 5 5 5
#include <metal_stdlib>
using namespace metal;
struct Pair { float4 v; };
kernel void k(device float* out, uint i [[thread_position_in_grid]]) {
  volatile thread Pair p;
  p.v = float4(2);
  p.v.x = 3;
  float4 v = p.v;
  out[i] = v.x + v.y;
}
