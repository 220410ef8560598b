#include "shared/division.metal"
#include "shared/strided.metal"

// Correlations of whole numbers in up to three dimensions, exact: sums wrap. A thread an element of the result gathers
// what makes it up; neighbouring threads read neighbouring inputs, and the same weights.
// The layout, with dimensions that are not there of size 1: the sizes of the result (items, channels, three of space),
// its strides, the strides of the input, those of the weights (channels of the result, of the input, space), the
// sizes in space of the input and of the windows, then strides, padding and dilation of windows in space, and how many
// channels of the input, and of the result, a group has.
struct convolution_layout {
  long size[5];
  long result[5];
  long input[5];
  long weight[5];
  long inputs[3];
  long window[3];
  long stride[3];
  long padding[3];
  long dilation[3];
  long channels_in;
  long channels_out;
};

// Where along one dimension an element of the result finds the input for element k of its window; -1 for nowhere.
inline long seen_by_window(constant convolution_layout& c, int d, long at, long k) {
  const long i = at * c.stride[d] - c.padding[d] + k * c.dilation[d];
  return i >= 0 && i < c.inputs[d] ? i : -1;
}

// The same of a transposed convolution: which input spreads to the element by element k of its window.
inline long spreads_by_window(constant convolution_layout& c, int d, long at, long k) {
  const long ahead = at + c.padding[d] - k * c.dilation[d];
  if (ahead < 0) {
    return -1;
  }
  const long i = quotient(ahead, c.stride[d]);
  return i * c.stride[d] == ahead && i < c.inputs[d] ? i : -1;
}

template <bool TRANSPOSED>
kernel void convolve_whole(
    device long* out [[buffer(0)]],
    device const long* input [[buffer(1)]],
    device const long* weight [[buffer(2)]],
    device const long* bias [[buffer(3)]],
    constant long* layout [[buffer(4)]],
    constant long& bias_stride [[buffer(5)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  constant convolution_layout& c = *reinterpret_cast<constant convolution_layout*>(layout);
  long rest = element_of<long>(position, grid);
  if (rest >= c.size[0] * c.size[1] * c.size[2] * c.size[3] * c.size[4]) {
    return;
  }
  long at[5], place = 0;
  for (int d = 4; d >= 0; --d) {
    const long next = quotient(rest, c.size[d]);
    at[d] = rest - next * c.size[d];
    place += at[d] * c.result[d];
    rest = next;
  }
  const long group = quotient(at[1], c.channels_out), channel = at[1] - group * c.channels_out;
  const long first = group * c.channels_in;
  device const long* item = input + at[0] * c.input[0] + first * c.input[1];
  device const long* row = weight + (TRANSPOSED ? channel * c.weight[0] + first * c.weight[1] : at[1] * c.weight[0]);
  long sum = bias[at[1] * bias_stride];
  for (long x = 0; x < c.window[0]; ++x) {
    const long i = TRANSPOSED ? spreads_by_window(c, 0, at[2], x) : seen_by_window(c, 0, at[2], x);
    for (long y = 0; i >= 0 && y < c.window[1]; ++y) {
      const long j = TRANSPOSED ? spreads_by_window(c, 1, at[3], y) : seen_by_window(c, 1, at[3], y);
      for (long z = 0; j >= 0 && z < c.window[2]; ++z) {
        const long k = TRANSPOSED ? spreads_by_window(c, 2, at[4], z) : seen_by_window(c, 2, at[4], z);
        if (k < 0) {
          continue;
        }
        device const long* seen = item + i * c.input[2] + j * c.input[3] + k * c.input[4];
        device const long* by = row + x * c.weight[2] + y * c.weight[3] + z * c.weight[4];
        for (long channel_in = 0; channel_in < c.channels_in; ++channel_in) {
          const ulong product = ulong(seen[channel_in * c.input[1]]) * ulong(by[channel_in * c.weight[1]]);
          sum = long(ulong(sum) + product);
        }
      }
    }
  }
  out[place] = sum;
}

#define CONVOLVE(NAME, TRANSPOSED) \
  template [[host_name(NAME)]] kernel void convolve_whole<TRANSPOSED>( \
      device long*, device const long*, device const long*, device const long*, constant long*, constant long&, uint2, \
      uint2);
CONVOLVE("convolve", false)
CONVOLVE("convolve_transposed", true)
