#include "shared/antialias.metal"
#include "shared/division.metal"
#include "shared/strided.metal"

// A thread an element of the result: the sum of the inputs in the window of its place along one axis.
// g: the four sizes of the result, its strides, those of the source, the axis, the room for weights.
struct resampled {
  long place;
  long from;
  long output;

  resampled(constant long* g, long i) : place(0), from(0), output(0) {
    for (int d = 3; d >= 0; --d) {
      const long next = quotient(i, g[d]), at = i - next * g[d];
      place += at * g[4 + d];
      from += d == g[12] ? 0 : at * g[8 + d];
      output = d == g[12] ? at : output;
      i = next;
    }
  }
};

template <typename S, typename T>
kernel void antialias_forward(
    device T* out [[buffer(0)]],
    device const S* source [[buffer(1)]],
    device const int* windows [[buffer(2)]],
    device const float* weights [[buffer(3)]],
    constant long* g [[buffer(4)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const long i = element_of<long>(position, grid);
  if (i >= g[0] * g[1] * g[2] * g[3]) {
    return;
  }
  const resampled here(g, i);
  const long stride = g[8 + g[12]], start = windows[2 * here.output];
  device const float* row = weights + here.output * g[13];
  float sum = 0.0f;
  for (int k = 0; k < windows[2 * here.output + 1]; ++k) {
    sum = fma(row[k], float(source[here.from + (start + k) * stride]), sum);
  }
  out[here.place] = T(sum);
}

// The same of bytes, as the CPU has it: weights are whole numbers, of 2^precision for one, and sums are rounded to the
// nearest. g ends with the precision.
kernel void antialias_bytes(
    device uchar* out [[buffer(0)]],
    device const uchar* source [[buffer(1)]],
    device const int* windows [[buffer(2)]],
    device const int* weights [[buffer(3)]],
    constant long* g [[buffer(4)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const long i = element_of<long>(position, grid);
  if (i >= g[0] * g[1] * g[2] * g[3]) {
    return;
  }
  const resampled here(g, i);
  const long stride = g[8 + g[12]], start = windows[2 * here.output];
  device const int* row = weights + here.output * g[13];
  int sum = 1 << (g[14] - 1);
  for (int k = 0; k < windows[2 * here.output + 1]; ++k) {
    sum += row[k] * int(source[here.from + (start + k) * stride]);
  }
  out[here.place] = uchar(clamp(sum >> g[14], 0, 255));
}

#define FORWARD(S, T) \
  template [[host_name("forward_" #S "_" #T)]] kernel void antialias_forward<S, T>( \
      device T*, device const S*, device const int*, device const float*, constant long*, uint2, uint2);
FORWARD(float, float)
FORWARD(half, float)
FORWARD(bfloat, float)
FORWARD(half, half)
FORWARD(bfloat, bfloat)
FORWARD(float, half)
FORWARD(float, bfloat)

WEIGHTS("forward_weights_", linear)
WEIGHTS("forward_weights_", cubic)
WEIGHTS("forward_weights_", lanczos)
