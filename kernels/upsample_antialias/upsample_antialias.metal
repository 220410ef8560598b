#include "shared/antialias.metal"
#include "shared/division.metal"
#include "shared/strided.metal"

// A thread a gradient of an input: the sum over the outputs along one axis whose windows hold it.
// g: the four sizes of the result, its strides, those of the source, the axis, the outputs along it, room for weights.
// The outputs that may hold an input lie around its place: `reach` is the half of the widest window.
template <typename S, typename T>
kernel void antialias_backward(
    device T* out [[buffer(0)]],
    device const S* source [[buffer(1)]],
    device const int* windows [[buffer(2)]],
    device const float* weights [[buffer(3)]],
    constant long* g [[buffer(4)]],
    constant float& scale [[buffer(5)]],
    constant float& reach [[buffer(6)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const long i = element_of<long>(position, grid);
  if (i >= g[0] * g[1] * g[2] * g[3]) {
    return;
  }
  long at[4];
  long rest = i;
  for (int d = 3; d >= 0; --d) {
    const long next = quotient(rest, g[d]);
    at[d] = rest - next * g[d];
    rest = next;
  }
  const long axis = g[12], outputs = g[13], room = g[14];
  long place = 0, from = 0;
  for (int d = 0; d < 4; ++d) {
    place += at[d] * g[4 + d];
    from += d == axis ? 0 : at[d] * g[8 + d];
  }
  const long here = at[axis];
  long first = 0, last = outputs - 1;
  if (scale > 0.0f) {
    first = max(long((float(here) - reach) / scale) - 2, 0l);
    last = min(long((float(here) + 1.0f + reach) / scale) + 2, outputs - 1);
  }
  float sum = 0.0f;
  for (long o = first; o <= last; ++o) {
    const long k = here - windows[2 * o];
    if (k >= 0 && k < windows[2 * o + 1]) {
      sum += weights[o * room + k] * float(source[from + o * g[8 + axis]]);
    }
  }
  out[place] = T(sum);
}

#define BACKWARD(S, T) \
  template [[host_name("backward_" #S "_" #T)]] kernel void antialias_backward<S, T>( \
      device T*, device const S*, device const int*, device const float*, constant long*, constant float&, \
      constant float&, uint2, uint2);
BACKWARD(float, float)
BACKWARD(half, float)
BACKWARD(bfloat, float)
BACKWARD(float, half)
BACKWARD(float, bfloat)

WEIGHTS("weights_", linear)
WEIGHTS("weights_", cubic)
WEIGHTS("weights_", lanczos)
