#include "shared/atomic.metal"
#include "shared/division.metal"
#include "shared/reduce.metal"
#include "shared/report.metal"
#include "shared/strided.metal"

// Where window o of O starts: the windows of `size` are spread over `inputs` by a random sample, the last one ends at
// the end (Graham, Fractional Max-Pooling, 2014, in the form that torch uses).
template <typename I> inline I interval_start(float sample, I o, I inputs, I outputs, I size) {
  if (o == outputs - 1) {
    return inputs - size;
  }
  const float alpha = float(inputs - size) / float(outputs - 1);
  return I((float(o) + sample) * alpha) - I(sample * alpha);
}

// A thread an output. g: height and width of input, output and window, then channels and the strides of image,
// channel, height and width, and the number of outputs. Samples are contiguous (images, channels, 2), first for the
// width, then for the height. I: 32 bits where all places fit into 31, which GPUs multiply, divide and turn into floats many
// times as fast as 64.
template <typename T, typename I>
kernel void fractional_max_pool2d(
    device T* out [[buffer(0)]],
    device long* indices [[buffer(1)]],
    device const T* input [[buffer(2)]],
    device const T* samples [[buffer(3)]],
    constant I* g [[buffer(4)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const ulong element = element_of<ulong>(position, grid);
  if (element >= ulong(g[11])) {
    return;
  }
  const I i = I(element);
  const I in_height = g[0], in_width = g[1], out_height = g[2], out_width = g[3];
  const I window_height = g[4], window_width = g[5], channels = g[6];
  const I row_of_outputs = quotient(i, out_width), plane = quotient(row_of_outputs, out_height);
  const I w = i - row_of_outputs * out_width, h = row_of_outputs - plane * out_height;
  const I top = interval_start<I>(float(samples[2 * plane + 1]), h, in_height, out_height, window_height);
  const I left = interval_start<I>(float(samples[2 * plane]), w, in_width, out_width, window_width);
  const I image = quotient(plane, channels);
  device const T* x = input + image * g[7] + (plane - image * channels) * g[8];
  float best = -INFINITY;
  I index = top * in_width + left;
  for (I row = top; row < top + window_height; ++row) {
    for (I column = left; column < left + window_width; ++column) {
      const float value = float(x[row * g[9] + column * g[10]]);
      if (value > best || is_nan(value)) {
        best = value;
        index = row * in_width + column;
      }
    }
  }
  out[i] = T(best);
  indices[i] = long(index);
}

// A thread an output: its gradient goes to the input that was largest. Windows overlap, so that inputs may get several.
// `gradient` is float32 and zero. shape: elements of an output plane, of an input plane, and of all outputs.
template <typename T>
kernel void fractional_max_pool2d_backward(
    device float* gradient [[buffer(0)]],
    device const T* output_gradient [[buffer(1)]],
    device const long* indices [[buffer(2)]],
    constant long* shape [[buffer(3)]],
    REPORT_BUFFER(4) uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const ulong i = element_of<ulong>(position, grid);
  if (i >= ulong(shape[2])) {
    return;
  }
  const long index = indices[i];
  if (index >= 0 && index < shape[1]) {
    const ulong place = quotient(i, ulong(shape[0])) * ulong(shape[1]) + ulong(index);
    atomic_adder<float>::add(gradient, place, float(output_gradient[i]));
  } else {
    REPORT("fractional_max_pool2d_backward(): index ", index, " is out of range of a plane of ", shape[1], " elements");
  }
}

#define FRACTIONAL_MAX_POOL2D(T) \
  template [[host_name("fractional_max_pool2d_" #T)]] kernel void fractional_max_pool2d<T, long>( \
      device T*, device long*, device const T*, device const T*, constant long*, uint2, uint2); \
  template [[host_name("fractional_max_pool2d_32_" #T)]] kernel void fractional_max_pool2d<T, int>( \
      device T*, device long*, device const T*, device const T*, constant int*, uint2, uint2); \
  template [[host_name("fractional_max_pool2d_backward_" #T)]] kernel void fractional_max_pool2d_backward<T>( \
      device float*, device const T*, device const long*, constant long*, REPORT_TYPE uint2, uint2);
FRACTIONAL_MAX_POOL2D(float)
FRACTIONAL_MAX_POOL2D(half)
FRACTIONAL_MAX_POOL2D(bfloat)
