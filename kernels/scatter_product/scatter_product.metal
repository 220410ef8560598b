#include "shared/atomic.metal"
#include "shared/report.metal"
#include "shared/strided.metal"

// Products of 64-bit integers, which no GPU multiplies atomically, by adding logarithms. Modulo 2^64 every number is
// zero, or plus or minus 5^e 2^k with e modulo 2^62 (Gauss, Disquisitiones arithmeticae, 90 f.): k, e and signs are
// added up, in any order to the same product. logs[i] is the logarithm of 1 + 2^(i + 2).

// The logarithm of a number that is 1 modulo 4: what it takes to make it 1, by factors that are shifts and additions.
inline ulong logarithm_of(ulong x, device const ulong* logs) {
  ulong e = 0;
  for (uint i = 2; i < 64; ++i) {
    if ((x >> i & 1) != 0) {
      x += x << i;
      e -= logs[i - 2];
    }
  }
  return e;
}

inline ulong power_of(ulong e, device const ulong* logs) {
  ulong x = 1;
  for (uint i = 2; i < 64; ++i) {
    if ((e >> (i - 2) & 1) != 0) {
      x += x << i;
      e -= logs[i - 2];
    }
  }
  return x;
}

constant uint NEGATIVE = 1;
constant uint ZERO = 2;
constant uint NAMED = 4;
// A factor of 2^64 is zero: so many twos are enough.
constant uint MOST_TWOS = 64;

// A thread a source. Offsets: of its index, of itself, of the result without the dimension that is scattered along.
// bounds: that dimension's stride and size.
template <typename I>
kernel void add_logarithms(
    device const long* index [[buffer(0)]],
    device const long* source [[buffer(1)]],
    device const ulong* logs [[buffer(2)]],
    device long* exponents [[buffer(3)]],
    device atomic_uint* twos [[buffer(4)]],
    device atomic_uint* signs [[buffer(5)]],
    constant long* bounds [[buffer(6)]],
    constant I* layout [[buffer(7)]],
    REPORT_BUFFER(8) uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const I element = element_of<I>(position, grid);
  if (element >= layout[0]) {
    return;
  }
  const offsets<3, I> at(layout, element);
  const long to = index[at.at[0]];
  if (to < 0 || to >= bounds[1]) {
    REPORT("scatter_reduce(): index ", to, " is out of range of a dimension with size ", bounds[1]);
    return;
  }
  const ulong place = ulong(at.at[2]) + ulong(to * bounds[0]);
  ulong x = ulong(source[at.at[1]]);
  if (x == 0) {
    atomic_fetch_or_explicit(signs + place, ZERO | NAMED, memory_order_relaxed);
    return;
  }
  const uint k = uint(ctz(x));
  x >>= k;
  if ((x & 2) != 0) {
    x = 0 - x;
    atomic_fetch_xor_explicit(signs + place, NEGATIVE, memory_order_relaxed);
  }
  atomic_fetch_or_explicit(signs + place, NAMED, memory_order_relaxed);
  if (k != 0 && atomic_load_explicit(twos + place, memory_order_relaxed) < MOST_TWOS) {
    atomic_fetch_add_explicit(twos + place, k, memory_order_relaxed);
  }
  if (x != 1) {
    atomic_adder<long>::add(exponents, place, long(logarithm_of(x, logs)));
  }
}

// A thread a result: multiplies it by its product, or makes it the product; what no index names stays.
kernel void multiply_powers(
    device long* result [[buffer(0)]],
    device const ulong* logs [[buffer(1)]],
    device const ulong* exponents [[buffer(2)]],
    device const uint* twos [[buffer(3)]],
    device const uint* signs [[buffer(4)]],
    constant long& elements [[buffer(5)]],
    constant long& includes_self [[buffer(6)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const long i = element_of<long>(position, grid);
  if (i >= elements || (signs[i] & NAMED) == 0) {
    return;
  }
  ulong product = 0;
  if ((signs[i] & ZERO) == 0 && twos[i] < MOST_TWOS) {
    product = power_of(exponents[i], logs) << twos[i];
    product = (signs[i] & NEGATIVE) != 0 ? 0 - product : product;
  }
  result[i] = long(includes_self ? ulong(result[i]) * product : product);
}

#define ADD_LOGARITHMS(NAME, I) \
  template [[host_name(NAME)]] kernel void add_logarithms<I>( \
      device const long*, device const long*, device const ulong*, device long*, device atomic_uint*, \
      device atomic_uint*, constant long*, constant I*, REPORT_TYPE uint2, uint2);
ADD_LOGARITHMS("add_logarithms_32", uint)
ADD_LOGARITHMS("add_logarithms_64", ulong)
