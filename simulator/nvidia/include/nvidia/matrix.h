// metal_simdgroup_matrix: an 8x8 matrix over 32 lanes; each lane has two adjacent elements of a row.
#pragma once
#include "lanes.h"

namespace metal {
template <class T, int R, int C> struct simdgroup_matrix {
  vec<T, 2> pair;
  simdgroup_matrix() = default;
  explicit simdgroup_matrix(T x) : pair(x) {}
  vec<T, 2>& thread_elements() { return pair; }
  const vec<T, 2>& thread_elements() const { return pair; }
};
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;

// The row and the first column of a lane; and the lane of an element.
MSL_INLINE uint nvidia_row(uint lane) { return (lane / 4 & 4) + lane / 2 % 4; }
MSL_INLINE uint nvidia_column(uint lane) { return (lane / 4 & 2) * 2 + lane % 2 * 2; }
MSL_INLINE uint nvidia_lane_at(uint row, uint column) {
  return row % 4 * 2 + row / 4 * 16 + column / 4 * 8 + column % 4 / 2;
}

template <class T, int R, int C = R> MSL_INLINE simdgroup_matrix<T, R, C> make_filled_simdgroup_matrix(T x) {
  return simdgroup_matrix<T, R, C>(x);
}
template <class T, int R, int C = R> MSL_INLINE simdgroup_matrix<T, R, C> make_diagonal_simdgroup_matrix(T x) {
  simdgroup_matrix<T, R, C> m;
  uint row = nvidia_row(nvidia_lane()), column = nvidia_column(nvidia_lane());
  m.pair = vec<T, 2>(row == column ? x : (T)0, row == column + 1 ? x : (T)0);
  return m;
}
MSL_INLINE ulong nvidia_offset(uint k, ulong stride, ulong2 origin, bool transposed) {
  ulong row = nvidia_row(nvidia_lane()), column = nvidia_column(nvidia_lane()) + k;
  return transposed ? (origin.y + column) * stride + origin.x + row : (origin.y + row) * stride + origin.x + column;
}
template <class T, class U, int R, int C>
MSL_INLINE void simdgroup_load(
    simdgroup_matrix<T, R, C>& m,
    const U* p,
    ulong row_stride = C,
    ulong2 origin = ulong2(0),
    bool transposed = false) {
  for (uint k = 0; k < 2; k++) m.pair[k] = p[nvidia_offset(k, row_stride, origin, transposed)];
}
template <class T, class U, int R, int C>
MSL_INLINE void simdgroup_store(
    const simdgroup_matrix<T, R, C>& m,
    U* p,
    ulong row_stride = C,
    ulong2 origin = ulong2(0),
    bool transposed = false) {
  for (uint k = 0; k < 2; k++) p[nvidia_offset(k, row_stride, origin, transposed)] = m.pair[k];
}

template <class D, class A, class B, class E>
MSL_LANE_INLINE void simdgroup_multiply_accumulate(
    simdgroup_matrix<D, 8, 8>& d,
    const simdgroup_matrix<A, 8, 8>& a,
    const simdgroup_matrix<B, 8, 8>& b,
    const simdgroup_matrix<E, 8, 8>& c) {
  auto left = msl_share((vec<float, 2>)a.pair);
  auto right = msl_share((vec<float, 2>)b.pair);
  uint row = nvidia_row(left.lane), column = nvidia_column(left.lane);
  float sum[2] = {(float)c.pair[0], (float)c.pair[1]};
  for (uint k = 0; k < 8; k++) {
    float x = left[nvidia_lane_at(row, k)][k & 1];
    vec<float, 2> y = right[nvidia_lane_at(k, column)];
    for (int j = 0; j < 2; j++) sum[j] += x * y[j];
  }
  d.pair = vec<D, 2>((D)sum[0], (D)sum[1]);
}
template <class D, class A, class B>
MSL_LANE_INLINE void simdgroup_multiply(
    simdgroup_matrix<D, 8, 8>& d, const simdgroup_matrix<A, 8, 8>& a, const simdgroup_matrix<B, 8, 8>& b) {
  simdgroup_matrix<D, 8, 8> zero((D)0);
  simdgroup_multiply_accumulate(d, a, b, zero);
}
template <class T>
MSL_LANE_INLINE simdgroup_matrix<T, 8, 8> operator*(simdgroup_matrix<T, 8, 8> a, simdgroup_matrix<T, 8, 8> b) {
  simdgroup_matrix<T, 8, 8> d;
  simdgroup_multiply(d, a, b);
  return d;
}
} // namespace metal
