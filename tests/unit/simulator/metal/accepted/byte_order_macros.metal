// out: 1 1 1 1
#include <metal_stdlib>
using namespace metal;
#if defined(__LITTLE_ENDIAN__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
struct Parts { ushort low, high; };
#endif
kernel void k(device float* out, uint i [[thread_position_in_grid]]) {
  out[i] = as_type<uint>(ushort2(1, 0)) == 1u && sizeof(Parts) == 4;
}
