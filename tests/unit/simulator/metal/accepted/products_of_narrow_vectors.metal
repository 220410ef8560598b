// out: 1 2 255 1
#include <metal_stdlib>
using namespace metal;
kernel void k(device float* out, uint i [[thread_position_in_grid]]) {
  const ushort4 a(256);
  const float results[] = {float(mulhi(a, a).x), float(madhi(a, a, ushort4(1)).y),
                           float(madsat(uchar2(16), uchar2(16), uchar2(1)).x), float(mulhi(ulong2(1ul << 63), ulong2(2)).x)};
  out[i] = results[i];
}
