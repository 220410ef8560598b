#include "shared/reduce.metal"
#include "shared/windows.metal"

// A value and its position in a contiguous plane.
template <typename T> struct candidate {
  T value;
  long index;
};

// The larger value, of equal ones the earlier. A NaN wins, and of several the last: as on the CPU.
struct better_candidate {
  template <typename T> static candidate<T> combine(candidate<T> a, candidate<T> b) {
    const bool nan_a = is_nan(a.value), nan_b = is_nan(b.value);
    if (nan_a || nan_b) {
      return nan_a && (!nan_b || a.index > b.index) ? a : b;
    }
    return a.value > b.value || (a.value == b.value && a.index < b.index) ? a : b;
  }
};

template <typename T>
inline candidate<T> candidate_at(place3d at, device const T* plane, thread const pool3d& pool) {
  return candidate<T>{plane[offset_in_plane(at, pool)], (at.d * pool.in[1] + at.h) * pool.in[2] + at.w};
}

// A thread an output, for small windows.
template <typename T>
kernel void adaptive_max_pool3d(
    device T* out [[buffer(0)]],
    device long* indices [[buffer(1)]],
    device const T* input [[buffer(2)]],
    constant long* geometry [[buffer(3)]],
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
  candidate<T> best = candidate_at(window.at(0), plane, pool);
  for (long k = 1; k < window.volume(); ++k) {
    best = better_candidate::combine(best, candidate_at(window.at(k), plane, pool));
  }
  out[i] = best.value;
  indices[i] = best.index;
}

// A group of 256 threads an output, for large windows.
template <typename T>
kernel void adaptive_max_pool3d_large(
    device T* out [[buffer(0)]],
    device long* indices [[buffer(1)]],
    device const T* input [[buffer(2)]],
    constant long* geometry [[buffer(3)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  const uint i = group.y;
  threadgroup candidate<T> scratch[256];
  const pool3d pool = read_pool3d(geometry);
  const place3d at = place_of(i, pool.out);
  const window3d window(at, pool);
  device const T* plane = input + plane_offset(at.plane, pool);
  window_walk walk(window, min(long(thread_index), window.volume() - 1), 256);
  candidate<T> best = candidate_at(walk.at, plane, pool);
  for (long k = thread_index + 256; k < window.volume(); k += 256) {
    walk.next();
    best = better_candidate::combine(best, candidate_at(walk.at, plane, pool));
  }
  best = reduce_group<better_candidate>(best, scratch, thread_index, 256);
  if (thread_index == 0) {
    out[i] = best.value;
    indices[i] = best.index;
  }
}

// A thread an input: the gradients of those windows whose largest value it was. The operands are contiguous.
template <typename T>
kernel void adaptive_max_pool3d_backward(
    device T* gradient [[buffer(0)]],
    device const T* output_gradient [[buffer(1)]],
    device const long* indices [[buffer(2)]],
    constant long* geometry [[buffer(3)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const pool3d pool = read_pool3d(geometry);
  const ulong i = element_of<ulong>(position, grid);
  if (i >= count_of(pool.planes, pool.in)) {
    return;
  }
  const place3d at = place_of(i, pool.in);
  const long index = (at.d * pool.in[1] + at.h) * pool.in[2] + at.w;
  float sum = 0.0f;
  const long last_d = last_window(at.d, pool.in[0], pool.out[0]);
  const long last_h = last_window(at.h, pool.in[1], pool.out[1]);
  const long last_w = last_window(at.w, pool.in[2], pool.out[2]);
  for (long d = first_window(at.d, pool.in[0], pool.out[0]); d < last_d; ++d) {
    for (long h = first_window(at.h, pool.in[1], pool.out[1]); h < last_h; ++h) {
      for (long w = first_window(at.w, pool.in[2], pool.out[2]); w < last_w; ++w) {
        const long o = ((at.plane * pool.out[0] + d) * pool.out[1] + h) * pool.out[2] + w;
        sum += indices[o] == index ? float(output_gradient[o]) : 0.0f;
      }
    }
  }
  gradient[i] = T(sum);
}

#define ADAPTIVE_MAX_POOL3D(T) \
  template [[host_name("adaptive_max_pool3d_" #T)]] kernel void adaptive_max_pool3d<T>( \
      device T*, device long*, device const T*, constant long*, uint2, uint2); \
  template [[host_name("adaptive_max_pool3d_large_" #T)]] kernel void adaptive_max_pool3d_large<T>( \
      device T*, device long*, device const T*, constant long*, uint2, uint); \
  template [[host_name("adaptive_max_pool3d_backward_" #T)]] kernel void adaptive_max_pool3d_backward<T>( \
      device T*, device const T*, device const long*, constant long*, uint2, uint2);
ADAPTIVE_MAX_POOL3D(float)
ADAPTIVE_MAX_POOL3D(half)
ADAPTIVE_MAX_POOL3D(bfloat)
