#include "shared/lanes.metal"
#include "shared/reduce.metal"
#include "shared/strided.metal"

// Groups of 256 threads reduce to one value each: `partial` has as many values as there are groups.
// A group runs through memory in steps of the whole grid, a thread loads 16 bytes at a time.
template <typename OP, typename T>
kernel void extremum_dense(
    device T* partial [[buffer(0)]],
    device const T* a [[buffer(1)]],
    constant ulong& elements [[buffer(2)]],
    uint i [[thread_position_in_grid]],
    uint grid [[threads_per_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]) {
  threadgroup T scratch[256];
  constexpr uint W = lane_count<T>;
  const ulong vectors = elements / W;
  T found = a[0];
  for (ulong v = i; v < vectors; v += grid) {
    const auto x = lanes<T, W>::load(a + v * W);
    for (uint k = 0; k < W; ++k) {
      found = OP::combine(found, x.value[k]);
    }
  }
  for (ulong e = vectors * W + i; e < elements; e += grid) {
    found = OP::combine(found, a[e]);
  }
  found = reduce_group<OP>(found, scratch, thread_index, 256);
  if (thread_index == 0) {
    partial[group] = found;
  }
}

template <typename OP, typename T>
kernel void extremum_strided(
    device T* partial [[buffer(0)]],
    device const T* a [[buffer(1)]],
    constant ulong* layout [[buffer(2)]],
    uint i [[thread_position_in_grid]],
    uint grid [[threads_per_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]) {
  threadgroup T scratch[256];
  T found = a[0];
  for (ulong e = i; e < layout[0]; e += grid) {
    const offsets<1, ulong> o(layout, e);
    found = OP::combine(found, a[o.at[0]]);
  }
  found = reduce_group<OP>(found, scratch, thread_index, 256);
  if (thread_index == 0) {
    partial[group] = found;
  }
}

#define EXTREMUM(NAME, OP, T) \
  template [[host_name(#NAME "_dense_" #T)]] kernel void extremum_dense<OP, T>( \
      device T*, device const T*, constant ulong&, uint, uint, uint, uint); \
  template [[host_name(#NAME "_strided_" #T)]] kernel void extremum_strided<OP, T>( \
      device T*, device const T*, constant ulong*, uint, uint, uint, uint);
#define EXTREMA(T) EXTREMUM(max, max_of, T) EXTREMUM(min, min_of, T)

EXTREMA(float)
EXTREMA(half)
EXTREMA(bfloat)
EXTREMA(long)
EXTREMA(int)
EXTREMA(short)
EXTREMA(char)
EXTREMA(uchar)
EXTREMA(bool)
