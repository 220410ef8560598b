#include "shared/atomic.metal"
#include "shared/division.metal"
#include "shared/reduce.metal"
#include "shared/report.metal"
#include "shared/strided.metal"

// Where window o of O starts: the windows of `size` are spread over `inputs` by a random sample, the last one ends at
// the end (Graham, Fractional Max-Pooling, 2014, in the form that torch uses). Samples lie in [0, 1); what others
// would put outside of the input is moved to its ends.
inline long interval_start(float sample, long o, long inputs, long outputs, long size) {
  if (o == outputs - 1) {
    return inputs - size;
  }
  const float alpha = float(inputs - size) / float(outputs - 1);
  return clamp(long((float(o) + sample) * alpha) - long(sample * alpha), 0l, inputs - size);
}

// A thread an output. g: depth, height and width of input, output and window, then channels and the strides of image,
// channel, depth, height and width, and the number of outputs. Samples are contiguous (images, channels, 3), for
// depth, height and width.
template <typename T>
kernel void fractional_max_pool3d(
    device T* out [[buffer(0)]],
    device long* indices [[buffer(1)]],
    device const T* input [[buffer(2)]],
    device const T* samples [[buffer(3)]],
    constant long* g [[buffer(4)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const ulong i = element_of<ulong>(position, grid);
  if (i >= ulong(g[15])) {
    return;
  }
  constant long* in = g;
  constant long* outputs = g + 3;
  constant long* window = g + 6;
  constant long* stride = g + 12;
  const long row = quotient(long(i), outputs[2]), slice = quotient(row, outputs[1]),
             plane = quotient(slice, outputs[0]);
  const long at[3] = {slice - plane * outputs[0], row - slice * outputs[1], long(i) - row * outputs[2]};
  long start[3];
  for (uint d = 0; d < 3; ++d) {
    start[d] = interval_start(float(samples[3 * plane + d]), at[d], in[d], outputs[d], window[d]);
  }
  const long image = quotient(plane, g[9]);
  device const T* x = input + image * g[10] + (plane - image * g[9]) * g[11];
  float best = -INFINITY;
  long index = (start[0] * in[1] + start[1]) * in[2] + start[2];
  for (long t = start[0]; t < start[0] + window[0]; ++t) {
    for (long h = start[1]; h < start[1] + window[1]; ++h) {
      for (long w = start[2]; w < start[2] + window[2]; ++w) {
        const float value = float(x[t * stride[0] + h * stride[1] + w * stride[2]]);
        if (value > best || is_nan(value)) {
          best = value;
          index = (t * in[1] + h) * in[2] + w;
        }
      }
    }
  }
  out[i] = T(best);
  indices[i] = index;
}

// A thread an output: its gradient goes to the input that was largest. Windows overlap, so that inputs may get several.
// `gradient` is float32 and zero. shape: elements of an output plane, of an input plane, and of all outputs.
template <typename T>
kernel void fractional_max_pool3d_backward(
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
    REPORT("fractional_max_pool3d_backward(): index ", index, " is out of range of a plane of ", shape[1], " elements");
  }
}

#define FRACTIONAL_MAX_POOL3D(T) \
  template [[host_name("fractional_max_pool3d_" #T)]] kernel void fractional_max_pool3d<T>( \
      device T*, device long*, device const T*, device const T*, constant long*, uint2, uint2); \
  template [[host_name("fractional_max_pool3d_backward_" #T)]] kernel void fractional_max_pool3d_backward<T>( \
      device float*, device const T*, device const long*, constant long*, REPORT_TYPE uint2, uint2);
FRACTIONAL_MAX_POOL3D(float)
FRACTIONAL_MAX_POOL3D(half)
FRACTIONAL_MAX_POOL3D(bfloat)
