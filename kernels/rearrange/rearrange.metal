#include "shared/strided.metal"

// T has the size of the elements, or of several neighbours that stay together: 16 bytes a thread reach the bandwidth
// that one element reaches a third of, and there are fewer places to compute.
template <typename T, typename I>
kernel void copy(
    device T* out [[buffer(0)]],
    device const T* source [[buffer(1)]],
    constant I* layout [[buffer(2)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const I element = element_of<I>(position, grid);
  if (element < layout[0]) {
    const offsets<2, I> o(layout, element);
    out[o.at[0]] = source[o.at[1]];
  }
}

// A thread an element of one of PARTS equal parts, and the same one of the others: their places take one computation, and
// their loads do not wait for each other. layout: how far the parts lie apart in `out` and in `source`, then that of one.
constexpr constant uint PARTS = 4;
template <typename T, typename I>
kernel void copy_parts(
    device T* out [[buffer(0)]],
    device const T* source [[buffer(1)]],
    constant I* layout [[buffer(2)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const I element = element_of<I>(position, grid);
  if (element < layout[2]) {
    const offsets<2, I> o(layout + 2, element);
    const I apart = layout[0], source_apart = layout[1];  // read before a store, behind which they might be others
    T loaded[PARTS];
    for (uint k = 0; k < PARTS; ++k) {
      loaded[k] = source[o.at[1] + I(k) * source_apart];
    }
    for (uint k = 0; k < PARTS; ++k) {
      out[o.at[0] + I(k) * apart] = loaded[k];
    }
  }
}

#define COPY_PARTS(T) \
  template [[host_name("copy_parts_" #T)]] kernel void copy_parts<T, uint>( \
      device T*, device const T*, constant uint*, uint2, uint2); \
  template [[host_name("copy_parts64_" #T)]] kernel void copy_parts<T, ulong>( \
      device T*, device const T*, constant ulong*, uint2, uint2);
COPY_PARTS(uchar)
COPY_PARTS(ushort)
COPY_PARTS(uint)
COPY_PARTS(ulong)

#define COPY(T) \
  template [[host_name("copy_" #T)]] kernel void copy<T, uint>( \
      device T*, device const T*, constant uint*, uint2, uint2); \
  template [[host_name("copy64_" #T)]] kernel void copy<T, ulong>( \
      device T*, device const T*, constant ulong*, uint2, uint2);
COPY(uchar)
COPY(ushort)
COPY(uint)
COPY(ulong)
COPY(uint4)
