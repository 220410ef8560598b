#include "shared/lanes.metal"
#include "shared/row.metal"

// What is combined: integers with 64 bits, floating numbers as the bits of the double of the same value. They are put
// together here, for a GPU has no double, and may take a subnormal for zero.
//
// Both maps are linear over the field of two elements, but for a constant of each normal number: a sign and a mantissa
// only move; an exponent grows by 1024 - h, where h is the value of its highest bit and 1024 - h has that bit and all
// above it up to 512, so that the exponents below h get these bits, and those from h on the bit of 1024 alone.
// So threads combine the bits as they lie in memory, an instruction for four bytes, and map what comes out: an element
// takes three instructions of 32 bits and not twelve, and a large tensor waits for memory, on any GPU.

// A share: what a thread knows of the elements that it takes, and how their bits become a word of 64.
template <typename RAW, typename T> struct share_of_integers {
  using raw_type = RAW;
  RAW bits;

  void take(RAW x) { bits ^= x; }
  void take_several(thread const RAW (&x)[ROW_LOADS]) {
    for (uint k = 0; k < ROW_LOADS; ++k) {
      bits ^= x[k];
    }
  }
  static uint4 nothing() { return uint4(0); }
  static bool is_plain(uint) { return true; }
  static uint plain(uint word) { return word; }
  // More of a sign is linear, too.
  ulong value() const { return ulong(long(T(bits))); }
};

// Any byte but zero is true.
struct share_of_truth_values {
  using raw_type = uchar;
  uchar bits;

  void take(uchar x) { bits ^= uchar(x != 0); }
  void take_several(thread const uchar (&x)[ROW_LOADS]) {
    for (uint k = 0; k < ROW_LOADS; ++k) {
      take(x[k]);
    }
  }
  static uint4 nothing() { return uint4(0); }
  static bool is_plain(uint) { return true; }
  static uint plain(uint word) { return ((word & 0x7f7f7f7fu) + 0x7f7f7f7fu | word) >> 7 & 0x01010101u; }
  ulong value() const { return ulong(bits); }
};

// Numbers of a sign, an exponent and so many bits of a mantissa. Plain are the normal ones.
template <typename RAW, uint MANTISSA> struct share_of_floating {
  using raw_type = RAW;
  static constexpr constant uint BITS = 8 * sizeof(RAW);
  static constexpr constant uint SIGN = 1u << (BITS - 1);
  static constexpr constant uint SMALLEST = 1u << MANTISSA;
  static constexpr constant uint INFINITE = SIGN - SMALLEST;
  // How much larger the exponent of a double is.
  static constexpr constant uint REBIAS = 1024 - (1u << (BITS - 2 - MANTISSA));
  // The number of a word that is each of its elements.
  static constexpr constant uint EACH = sizeof(RAW) == 4 ? 1 : 0x10001;

  RAW bits;
  ulong subnormals;
  uint normals;

  void take(RAW x) {
    const uint magnitude = x & (SIGN - 1);
    if (magnitude - SMALLEST < INFINITE - SMALLEST) {
      bits ^= x;
      ++normals;
    } else if (magnitude != 0 && magnitude < SMALLEST) {
      subnormals ^= hash_of_subnormal(x, magnitude);
    } else {  // without the constant; a NaN keeps its payload and becomes quiet
      bits ^= magnitude > INFINITE ? RAW(x | SMALLEST >> 1) : x;
    }
  }
  // Several elements are nearly always all normal: a branch for each of them would take as long as to read them.
  void take_several(thread const RAW (&x)[ROW_LOADS]) {
    bool normal = true;
    for (uint k = 0; k < ROW_LOADS; ++k) {
      normal &= (x[k] & (SIGN - 1)) - SMALLEST < INFINITE - SMALLEST;
    }
    if (normal) {  // an even number of constants
      for (uint k = 0; k < ROW_LOADS; ++k) {
        bits ^= x[k];
      }
      return;
    }
#pragma unroll  // as a loop it would keep all elements in memory of the thread, whichever way is taken
    for (uint k = 0; k < ROW_LOADS; ++k) {
      take(x[k]);
    }
  }
  // Normal numbers whose exclusive or is zero.
  static uint4 nothing() { return uint4(SMALLEST * EACH); }
  // One number in two instructions; two in a word without a carry from one to the other: the addition carries into the
  // place of the sign from infinity on, the subtraction borrows from it below the smallest normal number.
  static bool is_plain(uint word) {
    constexpr uint SIGNS = SIGN * EACH, ONES = SMALLEST * EACH;
    return sizeof(RAW) == 4 ? word + word - 2 * SMALLEST < 2 * (INFINITE - SMALLEST)
                            : (((word & ~SIGNS) + ONES | ~((word | SIGNS) - ONES)) & SIGNS) == 0;
  }
  static uint plain(uint word) { return word; }
  ulong value() const {
    const ulong x = ulong(bits), sign = x >> (BITS - 1), highest = x >> (BITS - 2) & 1;
    const ulong linear = sign << 63 | (x & (SIGN / 2 - 1)) << (52 - MANTISSA);
    const uint exponent = (highest != 0 ? 1024 ^ REBIAS : 0) ^ ((normals & 1) != 0 ? REBIAS : 0);
    return linear ^ ulong(exponent) << 52 ^ subnormals;
  }

 private:
  static ulong hash_of_subnormal(RAW x, uint magnitude) {
    const uint lead = 31u - clz(magnitude);
    const ulong mantissa = ulong(magnitude) << (52u - lead) & 0xffffffffffffful;
    return ulong(x >> (BITS - 1)) << 63 | ulong(lead + REBIAS + 1 - MANTISSA) << 52 | mantissa;
  }
};

template <typename T> struct share_of {};
template <> struct share_of<float> { using type = share_of_floating<uint, 23>; };
template <> struct share_of<half> { using type = share_of_floating<ushort, 10>; };
template <> struct share_of<bfloat> { using type = share_of_floating<ushort, 7>; };
template <> struct share_of<long> { using type = share_of_integers<ulong, long>; };
template <> struct share_of<int> { using type = share_of_integers<uint, int>; };
template <> struct share_of<short> { using type = share_of_integers<ushort, short>; };
template <> struct share_of<char> { using type = share_of_integers<uchar, char>; };
template <> struct share_of<uchar> { using type = share_of_integers<uchar, uchar>; };
template <> struct share_of<bool> { using type = share_of_truth_values; };

// How many loads of 16 bytes a thread has under way at a time. More take registers from other groups: 2^26 halves took
// 45 us with two, 48 with four and 82 with eight (NVIDIA H200), floats 74, 75 and 73.
constexpr constant uint VECTOR_LOADS = 2;

// The exclusive or of the elements that lie in 16 bytes.
template <typename RAW> inline RAW folded(uint4 x) {
  ulong bits = ulong(x.x ^ x.z) | ulong(x.y ^ x.w) << 32;
  for (uint width = 32; width >= 8 * sizeof(RAW); width /= 2) {
    bits ^= bits >> width;
  }
  return RAW(bits);
}

template <typename SHARE> inline bool are_plain(thread const uint4 (&x)[VECTOR_LOADS]) {
  bool plain = true;
  for (uint k = 0; k < VECTOR_LOADS; ++k) {
    plain &= SHARE::is_plain(x[k].x) & SHARE::is_plain(x[k].y);
    plain &= SHARE::is_plain(x[k].z) & SHARE::is_plain(x[k].w);
  }
  return plain;
}

template <typename SHARE> inline uint4 combined(thread const uint4 (&x)[VECTOR_LOADS]) {
  uint4 total = uint4(0);
  for (uint k = 0; k < VECTOR_LOADS; ++k) {
    total ^= uint4(SHARE::plain(x[k].x), SHARE::plain(x[k].y), SHARE::plain(x[k].z), SHARE::plain(x[k].w));
  }
  return total;
}

// Gives `share` elements first, first + step, ... of a row without gaps, counted in 16 bytes. `front` elements stand in
// front of the first 16 bytes that are aligned; these, and those behind the last, are read one by one.
template <typename SHARE>
inline void take_dense(
    thread SHARE& share,
    device const typename SHARE::raw_type* row,
    ulong count,
    ulong front,
    ulong first,
    ulong step) {
  using raw_type = typename SHARE::raw_type;
  constexpr uint LANES = lane_count<raw_type>;
  const ulong vectors = (count - front) / LANES;
  device const raw_type* aligned = row + front;
  device const uint4* words = reinterpret_cast<device const uint4*>(aligned);
  uint4 total = uint4(0);
  for (ulong v = first; v < vectors; v += VECTOR_LOADS * step) {
    uint4 loaded[VECTOR_LOADS];
    for (uint k = 0; k < VECTOR_LOADS; ++k) {
      loaded[k] = v + k * step < vectors ? words[v + k * step] : SHARE::nothing();
    }
    if (are_plain<SHARE>(loaded)) {  // an even number of constants
      total ^= combined<SHARE>(loaded);
      continue;
    }
    for (ulong again = v; again < vectors && again < v + VECTOR_LOADS * step; again += step) {
      for (uint k = 0; k < LANES; ++k) {
        share.take(aligned[again * LANES + k]);
      }
    }
  }
  share.bits ^= folded<raw_type>(total);
  if (first < front) {
    share.take(row[first]);
  }
  const ulong behind = front + vectors * LANES + first;
  if (behind < count) {
    share.take(row[behind]);
  }
}

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
// elements of all rows; columns: that of the elements of one row; past: how many elements x starts behind an address
// that is a multiple of 16 bytes.
template <typename T>
kernel void hash_rows(
    device ulong* out [[buffer(0)]],
    device const T* x [[buffer(1)]],
    constant ulong* rows [[buffer(2)]],
    constant ulong* columns [[buffer(3)]],
    constant long& past [[buffer(4)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint2 groups [[threadgroups_per_grid]],
    uint2 in_group [[thread_position_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  using share_type = typename share_of<T>::type;
  using raw_type = typename share_type::raw_type;
  constexpr ulong LANES = lane_count<raw_type>;
  threadgroup ulong scratch[8];
  const ulong offset = offsets<1, ulong>(rows, ulong(group.y)).at[0];
  device const raw_type* row = reinterpret_cast<device const raw_type*>(x) + offset;
  share_type share = {};
  const ulong first = ulong(group.x) * group_size.x + in_group.x, step = ulong(groups.x) * group_size.x;
  if (columns[1] == 1 && columns[3] == 1) {
    const ulong front = (LANES - (ulong(past) + offset) % LANES) % LANES;
    take_dense(share, row, columns[0], min(front, columns[0]), first, step);
  } else {
    take_share(share, row, columns, first, step);
  }
  const ulong value = xor_of_group(share.value(), scratch, in_group.x, group_size.x);
  if (in_group.x == 0) {
    out[ulong(group.y) * groups.x + group.x] = value;
  }
}

#define HASH(T) \
  template [[host_name("hash_rows_" #T)]] kernel void hash_rows<T>( \
      device ulong*, device const T*, constant ulong*, constant ulong*, constant long&, uint2, uint2, uint2, uint2);
HASH(float)
HASH(half)
HASH(bfloat)
HASH(long)
HASH(int)
HASH(short)
HASH(char)
HASH(uchar)
HASH(bool)
