// Filters of antialiased resampling, and the table of windows and weights that they give along one axis.
#include <metal_stdlib>
using namespace metal;

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

// The kernel of a filter under a name of the family's own: all families may come to stand in one library.
#define WEIGHTS(NAME, F) \
  template [[host_name(NAME #F)]] kernel void antialias_weights<F>( \
      device int*, device float*, constant long*, constant float&, uint);
