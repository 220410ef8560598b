// out: 3 3 3 3
#include <metal_stdlib>
using namespace metal;
float total(initializer_list<float> values) {
  float sum = 0;
  for (float value : values) sum += value;
  return sum;
}
kernel void k(device float* out, uint i [[thread_position_in_grid]]) {
  out[i] = total({1.0f, 2.0f});
}
