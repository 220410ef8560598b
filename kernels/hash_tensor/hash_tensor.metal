#include "shared/row.metal"

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

// Whether x takes no branch, as integers and normal numbers take none, and what it is hashed to then.
template <typename T> inline bool is_plain(T) { return true; }
template <typename T> inline ulong plain_hash(T x) { return hashed(x); }
inline ulong double_bits_of_normal(uint bits) {
  return ulong((bits & 0x80000000u) | ((bits & 0x7fffffffu) >> 3) + 0x38000000u) << 32 | ulong(bits << 29);
}
inline bool is_normal(uint bits) { return (bits & 0x7fffffffu) - 0x800000u < 0x7f000000u; }
inline bool is_plain(float x) { return is_normal(as_type<uint>(x)); }
inline ulong plain_hash(float x) { return double_bits_of_normal(as_type<uint>(x)); }
inline bool is_plain(bfloat x) { return is_normal(uint(as_type<ushort>(x)) << 16); }
inline ulong plain_hash(bfloat x) { return double_bits_of_normal(uint(as_type<ushort>(x)) << 16); }
inline bool is_plain(half x) { return (uint(as_type<ushort>(x)) & 0x7fffu) - 0x400u < 0x7800u; }
inline ulong plain_hash(half x) {
  const uint bits = as_type<ushort>(x);
  return double_bits_of_normal((bits & 0x8000u) << 16 | ((bits & 0x7fffu) << 13) + (112u << 23));
}

// Several elements that are all plain, as nearly always, take one branch: one for each of them would take as long as to
// read them.
struct hash_of_share {
  ulong value;

  template <typename T> void take(T x) { value ^= hashed(x); }
  template <typename T> void take_several(thread const T (&x)[ROW_LOADS]) {
    bool plain = true;
    for (uint k = 0; k < ROW_LOADS; ++k) {
      plain &= is_plain(x[k]);
    }
    if (plain) {
      for (uint k = 0; k < ROW_LOADS; ++k) {
        value ^= plain_hash(x[k]);
      }
      return;
    }
    for (uint k = 0; k < ROW_LOADS; ++k) {
      value ^= hashed(x[k]);
    }
  }
};

// The exclusive or of the values of all threads of a group, in its first thread. SIMD groups take 32 bits at a time; their
// results are few, so that the group waits once and not for each level of a tree.
inline ulong xor_of_group(ulong value, threadgroup ulong* scratch, uint thread_index, uint threads) {
  constexpr uint SIMD_WIDTH = 32;
  const uint high = simd_xor(uint(value >> 32)), low = simd_xor(uint(value));
  if (thread_index % SIMD_WIDTH == 0) {
    scratch[thread_index / SIMD_WIDTH] = ulong(high) << 32 | ulong(low);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  ulong total = 0;
  for (uint s = 0; thread_index == 0 && s < threads / SIMD_WIDTH; ++s) {
    total ^= scratch[s];
  }
  return total;
}

// A row of groups a result; each of them writes what the elements of its share make. rows: the layout of the first
// elements of all rows; columns: that of the elements of one row.
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
  threadgroup ulong scratch[8];
  device const T* row = x + offsets<1, ulong>(rows, ulong(group.y)).at[0];
  hash_of_share share = {0};
  const ulong first = ulong(group.x) * group_size.x + in_group.x;
  take_share(share, row, columns, first, ulong(groups.x) * group_size.x);
  const ulong value = xor_of_group(share.value, scratch, in_group.x, group_size.x);
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
