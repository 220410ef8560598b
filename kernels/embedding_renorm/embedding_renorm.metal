#include "shared/reduce.metal"
#include "shared/report.metal"

struct smaller {
  static float combine(float a, float b) { return is_nan(a) || a < b ? a : b; }
};

struct larger {
  static float combine(float a, float b) { return is_nan(a) || a > b ? a : b; }
};

template <typename T> inline float magnitude(T x) { return abs(float(x)); }
template <> inline float magnitude(float2 x) { return precise::sqrt(x.x * x.x + x.y * x.y); }

template <typename T> inline T scaled(T x, float scale) { return T(float(x) * scale); }
template <> inline float2 scaled(float2 x, float scale) { return x * scale; }

// A group an index, of sorted indices; only the first of equal ones works. A row whose norm is beyond the limit is
// scaled to it. g: columns, rows, and the strides of row and column. p: the limit and which norm.
template <typename T>
kernel void embedding_renorm(
    device T* weight [[buffer(0)]],
    device const long* indices [[buffer(1)]],
    constant float* p [[buffer(2)]],
    constant long* g [[buffer(3)]],
    REPORT_BUFFER(4) uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  const uint i = group.y;
  const uint threads = group_size.x;
  threadgroup float scratch[256];
  const long index = indices[i], columns = g[0];
  const bool works = (i == 0 || indices[i - 1] != index) && index >= 0 && index < g[1];
  if (thread_index == 0 && (index < 0 || index >= g[1])) {
    REPORT("embedding_renorm_(): index ", index, " is out of range of ", g[1], " rows");
  }
  device T* row = weight + (works ? index * g[2] : 0);
  const float limit = p[0];
  const float which = columns == 1 && p[1] != 0.0f ? 1.0f : p[1];  // of one number every norm is its magnitude
  const bool is_smallest = isinf(which) && which < 0.0f;
  float norm = is_smallest ? INFINITY : 0.0f;
  if (works) {
    for (long c = thread_index; c < columns; c += threads) {
      const float x = magnitude(row[c * g[3]]);
      if (is_smallest) {
        norm = smaller::combine(norm, x);
      } else if (isinf(which)) {
        norm = larger::combine(norm, x);
      } else if (which == 2.0f) {
        norm = fma(x, x, norm);
      } else if (which == 0.0f) {
        norm += x != 0.0f ? 1.0f : 0.0f;
      } else {
        norm += which == 1.0f ? x : precise::pow(x, which);
      }
    }
  }
  norm = is_smallest ? reduce_group<smaller>(norm, scratch, thread_index, threads)
      : isinf(which) ? reduce_group<larger>(norm, scratch, thread_index, threads)
                     : sum_group(norm, scratch, thread_index, threads);
  if (which == 2.0f) {
    norm = precise::sqrt(norm);
  } else if (which != 0.0f && which != 1.0f && !isinf(which)) {
    norm = precise::pow(norm, 1.0f / which);
  }
  if (works && norm > limit) {
    const float scale = limit / (norm + 1e-7f);
    for (long c = thread_index; c < columns; c += threads) {
      row[c * g[3]] = scaled(row[c * g[3]], scale);
    }
  }
}

#define EMBEDDING_RENORM(T) \
  template [[host_name("embedding_renorm_" #T)]] kernel void embedding_renorm<T>( \
      device T*, device const long*, constant float*, constant long*, REPORT_TYPE uint2, uint, uint2);
EMBEDDING_RENORM(float)
EMBEDDING_RENORM(half)
EMBEDDING_RENORM(bfloat)
EMBEDDING_RENORM(float2)
