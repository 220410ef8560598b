// Overloads whose parameters differ by the address space; an array is a pointer. out: 0 3 6 9
#include <metal_stdlib>
using namespace metal;

inline float sum(thread const float values[2]) { return values[0] + values[1]; }
inline float sum(device const float* from) {
  const float copy[2] = {from[0], from[1]};
  return sum(copy);
}
inline void put(float v, device float* to) { *to = v; }
inline void put(float v, thread float to[1]) { to[0] = v; }

kernel void k(device float* out, uint i [[thread_position_in_grid]]) {
  float own[2] = {float(i), 0};
  put(2 * float(i), own + 1);
  put(sum(own), out + i);
}
