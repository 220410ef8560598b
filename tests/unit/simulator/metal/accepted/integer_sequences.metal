// out: 6 6 6 6
#include <metal_stdlib>
using namespace metal;
template <int... I> int total(integer_sequence<int, I...>) { int sum = 0; int all[] = {(sum += I, 0)...}; return sum + all[0]; }
template <size_t... I> int count(index_sequence<I...>) { return sizeof...(I); }
kernel void k(device float* out, uint i [[thread_position_in_grid]]) {
  out[i] = total(make_integer_sequence<int, 3>()) + count(make_index_sequence<3>());
}
