#include "shared/lanes.metal"
#include "shared/reduce.metal"

// How the differences of two rows become their distance; p[0] is p. `term` of each, `combine` of all, `finish` at last.
struct norm_of {
  static float term(float difference, float p) {
    const float x = abs(difference);
    return p == 2.0f            ? x * x
        : p == 0.0f             ? (is_nan(x)       ? x
                                       : x != 0.0f ? 1.0f
                                                   : 0.0f)
        : p == 1.0f || isinf(p) ? x
                                : precise::pow(x, p);
  }
  static float combine(float a, float b, float p) { return isinf(p) ? max_of::combine(a, b) : a + b; }
  static float with(float sum, float difference, float p) {
    return p == 2.0f ? sum + difference * difference : combine(sum, term(difference, p), p);
  }
  static float finish(float sum, float p) {
    return p == 2.0f ? precise::sqrt(sum) : p == 0.0f || p == 1.0f || isinf(p) ? sum : precise::pow(sum, 1.0f / p);
  }
};

// The index of the pair of rows i < j among all pairs of n rows.
inline ulong pair_index(ulong i, ulong j, ulong n) { return i * n - i * (i + 1) / 2 + j - i - 1; }

// A thread a pair, for short rows; the grid is (rows, rows of this launch), half of which has nothing to do. shape:
// rows, columns, the first row of this launch, and whether each row starts at a multiple of 16 bytes. Then 16 bytes are
// read at a time: the threads of a SIMD group read different rows, and each load of one number would bring a cache line
// for it.
template <typename T>
kernel void pdist(
    device T* out [[buffer(0)]],
    device const T* input [[buffer(1)]],
    constant float& p [[buffer(2)]],
    constant ulong* shape [[buffer(3)]],
    uint2 pair [[thread_position_in_grid]]) {
  const ulong n = shape[0], m = shape[1], i = shape[2] + pair.y, j = pair.x;
  if (j <= i) {
    return;
  }
  device const T* a = input + i * m;
  device const T* b = input + j * m;
  constexpr uint W = lane_count<T>;
  float sum = 0.0f;
  ulong c = 0;
  for (; shape[3] != 0 && c < m; c += W) {
    const auto x = lanes<T, W>::load(a + c), y = lanes<T, W>::load(b + c);
    for (uint k = 0; k < W; ++k) {
      sum = norm_of::with(sum, float(x.value[k]) - float(y.value[k]), p);
    }
  }
  for (; c < m; ++c) {
    sum = norm_of::with(sum, float(a[c]) - float(b[c]), p);
  }
  out[pair_index(i, j, n)] = T(norm_of::finish(sum, p));
}

// A SIMD group a pair, for long rows; the grid is (32 rows, rows of this launch).
template <typename T>
kernel void pdist_large(
    device T* out [[buffer(0)]],
    device const T* input [[buffer(1)]],
    constant float& p [[buffer(2)]],
    constant ulong* shape [[buffer(3)]],
    uint2 pair [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  const ulong n = shape[0], m = shape[1], i = shape[2] + pair.y, j = pair.x;
  if (j <= i) {
    return;
  }
  device const T* a = input + i * m;
  device const T* b = input + j * m;
  float sum = 0.0f;
  for (ulong c = lane; c < m; c += 32) {
    sum = norm_of::with(sum, float(a[c]) - float(b[c]), p);
  }
  for (ushort step = 16; step > 0; step /= 2) {
    sum = norm_of::combine(sum, simd_shuffle_down(sum, step), p);
  }
  if (lane == 0) {
    out[pair_index(i, j, n)] = T(norm_of::finish(sum, p));
  }
}

// What one difference and its distance give to the gradient of the first row's element. The distance was rounded to T:
// the largest difference is the one that rounds to it. A distance that is NaN makes the gradient of its pair NaN, but
// for p = 0 and, where the elements are equal, p < 1, as on the CPU.
template <typename T> inline float pair_gradient(float difference, float gradient, float distance, float p) {
  const float direction = difference > 0.0f ? 1.0f : difference < 0.0f ? -1.0f : is_nan(difference) ? difference : 0.0f;
  if (p == 0.0f || distance == 0.0f) {
    return 0.0f;
  }
  if (p == 1.0f) {
    return direction * gradient;
  }
  if (p == 2.0f) {
    return gradient * difference / distance;
  }
  if (isinf(p)) {
    const float below = distance - float(T(abs(difference)));  // NaN where both are infinite
    return is_nan(below) ? below : below == 0.0f ? direction * gradient : 0.0f;
  }
  if (difference == 0.0f) {
    return p > 1.0f && is_nan(distance) ? distance : 0.0f;
  }
  return direction * precise::pow(abs(difference) / distance, p - 1.0f) * gradient;
}

// A thread an element of the input; the grid is (columns, rows of this launch). It takes its distance to every other
// element of its column.
template <typename T>
kernel void pdist_backward(
    device T* result [[buffer(0)]],
    device const T* gradient [[buffer(1)]],
    device const T* input [[buffer(2)]],
    device const T* distances [[buffer(3)]],
    constant float& p [[buffer(4)]],
    constant ulong* shape [[buffer(5)]],
    uint2 at [[thread_position_in_grid]]) {
  const ulong n = shape[0], m = shape[1], row = shape[2] + at.y, column = at.x;
  const float x = float(input[row * m + column]);
  float sum = 0.0f;
  for (ulong other = 0; other < n; ++other) {
    if (other != row) {
      const ulong k = other < row ? pair_index(other, row, n) : pair_index(row, other, n);
      sum += pair_gradient<T>(x - float(input[other * m + column]), float(gradient[k]), float(distances[k]), p);
    }
  }
  result[row * m + column] = T(sum);
}

#define PDIST(T) \
  template [[host_name("pdist_" #T)]] kernel void pdist<T>( \
      device T*, device const T*, constant float&, constant ulong*, uint2); \
  template [[host_name("pdist_large_" #T)]] kernel void pdist_large<T>( \
      device T*, device const T*, constant float&, constant ulong*, uint2, uint); \
  template [[host_name("pdist_backward_" #T)]] kernel void pdist_backward<T>( \
      device T*, device const T*, device const T*, device const T*, constant float&, constant ulong*, uint2);
PDIST(float)
PDIST(half)
PDIST(bfloat)
