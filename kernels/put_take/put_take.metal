#include "shared/atomic.metal"
#include "shared/report.metal"
#include "shared/strided.metal"

// The element that an index means: negative ones count from the end. False for one out of range.
inline bool resolve(thread long& index, long elements) {
  index += index < 0 ? elements : 0;
  return index >= 0 && index < elements;
}

// T has the size of the elements. layout: the tensor's own, the innermost dimension first, behind a count of indices.
// An index out of range reads a zero.
template <typename T>
kernel void take(
    device T* out [[buffer(0)]],
    device const T* input [[buffer(1)]],
    device const long* indices [[buffer(2)]],
    constant ulong* layout [[buffer(3)]],
    constant ulong& count [[buffer(4)]],
    REPORT_BUFFER(5) uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const ulong i = element_of<ulong>(position, grid);
  if (i >= count) {
    return;
  }
  long index = indices[i];
  if (resolve(index, long(layout[0]))) {
    out[i] = input[offsets<1, ulong>(layout, ulong(index)).at[0]];
  } else {
    out[i] = T(0);
    REPORT("take(): index ", indices[i], " is out of range of a tensor with ", long(layout[0]), " elements");
  }
}

template <typename T>
kernel void put(
    device T* self [[buffer(0)]],
    device const T* source [[buffer(1)]],
    device const long* indices [[buffer(2)]],
    constant ulong* layout [[buffer(3)]],
    constant ulong& count [[buffer(4)]],
    REPORT_BUFFER(5) uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const ulong i = element_of<ulong>(position, grid);
  if (i >= count) {
    return;
  }
  long index = indices[i];
  if (resolve(index, long(layout[0]))) {
    self[offsets<1, ulong>(layout, ulong(index)).at[0]] = source[i];
  } else {
    REPORT("put_(): index ", indices[i], " is out of range of a tensor with ", long(layout[0]), " elements");
  }
}

// `base` is the start of the memory and `first` where the tensor starts in it.
template <typename T>
kernel void put_accumulate(
    device T* base [[buffer(0)]],
    device const T* source [[buffer(1)]],
    device const long* indices [[buffer(2)]],
    constant ulong* layout [[buffer(3)]],
    constant ulong& count [[buffer(4)]],
    constant ulong& first [[buffer(5)]],
    REPORT_BUFFER(6) uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const ulong i = element_of<ulong>(position, grid);
  if (i >= count) {
    return;
  }
  long index = indices[i];
  if (resolve(index, long(layout[0]))) {
    atomic_adder<T>::add(base, first + offsets<1, ulong>(layout, ulong(index)).at[0], source[i]);
  } else {
    REPORT("put_(): index ", indices[i], " is out of range of a tensor with ", long(layout[0]), " elements");
  }
}

#define MOVE(T) \
  template [[host_name("take_" #T)]] kernel void take<T>( \
      device T*, device const T*, device const long*, constant ulong*, constant ulong&, REPORT_TYPE uint2, uint2); \
  template [[host_name("put_" #T)]] kernel void put<T>( \
      device T*, device const T*, device const long*, constant ulong*, constant ulong&, REPORT_TYPE uint2, uint2);
MOVE(uchar)
MOVE(ushort)
MOVE(uint)
MOVE(ulong)

#define ACCUMULATE(T) \
  template [[host_name("put_accumulate_" #T)]] kernel void put_accumulate<T>( \
      device T*, device const T*, device const long*, constant ulong*, constant ulong&, constant ulong&, \
      REPORT_TYPE uint2, uint2);
ACCUMULATE(float)
ACCUMULATE(half)
ACCUMULATE(bfloat)
ACCUMULATE(long)
ACCUMULATE(int)
ACCUMULATE(short)
ACCUMULATE(char)
ACCUMULATE(uchar)
ACCUMULATE(bool)
ACCUMULATE(float2)
