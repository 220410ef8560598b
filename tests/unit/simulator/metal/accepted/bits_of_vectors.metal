// out: 16 5 12 31
#include <metal_stdlib>
using namespace metal;
kernel void k(device float* out, uint i [[thread_position_in_grid]]) {
  const uint2 base(0xf0, 0xff);
  const int4 values(8, 1, -1, 0);
  const float results[] = {float(insert_bits(base, uint2(0), 5u, 3u).x), float(extract_bits(int2(80), 4u, 4u).y),
                           float(ctz(values).x + popcount(values).y + 8 * clz(values).z + reverse_bits(values).w + 8),
                           float(clz(values).y)};
  out[i] = results[i];
}
