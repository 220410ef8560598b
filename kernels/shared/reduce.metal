// Reductions over the threads of a group.
#include <metal_stdlib>
using namespace metal;

// The combination of the values of all threads of a one-dimensional group of up to 1,024 threads, in every thread.
// `scratch` has room for as many values as the group has threads and may be used again at once.
// OP::combine(a, b) takes the value of a lower thread first.
template <typename OP, typename T>
inline T reduce_group(T value, threadgroup T* scratch, uint thread_index, uint threads) {
  scratch[thread_index] = value;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint active = threads; active > 1;) {
    const uint half_of = (active + 1) / 2;
    if (thread_index + half_of < active) {
      scratch[thread_index] = OP::combine(scratch[thread_index], scratch[thread_index + half_of]);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    active = half_of;
  }
  const T result = scratch[0];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return result;
}

// The same for a sum: first over each SIMD group, then over their sums, so that the group waits twice only.
// The group consists of whole SIMD groups, and all its threads come here.
inline float sum_group(float value, threadgroup float* scratch, uint thread_index, uint threads) {
  constexpr uint SIMD_WIDTH = 32;
  const uint lane = thread_index % SIMD_WIDTH;
  const float part = simd_sum(value);
  if (lane == 0) {
    scratch[thread_index / SIMD_WIDTH] = part;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float total = simd_sum(lane < threads / SIMD_WIDTH ? scratch[lane] : 0.0f);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return total;
}

template <typename T> inline bool is_nan(T x) { return x != x; }

// The larger or the smaller of two values; a NaN wins.
struct max_of {
  template <typename T> static T combine(T a, T b) {
    return is_nan(a) || a > b ? a : (is_nan(b) ? b : (b > a ? b : a));
  }
};
struct min_of {
  template <typename T> static T combine(T a, T b) {
    return is_nan(a) || a < b ? a : (is_nan(b) ? b : (b < a ? b : a));
  }
};
