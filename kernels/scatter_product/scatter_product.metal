#include "shared/atomic.metal"
#include "shared/report.metal"
#include "shared/strided.metal"

// Products of 64-bit integers, which no GPU multiplies atomically, by adding logarithms. Modulo 2^64 every number is
// plus or minus 5^e 2^k with e modulo 2^62 (Gauss, Disquisitiones arithmeticae, 90 f.), zero with k = 64: e, k and signs
// are added up, in any order to the same product.

// A number that is 1 modulo 4 becomes 1 modulo 2^14 by factors that are shifts and additions, and of what is left few
// terms of the series of the logarithm and the exponential function are not zero modulo 2^64 (Koblitz, p-adic Numbers,
// p-adic Analysis, and Zeta-Functions, IV.1). 64-bit arithmetic is several instructions on a GPU: twelve rounds of it are
// less than the 62 that it takes without the series.
constant uint FIRST_OF_SERIES = 14;
constant ulong THIRD = 0xaaaaaaaaaaaaaaabul;

// The logarithms to the base 5 of 1 + 2^2, 1 + 2^3 and so on up to 1 + 2^13, modulo 2^62; a quarter of the natural
// logarithm of 5, and its inverse. Computed in whole numbers; a test does it again.
constant ulong LOGARITHMS[FIRST_OF_SERIES - 2] = {
    0x1ul,
    0x3ed74d0cb2894d46ul,
    0x0ea862e9c41ae19cul,
    0x24f7b6742dc90378ul,
    0x32c3a3a12fa567f0ul,
    0x0d566f31df9f53e0ul,
    0x28844eb8ee08b7c0ul,
    0x18c8dc7cd6f9af80ul,
    0x16ac42e4d7945f00ul,
    0x3b42244445acbe00ul,
    0x1638062265697c00ul,
    0x38e1f4283312f800ul};
constant ulong QUARTER_OF_LOG_5 = 0x174a71d9201c899ful;
constant ulong ITS_INVERSE = 0x11850f13762c525ful;

// All bits of a number, or none.
inline ulong all_of(ulong bit) { return 0 - (bit & 1); }

// The logarithm of a number that is 1 modulo 4: what it takes to make it 1.
inline ulong logarithm_of(ulong x) {
  ulong e = 0;
#pragma unroll
  for (uint i = 2; i < FIRST_OF_SERIES; ++i) {
    const ulong is_set = all_of(x >> i);
    x += x << i & is_set;
    e -= LOGARITHMS[i - 2] & is_set;
  }
  // log(1 + y) = y - y^2 / 2 + y^3 / 3 - y^4 / 4; the next term is a multiple of 2^70.
  const ulong y = x - 1, half_square = y * (y >> 1);
  const ulong log = y - half_square * (1 + half_square - 2 * THIRD * y);
  return e + (log >> 2) * ITS_INVERSE;
}

inline ulong power_of(ulong e) {
  ulong x = 1;
#pragma unroll
  for (uint i = 2; i < FIRST_OF_SERIES; ++i) {
    const ulong is_set = all_of(e >> (i - 2));
    x += x << i & is_set;
    e -= LOGARITHMS[i - 2] & is_set;
  }
  // exp(y) = 1 + y + y^2 / 2 + y^3 / 6 + y^4 / 24; the next term is a multiple of 2^67.
  const ulong y = e * QUARTER_OF_LOG_5 << 2, half_square = y * (y >> 1);
  return x * (1 + y + half_square + THIRD * half_square * (y + (half_square >> 1)));
}

// What is known of a result lies in four words, so that all of its additions go to one place of 16 bytes: two words of
// the exponent, one of the number of twos with two flags above it, and one that is not used.
constant uint WORDS = 4;
constant uint TWOS_WORD = 2;
// The highest bit, so that one addition changes the sign and the number of twos.
constant uint NEGATIVE = 1u << 31;
constant uint NAMED = 1u << 30;
// A factor of 2^64 is zero, and with it nothing else matters any more: who reads so many twos adds nothing. Those that
// read the word before are fewer than 2^24 threads, the most that could add 63 each without reaching the flags.
constant uint MOST_TWOS = 64;

inline uint twos_of(uint word) { return word & (NAMED - 1); }

// A thread a source. Offsets: of its index, of itself, of the result without the dimension that is scattered along.
// bounds: that dimension's stride and size, and which sources this launch has.
template <typename I>
kernel void add_logarithms(
    device const long* index [[buffer(0)]],
    device const long* source [[buffer(1)]],
    device long* known [[buffer(2)]],
    constant long* bounds [[buffer(3)]],
    constant I* layout [[buffer(4)]],
    REPORT_BUFFER(5) uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const I element = element_of<I>(position, grid) + I(bounds[2]);
  if (element >= I(bounds[3])) {
    return;
  }
  const offsets<3, I> at(layout, element);
  const long to = index[at.at[0]];
  ulong x = ulong(source[at.at[1]]);
  if (to < 0 || to >= bounds[1]) {
    REPORT("scatter_reduce(): index ", to, " is out of range of a dimension with size ", bounds[1]);
    return;
  }
  const ulong place = ulong(at.at[2]) + ulong(to * bounds[0]);
  device atomic_uint* word = reinterpret_cast<device atomic_uint*>(known) + place * WORDS + TWOS_WORD;
  const uint before = atomic_load_explicit(word, memory_order_relaxed);
  if (twos_of(before) >= MOST_TWOS) {
    return;
  }
  if (x == 0) {
    atomic_fetch_or_explicit(word, NAMED | MOST_TWOS, memory_order_relaxed);
    return;
  }
  if ((before & NAMED) == 0) {
    atomic_fetch_or_explicit(word, NAMED, memory_order_relaxed);
  }
  uint change = uint(ctz(x));
  x >>= change;
  if ((x & 2) != 0) {
    x = 0 - x;
    change |= NEGATIVE;
  }
  if (change != 0) {
    atomic_fetch_add_explicit(word, change, memory_order_relaxed);
  }
  if (x != 1) {
    atomic_adder<long>::add(known, place * (WORDS / 2), long(logarithm_of(x)));
  }
}

// A thread a result: multiplies it by its product, or makes it the product; what no index names stays.
kernel void multiply_powers(
    device long* result [[buffer(0)]],
    device const uint4* known [[buffer(1)]],
    constant long& elements [[buffer(2)]],
    constant long& includes_self [[buffer(3)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const long i = element_of<long>(position, grid);
  if (i >= elements) {
    return;
  }
  const uint4 words = known[i];
  if ((words.z & NAMED) == 0) {
    return;
  }
  ulong product = 0;
  if (twos_of(words.z) < MOST_TWOS) {
    product = power_of(ulong(words.y) << 32 | ulong(words.x)) << twos_of(words.z);
    product = (words.z & NEGATIVE) != 0 ? 0 - product : product;
  }
  result[i] = long(includes_self ? ulong(result[i]) * product : product);
}

#define ADD_LOGARITHMS(NAME, I) \
  template [[host_name(NAME)]] kernel void add_logarithms<I>( \
      device const long*, device const long*, device long*, constant long*, constant I*, REPORT_TYPE uint2, uint2);
ADD_LOGARITHMS("add_logarithms_32", uint)
ADD_LOGARITHMS("add_logarithms_64", ulong)
