// out: 0.5 -2 2 0.75
#include <metal_stdlib>
using namespace metal;
kernel void k(device float* out, uint i [[thread_position_in_grid]]) {
  float4 whole;
  int2 exponent, of_power = ilogb(float2(4, 8));
  const float4 part = modf(float4(1.5, -2.25, 0, 0), whole);
  const float2 fraction = frexp(float2(3, 5), exponent);
  const float results[] = {float2(part).x, float(half3(whole).y), float(exponent.x + of_power.x - 2), fraction.x + ldexp(float2(0), exponent).x};
  out[i] = results[i];
}
