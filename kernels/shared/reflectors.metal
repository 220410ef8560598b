#include "shared/field.metal"
#include "shared/reduce.metal"

// Householder's reflectors I - tau v v^H as LAPACK's ?geqrf stores them: v below the diagonal of a column, its first
// element is 1 and is not stored. All matrices here are column-major.

constant uint SIMD_WIDTH = 32;

// The largest of the numbers that the threads of a group of whole SIMD groups have.
inline float largest_of_group(float value, threadgroup float* scratch, uint thread_index, uint threads) {
  const uint lane = thread_index % SIMD_WIDTH;
  const float part = simd_max(value);
  if (lane == 0) {
    scratch[thread_index / SIMD_WIDTH] = part;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float largest = simd_max(lane < threads / SIMD_WIDTH ? scratch[lane] : 0.0f);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return largest;
}

// The reflector that leaves of a column its first element alone, which becomes `beta`; LAPACK's ?larfg.
template <typename T> struct reflector {
  T tau;
  T over_first;  // what the other elements are divided by
  float scale;   // a power of two that they are multiplied with before
  float beta;
  bool turns;  // false where there is nothing to do
};

inline float real_part(float a) { return a; }
inline float real_part(float2 a) { return a.x; }
inline float imaginary_part(float) { return 0.0f; }
inline float imaginary_part(float2 a) { return a.y; }
inline float complex_or_real(float x, float, float) { return x; }
inline float2 complex_or_real(float x, float y, float2) { return float2(x, y); }

template <typename T>
inline reflector<T> reflector_of(
    device const T* column, int length, threadgroup float* scratch, uint thread_index, uint threads) {
  const T first = column[0];
  float largest = 0.0f;
  for (int i = 1 + int(thread_index); i < length; i += int(threads)) {
    largest = max(largest, larger_part(column[i]));
  }
  const float largest_below = largest_of_group(largest, scratch, thread_index, threads);
  largest = max(largest_below, larger_part(first));
  int exponent;
  frexp(largest, exponent);
  const float scale = largest > 0.0f && isfinite(largest) ? exp2(float(-clamp(exponent, -126, 126))) : 1.0f;
  float squares = 0.0f;
  for (int i = 1 + int(thread_index); i < length; i += int(threads)) {
    const T x = column[i] * scale;
    squares += real_part(x) * real_part(x) + imaginary_part(x) * imaginary_part(x);
  }
  squares = sum_group(squares, scratch, thread_index, threads);
  const T alpha = first * scale;
  const float re = real_part(alpha), im = imaginary_part(alpha);
  // Squares may be zero where numbers are not: LAPACK's reflector turns those too.
  if (largest_below == 0.0f && squares == 0.0f && im == 0.0f) {
    return reflector<T>{number<T>(0.0f), number<T>(1.0f), 1.0f, real_part(first), false};
  }
  const float norm = precise::sqrt(re * re + im * im + squares);
  const float beta = re < 0.0f ? norm : -norm;  // a zero of either sign counts as positive
  // What is divided by an infinity would be zero, and look like a reflector.
  const T over_first = isfinite(beta) ? alpha - number<T>(beta) : number<T>(NAN);
  return reflector<T>{complex_or_real((beta - re) / beta, -im / beta, alpha), over_first, scale, beta / scale, true};
}

// What a reflector makes of a column, by one SIMD group: the column minus tau (v^H column) v. The first element of v is
// multiplied with, as LAPACK does: 1 times a complex infinity is NaN.
template <typename T> inline void reflect(device const T* v, T tau, device T* column, int length, uint lane) {
  T product = number<T>(0.0f);
  for (int i = int(lane); i < length; i += int(SIMD_WIDTH)) {
    product += times(i == 0 ? number<T>(1.0f) : conjugate(v[i]), column[i]);
  }
  product = times(tau, simd_total(product));
  for (int i = int(lane); i < length; i += int(SIMD_WIDTH)) {
    column[i] -= times(i == 0 ? number<T>(1.0f) : v[i], product);
  }
}

// A group a matrix of `rows` by `columns`: makes the reflectors of columns `first` up to `last`, and applies each to the
// columns behind it up to `end`.
template <typename T>
kernel void qr_panel(
    device T* matrices [[buffer(0)]],
    device T* taus [[buffer(1)]],
    constant int& rows [[buffer(2)]],
    constant int& columns [[buffer(3)]],
    constant int& first [[buffer(4)]],
    constant int& last [[buffer(5)]],
    constant int& end [[buffer(6)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  threadgroup float scratch[SIMD_WIDTH];
  const uint threads = group_size.x, lane = thread_index % SIMD_WIDTH;
  device T* matrix = matrices + ulong(group.y) * ulong(rows) * ulong(columns);
  device T* tau = taus + ulong(group.y) * ulong(min(rows, columns));
  for (int j = first; j < last; ++j) {
    device T* column = matrix + ulong(j) * ulong(rows) + ulong(j);
    const int length = rows - j;
    const reflector<T> by = reflector_of(column, length, scratch, thread_index, threads);
    threadgroup_barrier(mem_flags::mem_device);
    for (int i = 1 + int(thread_index); by.turns && i < length; i += int(threads)) {
      column[i] = over(column[i] * by.scale, by.over_first);
    }
    if (thread_index == 0) {
      tau[j] = by.tau;
      column[0] = number<T>(by.beta);
    }
    threadgroup_barrier(mem_flags::mem_device);
    for (int k = j + 1 + int(thread_index / SIMD_WIDTH); by.turns && k < end; k += int(threads / SIMD_WIDTH)) {
      reflect(column, conjugate(by.tau), matrix + ulong(k) * ulong(rows) + ulong(j), length, lane);
    }
    threadgroup_barrier(mem_flags::mem_device);
  }
}

// A SIMD group a column behind the first `skipped` ones of each of the matrices, which have `targets` columns: applies
// the reflectors `first` up to `last`. Adjoint: the first one first, each as its adjoint.
template <typename T>
kernel void qr_reflect(
    device T* matrices [[buffer(0)]],
    device const T* factors [[buffer(1)]],
    device const T* taus [[buffer(2)]],
    constant int& rows [[buffer(3)]],
    constant int& targets [[buffer(4)]],
    constant int& skipped [[buffer(5)]],
    constant int& columns [[buffer(6)]],
    constant int& reflectors [[buffer(7)]],
    constant int& first [[buffer(8)]],
    constant int& last [[buffer(9)]],
    constant int& adjoint [[buffer(10)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  const uint behind = uint(targets - skipped);
  const ulong matrix = group.y / behind;
  device T* column = matrices + (matrix * ulong(targets) + ulong(skipped) + ulong(group.y % behind)) * ulong(rows);
  device const T* vectors = factors + matrix * ulong(rows) * ulong(columns);
  device const T* tau = taus + matrix * ulong(reflectors);
  for (int step = 0; step < last - first; ++step) {
    const int j = adjoint ? first + step : last - 1 - step;
    const T factor = adjoint ? conjugate(tau[j]) : tau[j];
    reflect(vectors + ulong(j) * ulong(rows) + ulong(j), factor, column + j, rows - j, lane);
    simdgroup_barrier(mem_flags::mem_device);
  }
}

// The kernels of matrices of T under names of the family's own, NAME first: all families may come to stand in one library.
#define REFLECTORS(NAME, T) \
  template [[host_name(NAME "panel_" #T)]] kernel void qr_panel<T>( \
      device T*, device T*, constant int&, constant int&, constant int&, constant int&, constant int&, uint2, uint, \
      uint2); \
  template [[host_name(NAME "reflect_" #T)]] kernel void qr_reflect<T>( \
      device T*, device const T*, device const T*, constant int&, constant int&, constant int&, constant int&, \
      constant int&, constant int&, constant int&, constant int&, uint2, uint);
