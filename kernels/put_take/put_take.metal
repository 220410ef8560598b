#include "shared/atomic.metal"
#include "shared/field.metal"
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

// In which numbers of a dtype are summed.
template <typename T> struct summed_as { typedef float type; };
template <> struct summed_as<float2> { typedef float2 type; };

// The same sum in every run: indices are sorted and count from the front, sources stand in their order. A SIMD group an
// index, of which those work that are the first of theirs.
template <typename T>
kernel void put_accumulate_sorted(
    device T* self [[buffer(0)]],
    device const T* source [[buffer(1)]],
    device const long* indices [[buffer(2)]],
    constant ulong* layout [[buffer(3)]],
    constant ulong& count [[buffer(4)]],
    REPORT_BUFFER(5) uint2 group [[threadgroup_position_in_grid]],
    uint2 in_group [[thread_position_in_threadgroup]]) {
  typedef typename summed_as<T>::type sum;
  const ulong i = group.y;
  const long index = indices[i];
  if (i > 0 && indices[i - 1] == index) {
    return;
  }
  if (index < 0 || ulong(index) >= layout[0]) {
    REPORT("put_(): index ", index, " is out of range of a tensor with ", long(layout[0]), " elements");
    return;
  }
  sum total = sum(0.0f);
  for (ulong k = i + in_group.x; k < count && indices[k] == index; k += 32) {
    total += sum(source[k]);
  }
  total = simd_total(total);
  if (in_group.x == 0) {
    const ulong place = offsets<1, ulong>(layout, ulong(index)).at[0];
    self[place] = T(sum(self[place]) + total);
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

#define ACCUMULATE_SORTED(T) \
  template [[host_name("put_accumulate_sorted_" #T)]] kernel void put_accumulate_sorted<T>( \
      device T*, device const T*, device const long*, constant ulong*, constant ulong&, REPORT_TYPE uint2, uint2);
ACCUMULATE_SORTED(float)
ACCUMULATE_SORTED(half)
ACCUMULATE_SORTED(bfloat)
ACCUMULATE_SORTED(float2)
