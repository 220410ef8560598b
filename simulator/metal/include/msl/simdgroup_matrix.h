// metal_simdgroup_matrix: an 8x8 matrix over 32 lanes; each lane has two adjacent elements of a row.
#pragma once
#include "sync.h"

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

// The row and the first column of a lane.
MSL_INLINE uint msl_lane_row(uint lane) { return (lane / 4 & 4) + lane / 2 % 4; }
MSL_INLINE uint msl_lane_column(uint lane) { return (lane / 4 & 2) * 2 + lane % 2 * 2; }

template <class T, int R, int C = R> MSL_INLINE simdgroup_matrix<T, R, C> make_filled_simdgroup_matrix(T x) {
  return simdgroup_matrix<T, R, C>(x);
}
template <class T, int R, int C = R> MSL_INLINE simdgroup_matrix<T, R, C> make_diagonal_simdgroup_matrix(T x) {
  simdgroup_matrix<T, R, C> m;
  uint row = msl_lane_row(msl_current_lane), column = msl_lane_column(msl_current_lane);
  m.pair = vec<T, 2>(row == column ? x : (T)0, row == column + 1 ? x : (T)0);
  return m;
}

#define MSL_LOAD(SPACE) \
  template <class T, class U, int R, int C> \
  MSL_INLINE void simdgroup_load(thread simdgroup_matrix<T, R, C>& m, const SPACE U* p, ulong row_stride = C, \
      ulong2 origin = ulong2(0), bool transposed = false) { \
    ulong row = msl_lane_row(msl_current_lane), column = msl_lane_column(msl_current_lane); \
    for (uint k = 0; k < 2; k++) \
      m.pair[k] = transposed ? p[(origin.y + column + k) * row_stride + origin.x + row] \
                             : p[(origin.y + row) * row_stride + origin.x + column + k]; \
  }
#define MSL_STORE(SPACE) \
  template <class T, class U, int R, int C> \
  MSL_INLINE void simdgroup_store(const thread simdgroup_matrix<T, R, C>& m, SPACE U* p, ulong row_stride = C, \
      ulong2 origin = ulong2(0), bool transposed = false) { \
    ulong row = msl_lane_row(msl_current_lane), column = msl_lane_column(msl_current_lane); \
    for (uint k = 0; k < 2; k++) { \
      if (transposed) p[(origin.y + column + k) * row_stride + origin.x + row] = m.pair[k]; \
      else p[(origin.y + row) * row_stride + origin.x + column + k] = m.pair[k]; \
    } \
  }
MSL_LOAD(device) MSL_STORE(device)
#ifdef MSL_STRICT
MSL_LOAD(__global) MSL_LOAD(threadgroup) MSL_STORE(threadgroup)
#endif
#undef MSL_LOAD
#undef MSL_STORE

template <class A, class B> struct msl_matrix_factors {
  vec<A, 2> a;
  vec<B, 2> b;
};
template <class D, class A, class B, class E>
MSL_INLINE void simdgroup_multiply_accumulate(thread simdgroup_matrix<D, 8, 8>& d,
    const thread simdgroup_matrix<A, 8, 8>& a, const thread simdgroup_matrix<B, 8, 8>& b,
    const thread simdgroup_matrix<E, 8, 8>& c) {
  msl_matrix_factors<A, B> mine;
  mine.a = a.pair;
  mine.b = b.pair;
  auto lanes = msl_share_bytes(mine, "simdgroup_multiply_accumulate");
  uint row = msl_lane_row(lanes.lane), column = msl_lane_column(lanes.lane);
  float left[8], right[8][2], sum[2] = {(float)c.pair[0], (float)c.pair[1]};
  for (uint l = 0; l < MSL_SIMD_WIDTH; l++) {
    msl_matrix_factors<A, B> other = lanes[l];
    uint other_row = msl_lane_row(l), other_column = msl_lane_column(l);
    if (other_row == row)
      for (int k = 0; k < 2; k++) left[other_column + k] = other.a[k];
    if (other_column == column)
      for (int k = 0; k < 2; k++) right[other_row][k] = other.b[k];
  }
  for (int k = 0; k < 8; k++)
    for (int j = 0; j < 2; j++) sum[j] += left[k] * right[k][j];
  d.pair = vec<D, 2>((D)sum[0], (D)sum[1]);
}
template <class D, class A, class B>
MSL_INLINE void simdgroup_multiply(thread simdgroup_matrix<D, 8, 8>& d, const thread simdgroup_matrix<A, 8, 8>& a,
    const thread simdgroup_matrix<B, 8, 8>& b) {
  simdgroup_matrix<D, 8, 8> zero((D)0);
  simdgroup_multiply_accumulate(d, a, b, zero);
}
template <class T>
MSL_INLINE simdgroup_matrix<T, 8, 8> operator*(simdgroup_matrix<T, 8, 8> a, simdgroup_matrix<T, 8, 8> b) {
  simdgroup_matrix<T, 8, 8> d;
  simdgroup_multiply(d, a, b);
  return d;
}
} // namespace metal
