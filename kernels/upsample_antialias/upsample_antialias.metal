#include "shared/antialias.metal"
#include "shared/division.metal"

// A thread a gradient of an input: the sum over the outputs along one axis whose windows hold it.
// The grid is (width, height, images times channels): one division is left for a thread, and the same one for its group.
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
    uint3 position [[thread_position_in_grid]]) {
  const long image = quotient(long(position.z), g[1]);
  const long at[4] = {image, long(position.z) - image * g[1], long(position.y), long(position.x)};
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
      constant float&, uint3);
BACKWARD(float, float)
BACKWARD(half, float)
BACKWARD(bfloat, float)
BACKWARD(float, half)
BACKWARD(float, bfloat)

WEIGHTS("weights_", linear)
WEIGHTS("weights_", cubic)
WEIGHTS("weights_", lanczos)
