// Elementwise kernels from a functor F with `static ... apply(...)`, for dense operands and for any layout.
//
// Dense: all operands are contiguous and start at a multiple of 16 bytes; a thread moves 16 bytes of the widest operand.
// Only the last thread can end early, so that all others load at once and do not wait for the number of elements: worth 2 %
// of the bandwidth on an H200, where numbers passed by value come from memory; nothing is lost where they do not.
// Parameters of an operator come as floats, `p`; an operator without any leaves them alone.
#include "shared/lanes.metal"
#include "shared/strided.metal"

// out = F(a)
template <typename F, typename T>
kernel void unary_dense(
    device T* out [[buffer(0)]],
    device const T* a [[buffer(1)]],
    constant float* p [[buffer(2)]],
    constant ulong& elements [[buffer(3)]],
    uint i [[thread_position_in_grid]],
    uint grid [[threads_per_grid]]) {
  constexpr uint W = lane_count<T>;
  const ulong first = ulong(i) * W;
  if (i + 1 < grid || first + W <= elements) {
    const auto x = lanes<T, W>::load(a + first);
    lanes<T, W> y;
    for (uint k = 0; k < W; ++k) {
      y.value[k] = F::apply(x.value[k], p);
    }
    y.store(out + first);
    return;
  }
  for (ulong e = first; e < elements; ++e) {
    out[e] = F::apply(a[e], p);
  }
}

template <typename F, typename T, typename I>
kernel void unary_strided(
    device T* out [[buffer(0)]],
    device const T* a [[buffer(1)]],
    constant float* p [[buffer(2)]],
    constant I* layout [[buffer(3)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const I element = element_of<I>(position, grid);
  if (element < layout[0]) {
    const offsets<2, I> o(layout, element);
    out[o.at[0]] = F::apply(a[o.at[1]], p);
  }
}

// out = F(a, b)
template <typename F, typename T>
kernel void binary_dense(
    device T* out [[buffer(0)]],
    device const T* a [[buffer(1)]],
    device const T* b [[buffer(2)]],
    constant float* p [[buffer(3)]],
    constant ulong& elements [[buffer(4)]],
    uint i [[thread_position_in_grid]],
    uint grid [[threads_per_grid]]) {
  constexpr uint W = lane_count<T>;
  const ulong first = ulong(i) * W;
  if (i + 1 < grid || first + W <= elements) {
    const auto x = lanes<T, W>::load(a + first);
    const auto y = lanes<T, W>::load(b + first);
    lanes<T, W> z;
    for (uint k = 0; k < W; ++k) {
      z.value[k] = F::apply(x.value[k], y.value[k], p);
    }
    z.store(out + first);
    return;
  }
  for (ulong e = first; e < elements; ++e) {
    out[e] = F::apply(a[e], b[e], p);
  }
}

template <typename F, typename T, typename I>
kernel void binary_strided(
    device T* out [[buffer(0)]],
    device const T* a [[buffer(1)]],
    device const T* b [[buffer(2)]],
    constant float* p [[buffer(3)]],
    constant I* layout [[buffer(4)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const I element = element_of<I>(position, grid);
  if (element < layout[0]) {
    const offsets<3, I> o(layout, element);
    out[o.at[0]] = F::apply(a[o.at[1]], b[o.at[2]], p);
  }
}

// Two results of types T and U from one operand: F(a, p, u) returns the first and sets u.
template <typename F, typename T, typename U>
kernel void unary_pair_dense(
    device T* out [[buffer(0)]],
    device U* second [[buffer(1)]],
    device const T* a [[buffer(2)]],
    constant float* p [[buffer(3)]],
    constant ulong& elements [[buffer(4)]],
    uint i [[thread_position_in_grid]],
    uint grid [[threads_per_grid]]) {
  constexpr uint W = lane_count<T>;
  const ulong first = ulong(i) * W;
  if (i + 1 < grid || first + W <= elements) {
    const auto x = lanes<T, W>::load(a + first);
    lanes<T, W> y;
    lanes<U, W> z;
    for (uint k = 0; k < W; ++k) {
      y.value[k] = F::apply(x.value[k], p, z.value[k]);
    }
    y.store(out + first);
    z.store(second + first);
    return;
  }
  for (ulong e = first; e < elements; ++e) {
    U u;
    out[e] = F::apply(a[e], p, u);
    second[e] = u;
  }
}

template <typename F, typename T, typename U, typename I>
kernel void unary_pair_strided(
    device T* out [[buffer(0)]],
    device U* second [[buffer(1)]],
    device const T* a [[buffer(2)]],
    constant float* p [[buffer(3)]],
    constant I* layout [[buffer(4)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const I element = element_of<I>(position, grid);
  if (element < layout[0]) {
    const offsets<3, I> o(layout, element);
    U u;
    out[o.at[0]] = F::apply(a[o.at[2]], p, u);
    second[o.at[1]] = u;
  }
}

// Two results from two operands: F(a, b, p, u) returns the first and sets u.
template <typename F, typename T>
kernel void binary_pair_dense(
    device T* out [[buffer(0)]],
    device T* second [[buffer(1)]],
    device const T* a [[buffer(2)]],
    device const T* b [[buffer(3)]],
    constant float* p [[buffer(4)]],
    constant ulong& elements [[buffer(5)]],
    uint i [[thread_position_in_grid]],
    uint grid [[threads_per_grid]]) {
  constexpr uint W = lane_count<T>;
  const ulong first = ulong(i) * W;
  if (i + 1 < grid || first + W <= elements) {
    const auto x = lanes<T, W>::load(a + first);
    const auto y = lanes<T, W>::load(b + first);
    lanes<T, W> z, u;
    for (uint k = 0; k < W; ++k) {
      z.value[k] = F::apply(x.value[k], y.value[k], p, u.value[k]);
    }
    z.store(out + first);
    u.store(second + first);
    return;
  }
  for (ulong e = first; e < elements; ++e) {
    T u;
    out[e] = F::apply(a[e], b[e], p, u);
    second[e] = u;
  }
}

template <typename F, typename T, typename I>
kernel void binary_pair_strided(
    device T* out [[buffer(0)]],
    device T* second [[buffer(1)]],
    device const T* a [[buffer(2)]],
    device const T* b [[buffer(3)]],
    constant float* p [[buffer(4)]],
    constant I* layout [[buffer(5)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const I element = element_of<I>(position, grid);
  if (element < layout[0]) {
    const offsets<4, I> o(layout, element);
    T u;
    out[o.at[0]] = F::apply(a[o.at[2]], b[o.at[3]], p, u);
    second[o.at[1]] = u;
  }
}

// An operator's kernels for one type: NAME_dense_T, NAME_strided_T (32-bit offsets) and NAME_strided64_T.
#define UNARY(NAME, T) \
  template [[host_name(#NAME "_dense_" #T)]] kernel void unary_dense<NAME, T>( \
      device T*, device const T*, constant float*, constant ulong&, uint, uint); \
  template [[host_name(#NAME "_strided_" #T)]] kernel void unary_strided<NAME, T, uint>( \
      device T*, device const T*, constant float*, constant uint*, uint2, uint2); \
  template [[host_name(#NAME "_strided64_" #T)]] kernel void unary_strided<NAME, T, ulong>( \
      device T*, device const T*, constant float*, constant ulong*, uint2, uint2);

#define BINARY(NAME, T) \
  template [[host_name(#NAME "_dense_" #T)]] kernel void binary_dense<NAME, T>( \
      device T*, device const T*, device const T*, constant float*, constant ulong&, uint, uint); \
  template [[host_name(#NAME "_strided_" #T)]] kernel void binary_strided<NAME, T, uint>( \
      device T*, device const T*, device const T*, constant float*, constant uint*, uint2, uint2); \
  template [[host_name(#NAME "_strided64_" #T)]] kernel void binary_strided<NAME, T, ulong>( \
      device T*, device const T*, device const T*, constant float*, constant ulong*, uint2, uint2);

#define UNARY_PAIR(NAME, T, U) \
  template [[host_name(#NAME "_dense_" #T)]] kernel void unary_pair_dense<NAME, T, U>( \
      device T*, device U*, device const T*, constant float*, constant ulong&, uint, uint); \
  template [[host_name(#NAME "_strided_" #T)]] kernel void unary_pair_strided<NAME, T, U, uint>( \
      device T*, device U*, device const T*, constant float*, constant uint*, uint2, uint2); \
  template [[host_name(#NAME "_strided64_" #T)]] kernel void unary_pair_strided<NAME, T, U, ulong>( \
      device T*, device U*, device const T*, constant float*, constant ulong*, uint2, uint2);

#define BINARY_PAIR(NAME, T) \
  template [[host_name(#NAME "_dense_" #T)]] kernel void binary_pair_dense<NAME, T>( \
      device T*, device T*, device const T*, device const T*, constant float*, constant ulong&, uint, uint); \
  template [[host_name(#NAME "_strided_" #T)]] kernel void binary_pair_strided<NAME, T, uint>( \
      device T*, device T*, device const T*, device const T*, constant float*, constant uint*, uint2, uint2); \
  template [[host_name(#NAME "_strided64_" #T)]] kernel void binary_pair_strided<NAME, T, ulong>( \
      device T*, device T*, device const T*, device const T*, constant float*, constant ulong*, uint2, uint2);

#define UNARY_FLOATING(NAME) UNARY(NAME, float) UNARY(NAME, half) UNARY(NAME, bfloat)
#define BINARY_FLOATING(NAME) BINARY(NAME, float) BINARY(NAME, half) BINARY(NAME, bfloat)
