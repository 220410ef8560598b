// Fractional maximum pooling over two or three dimensions, and its backward.
#include "shared/atomic.metal"
#include "shared/division.metal"
#include "shared/reduce.metal"
#include "shared/report.metal"
#include "shared/strided.metal"

// Where window o of O starts: the windows of `size` are spread over `inputs` by a random sample, the last one ends at
// the end (Graham, Fractional Max-Pooling, 2014, in the form that torch uses). alpha: the distance of two windows, from
// the host: a GPU takes as long for its division as for the rest of an output. Samples lie in [0, 1); what others would
// put outside of the input is moved to its ends.
template <typename I> inline I interval_start(float sample, float alpha, I o, I inputs, I outputs, I size) {
  const I last = inputs - size;
  const I start = I((float(o) + sample) * alpha) - I(sample * alpha);
  return clamp(start, o == outputs - 1 ? last : I(0), last);
}

// The largest element, and its place in a plane, of windows in ROWS rows of outputs: of all of them an element at a time,
// so that their loads do not wait for each other.
template <typename T, typename I, uint ROWS> struct windows_above_each_other {
  device const T* plane;
  I start[ROWS];
  float best[ROWS];
  I place[ROWS];

  // COLUMNS neighbours of each window: `offset` and `inside` are the first one's distances from the first element of its
  // window, in memory and in a contiguous plane.
  template <uint COLUMNS> void take(I offset, I stride, I inside) {
    T loaded[COLUMNS][ROWS];
    for (uint c = 0; c < COLUMNS; ++c) {
      for (uint k = 0; k < ROWS; ++k) {
        loaded[c][k] = plane[start[k] + offset + I(c) * stride];
      }
    }
    for (uint c = 0; c < COLUMNS; ++c) {
      for (uint k = 0; k < ROWS; ++k) {
        const float value = float(loaded[c][k]);
        const bool wins = value > best[k] || is_nan(value);
        best[k] = wins ? value : best[k];
        place[k] = wins ? inside + I(c) : place[k];
      }
    }
  }
};

// A thread ROWS outputs of one column, whose windows start at one column of the input; grid: the columns, so many rows,
// then planes, or all slices of all planes where DIMS is 3. No thread has to divide but for its plane in a volume, or
// where images are no further planes. g: depth, height and width of input, output and window, then channels and the
// strides of image, channel, depth, height and width; depths are 1 where DIMS is 2. alpha: for depth, height and width.
// Samples are contiguous (images, channels, DIMS): for width and height, or for depth, height and width. I: 32 bits
// where all places fit into 31, which GPUs multiply, divide and turn into floats many times as fast as 64.
template <typename T, typename I, uint DIMS, uint ROWS>
kernel void fractional_max_pool(
    device T* out [[buffer(0)]],
    device long* indices [[buffer(1)]],
    device const T* input [[buffer(2)]],
    device const T* samples [[buffer(3)]],
    constant I* g [[buffer(4)]],
    constant float* alpha [[buffer(5)]],
    uint3 position [[thread_position_in_grid]]) {
  constexpr bool IS_VOLUME = DIMS == 3;
  const I in_height = g[1], in_width = g[2], out_depth = g[3], out_height = g[4], out_width = g[5];
  const I window_height = g[7], window_width = g[8], channels = g[9];
  const I row_stride = g[13], stride = g[14];
  const I w = I(position.x), h = I(position.y) * I(ROWS), slice = I(position.z);
  const I plane = IS_VOLUME ? quotient(slice, out_depth) : slice;
  const I image = plane < channels ? 0 : quotient(plane, channels);
  device const T* sample = samples + ulong(plane) * DIMS;
  const float of_height = float(sample[1]), of_width = float(sample[IS_VOLUME ? 2 : 0]);
  const I left = interval_start<I>(of_width, alpha[2], w, in_width, out_width, window_width);
  I front = 0;
  if (IS_VOLUME) {
    front = interval_start<I>(float(sample[0]), alpha[0], slice - plane * out_depth, g[0], out_depth, g[6]);
  }
  windows_above_each_other<T, I, ROWS> windows;
  windows.plane = input + image * g[10] + (plane - image * channels) * g[11];
  I first[ROWS];  // of each window, in a contiguous plane
  for (uint k = 0; k < ROWS; ++k) {
    // Windows of rows behind the last are kept in the input, too: they are read, but not written.
    const I top = interval_start<I>(of_height, alpha[1], h + I(k), in_height, out_height, window_height);
    windows.start[k] = front * g[12] + top * row_stride + left * stride;
    windows.best[k] = -INFINITY;
    windows.place[k] = 0;
    first[k] = (front * in_height + top) * in_width + left;
  }
  const I depth = IS_VOLUME ? g[6] : 1;
  for (I t = 0; t < depth; ++t) {
    for (I y = 0; y < window_height; ++y) {
      const I offset = t * g[12] + y * row_stride, inside = (t * in_height + y) * in_width;
      I x = 0;
      for (; x + 1 < window_width; x += 2) {
        windows.template take<2>(offset + x * stride, stride, inside + x);
      }
      if (x < window_width) {
        windows.template take<1>(offset + x * stride, stride, inside + x);
      }
    }
  }
  const I at = (slice * out_height + h) * out_width + w;
  for (uint k = 0; k < ROWS; ++k) {
    if (h + I(k) < out_height) {
      out[at + I(k) * out_width] = T(windows.best[k]);
      indices[at + I(k) * out_width] = long(first[k] + windows.place[k]);
    }
  }
}

// A thread an output: its gradient goes to the input that was largest. Windows overlap, so that inputs may get several.
// `gradient` is float32 and zero. shape: elements of an output plane, of an input plane, and of all outputs.
template <typename T, uint DIMS>
kernel void fractional_max_pool_backward(
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
    REPORT(
        "fractional_max_pool", long(DIMS), "d_backward(): index ", index, " is out of range of a plane of ", shape[1],
        " elements");
  }
}

#define FRACTIONAL_FORWARD(NAME, T, I, DIMS, ROWS) \
  template [[host_name(NAME "_" #T)]] kernel void fractional_max_pool<T, I, DIMS, ROWS>( \
      device T*, device long*, device const T*, device const T*, constant I*, constant float*, uint3);

// Kernels with one and with four rows a thread, in 64 and in 32 bits.
#define FRACTIONAL_MAX_POOL(NAME, T, DIMS) \
  FRACTIONAL_FORWARD(NAME, T, long, DIMS, 1) \
  FRACTIONAL_FORWARD(NAME "_32", T, int, DIMS, 1) \
  FRACTIONAL_FORWARD(NAME "_rows", T, long, DIMS, 4) \
  FRACTIONAL_FORWARD(NAME "_rows_32", T, int, DIMS, 4) \
  template [[host_name(NAME "_backward_" #T)]] kernel void fractional_max_pool_backward<T, DIMS>( \
      device float*, device const T*, device const long*, constant long*, REPORT_TYPE uint2, uint2);
