#include "shared/antialias.metal"
#include "shared/division.metal"
#include "shared/strided.metal"

// A thread a gradient of an input: the sum over the outputs along one axis whose windows hold it.
// g: the four sizes of the result, its strides, those of the source, the axis, the outputs along it, room for weights.
// The windows that may hold an input follow from where they begin and end, rounded; one more on each side is for the
// rounding. Of the axis everything fits into 32 bits, which a GPU computes several times as fast as 64.
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
  const int axis = int(g[12]), outputs = int(g[13]), room = int(g[14]);
  long place = 0, from = 0;
  for (int d = 0; d < 4; ++d) {
    place += at[d] * g[4 + d];
    from += d == axis ? 0 : at[d] * g[8 + d];
  }
  const int here = int(at[axis]);
  int first = 0, last = outputs - 1;
  if (scale > 0.0f) {
    const float middle = (float(here) + 0.5f) / scale - 0.5f, around = reach / scale;
    first = max(int(middle - around) - 1, 0);
    last = min(int(middle + around) + 1, outputs - 1);
  }
  device const S* line = source + from;
  const long stride = g[8 + axis];
  float sum = 0.0f;
  for (int o = first; o <= last; ++o) {
    const int k = here - windows[2 * o];
    if (k >= 0 && k < windows[2 * o + 1]) {
      sum += weights[o * room + k] * float(line[o * stride]);
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
