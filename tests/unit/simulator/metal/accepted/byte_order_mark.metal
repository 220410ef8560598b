// out: 0 1 2 3
#include <metal_stdlib>
using namespace metal;
kernel void k(device float* out, uint i [[thread_position_in_grid]]) { out[i] = i; }
