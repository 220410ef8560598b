#include "shared/reduce.metal"
#include "shared/strided.metal"

// What is combined: integers with 64 bits, floating numbers as the bits of the double of the same value. They are put
// together here, for a GPU has no double, and may take a subnormal for zero.
// A normal number takes ten operations of 32 bits: with more of them the hash of a large tensor waits for them and not
// for memory.
inline ulong double_bits(uint bits) {
  const uint magnitude = bits & 0x7fffffffu;
  if (magnitude - 0x800000u < 0x7f000000u) {
    return ulong((bits & 0x80000000u) | (magnitude >> 3) + 0x38000000u) << 32 | ulong(magnitude << 29);
  }
  const ulong sign = ulong(bits >> 31) << 63;
  if (magnitude > 0x7f800000u) {  // a NaN keeps its payload and becomes quiet
    return sign | 0x7ff8000000000000ul | ulong(magnitude & 0x7fffffu) << 29;
  }
  if (magnitude == 0x7f800000u) {
    return sign | 0x7ff0000000000000ul;
  }
  if (magnitude == 0u) {
    return sign;
  }
  const uint lead = 31u - clz(magnitude);
  return sign | ulong(lead + 874u) << 52 | (ulong(magnitude) << (52u - lead) & 0xffffffffffffful);
}

inline ulong hashed(float x) { return double_bits(as_type<uint>(x)); }
inline ulong hashed(bfloat x) { return double_bits(uint(as_type<ushort>(x)) << 16); }
inline ulong hashed(half x) {
  const uint bits = as_type<ushort>(x), magnitude = bits & 0x7fffu;
  const uint sign = (bits & 0x8000u) << 16;
  if (magnitude == 0u) {
    return double_bits(sign);
  }
  if (magnitude >= 0x7c00u) {
    return double_bits(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  }
  if (magnitude >= 0x400u) {
    return double_bits(sign | (magnitude << 13) + (112u << 23));
  }
  const uint lead = 31u - clz(magnitude);
  return double_bits(sign | (lead + 103u) << 23 | (magnitude << (23u - lead) & 0x7fffffu));
}
inline ulong hashed(long x) { return ulong(x); }
inline ulong hashed(int x) { return ulong(long(x)); }
inline ulong hashed(short x) { return ulong(long(x)); }
inline ulong hashed(char x) { return ulong(long(x)); }
inline ulong hashed(uchar x) { return ulong(x); }
inline ulong hashed(bool x) { return x ? 1ul : 0ul; }

struct exclusive_or {
  static ulong combine(ulong a, ulong b) { return a ^ b; }
};

// A row of groups a result; each of them writes what the elements of its share make. rows: the layout of the first
// elements of all rows; columns: that of the elements of one row. A thread has four loads under way at a time: with one
// it waits for each.
template <typename T>
kernel void hash_rows(
    device ulong* out [[buffer(0)]],
    device const T* x [[buffer(1)]],
    constant ulong* rows [[buffer(2)]],
    constant ulong* columns [[buffer(3)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint2 groups [[threadgroups_per_grid]],
    uint2 in_group [[thread_position_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  threadgroup ulong scratch[256];
  const ulong first = offsets<1, ulong>(rows, ulong(group.y)).at[0];
  const ulong count = columns[0], step = ulong(groups.x) * group_size.x;
  ulong value = 0;
  ulong e = ulong(group.x) * group_size.x + in_group.x;
  for (; e + 3 * step < count; e += 4 * step) {
    T four[4];
    for (uint k = 0; k < 4; ++k) {
      four[k] = x[first + offsets<1, ulong>(columns, e + k * step).at[0]];
    }
    value ^= hashed(four[0]) ^ hashed(four[1]) ^ hashed(four[2]) ^ hashed(four[3]);
  }
  for (; e < count; e += step) {
    value ^= hashed(x[first + offsets<1, ulong>(columns, e).at[0]]);
  }
  value = reduce_group<exclusive_or>(value, scratch, in_group.x, group_size.x);
  if (in_group.x == 0) {
    out[ulong(group.y) * groups.x + group.x] = value;
  }
}

#define HASH(T) \
  template [[host_name("hash_rows_" #T)]] kernel void hash_rows<T>( \
      device ulong*, device const T*, constant ulong*, constant ulong*, uint2, uint2, uint2, uint2);
HASH(float)
HASH(half)
HASH(bfloat)
HASH(long)
HASH(int)
HASH(short)
HASH(char)
HASH(uchar)
HASH(bool)
