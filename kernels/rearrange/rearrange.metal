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
