// out: 1 0 0 0
#include <metal_stdlib>
using namespace metal;
kernel void k(device float* out, uint i [[thread_position_in_grid]]) {
  const float4 mine(1);
  const float2x2 identity(1);
  out[i] = 0;
  const float4 value = i == 0 ? mine : ((device const float4*)out)[0];
  const float2x2 m = i == 0 ? identity : ((device const float2x2*)out)[0];
  if (i == 0) out[i] = value.x * m[0][0];
}
