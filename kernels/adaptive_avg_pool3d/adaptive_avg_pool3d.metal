#include "shared/reduce.metal"
#include "shared/windows.metal"

// A thread an output, for small windows.
template <typename T>
kernel void adaptive_avg_pool3d(
    device T* out [[buffer(0)]],
    device const T* input [[buffer(1)]],
    constant long* geometry [[buffer(2)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const pool3d pool = read_pool3d(geometry);
  const ulong i = element_of<ulong>(position, grid);
  if (i >= count_of(pool.planes, pool.out)) {
    return;
  }
  const place3d at = place_of(i, pool.out);
  const window3d window(at, pool);
  device const T* plane = input + plane_offset(at.plane, pool);
  float sum = 0.0f;
  for (long k = 0; k < window.volume(); ++k) {
    sum += float(plane[offset_in_plane(window.at(k), pool)]);
  }
  out[i] = T(sum / float(window.volume()));
}

// A group of 256 threads an output, for large windows.
template <typename T>
kernel void adaptive_avg_pool3d_large(
    device T* out [[buffer(0)]],
    device const T* input [[buffer(1)]],
    constant long* geometry [[buffer(2)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  const uint i = group.y;
  threadgroup float scratch[256];
  const pool3d pool = read_pool3d(geometry);
  const place3d at = place_of(i, pool.out);
  const window3d window(at, pool);
  device const T* plane = input + plane_offset(at.plane, pool);
  float sum = 0.0f;
  window_walk walk(window, thread_index, 256);
  for (long k = thread_index; k < window.volume(); k += 256, walk.next()) {
    sum += float(plane[offset_in_plane(walk.at, pool)]);
  }
  sum = sum_group(sum, scratch, thread_index, 256);
  if (thread_index == 0) {
    out[i] = T(sum / float(window.volume()));
  }
}

// A thread an input: what it gave to every window that holds it. The strides are those of the output's gradient.
template <typename T>
kernel void adaptive_avg_pool3d_backward(
    device T* gradient [[buffer(0)]],
    device const T* output_gradient [[buffer(1)]],
    constant long* geometry [[buffer(2)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const pool3d pool = read_pool3d(geometry);
  const ulong i = element_of<ulong>(position, grid);
  if (i >= count_of(pool.planes, pool.in)) {
    return;
  }
  const place3d at = place_of(i, pool.in);
  device const T* plane = output_gradient + plane_offset(at.plane, pool);
  const long first[3] = {
      first_window(at.d, pool.in[0], pool.out[0]), first_window(at.h, pool.in[1], pool.out[1]),
      first_window(at.w, pool.in[2], pool.out[2])};
  const long last[3] = {
      last_window(at.d, pool.in[0], pool.out[0]), last_window(at.h, pool.in[1], pool.out[1]),
      last_window(at.w, pool.in[2], pool.out[2])};
  float sum = 0.0f;
  for (long d = first[0]; d < last[0]; ++d) {
    for (long h = first[1]; h < last[1]; ++h) {
      for (long w = first[2]; w < last[2]; ++w) {
        const place3d o = {0, d, h, w};
        sum += float(plane[offset_in_plane(o, pool)]) / float(window3d(o, pool).volume());
      }
    }
  }
  gradient[i] = T(sum);
}

#define ADAPTIVE_AVG_POOL3D(T) \
  template [[host_name("adaptive_avg_pool3d_" #T)]] kernel void adaptive_avg_pool3d<T>( \
      device T*, device const T*, constant long*, uint2, uint2); \
  template [[host_name("adaptive_avg_pool3d_large_" #T)]] kernel void adaptive_avg_pool3d_large<T>( \
      device T*, device const T*, constant long*, uint2, uint); \
  template [[host_name("adaptive_avg_pool3d_backward_" #T)]] kernel void adaptive_avg_pool3d_backward<T>( \
      device T*, device const T*, constant long*, uint2, uint2);
ADAPTIVE_AVG_POOL3D(float)
ADAPTIVE_AVG_POOL3D(half)
ADAPTIVE_AVG_POOL3D(bfloat)
