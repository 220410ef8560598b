// out: 0 1 2 3
#include <metal_stdlib>
using namespace metal;
kernel void abs(device float* out, uint i [[thread_position_in_grid]]) { out[i] = abs(-float(i)); }
template <typename T> kernel void exp(device T* out, uint i [[thread_position_in_grid]]) { out[i] = exp(out[i]); }
template [[host_name("exp_float")]] kernel void exp<float>(device float*, uint);
kernel void k(device float* out, uint i [[thread_position_in_grid]]) { out[i] = abs(-float(i)); }
