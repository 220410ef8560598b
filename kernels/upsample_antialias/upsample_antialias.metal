#include "shared/division.metal"
#include "shared/strided.metal"

// Interpolation filters of a support of 1, 2 and 3 (Keys, 1981, with a = -1/2; Lanczos windows, Duchon, 1979).
struct linear {
  static constant constexpr float support = 1.0f;
  static float at(float x) { return max(0.0f, 1.0f - abs(x)); }
};

struct cubic {
  static constant constexpr float support = 2.0f;
  static float at(float x) {
    constexpr float A = -0.5f;
    x = abs(x);
    return x < 1.0f ? ((A + 2.0f) * x - (A + 3.0f)) * x * x + 1.0f
        : x < 2.0f  ? (((x - 5.0f) * x + 8.0f) * x - 4.0f) * A
                    : 0.0f;
  }
};

struct lanczos {
  static constant constexpr float support = 3.0f;
  static float sinc(float x) { return x == 0.0f ? 1.0f : precise::sin(M_PI_F * x) / (M_PI_F * x); }
  static float at(float x) { return x >= -3.0f && x < 3.0f ? sinc(x) * sinc(x / 3.0f) : 0.0f; }
};

// Output o of one axis is a weighted sum of inputs around scale * (o + 1/2). A thread an output: where its window
// starts, how many inputs it has, and their weights, which sum to one. sizes: outputs, inputs, room for weights.
template <typename F>
kernel void antialias_weights(
    device int* windows [[buffer(0)]],
    device float* weights [[buffer(1)]],
    constant long* sizes [[buffer(2)]],
    constant float& scale [[buffer(3)]],
    uint o [[thread_position_in_grid]]) {
  const float stretch = max(scale, 1.0f), reach = F::support * stretch, inverse = 1.0f / stretch;
  const float center = scale * (float(o) + 0.5f);
  const int start = max(int(center - reach + 0.5f), 0);
  const int count = clamp(min(int(center + reach + 0.5f), int(sizes[1])) - start, 0, int(sizes[2]));
  device float* row = weights + ulong(o) * sizes[2];
  float total = 0.0f;
  for (int k = 0; k < count; ++k) {
    row[k] = F::at((float(k + start) - center + 0.5f) * inverse);
    total += row[k];
  }
  for (int k = 0; k < count && total != 0.0f; ++k) {
    row[k] /= total;
  }
  windows[2 * o] = start;
  windows[2 * o + 1] = count;
}

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

#define WEIGHTS(F) \
  template [[host_name("weights_" #F)]] kernel void antialias_weights<F>( \
      device int*, device float*, constant long*, constant float&, uint);
WEIGHTS(linear)
WEIGHTS(cubic)
WEIGHTS(lanczos)

#define BACKWARD(S, T) \
  template [[host_name("backward_" #S "_" #T)]] kernel void antialias_backward<S, T>( \
      device T*, device const S*, device const int*, device const float*, constant long*, constant float&, \
      constant float&, uint2, uint2);
BACKWARD(float, float)
BACKWARD(half, float)
BACKWARD(bfloat, float)
BACKWARD(float, half)
BACKWARD(float, bfloat)

#define FORWARD(S, T) \
  template [[host_name("forward_" #S "_" #T)]] kernel void antialias_forward<S, T>( \
      device T*, device const S*, device const int*, device const float*, constant long*, uint2, uint2);
FORWARD(float, float)
FORWARD(half, float)
FORWARD(bfloat, float)
FORWARD(float, half)
FORWARD(float, bfloat)
