#include "shared/lanes.metal"
#include "shared/strided.metal"

// From the bits: a GPU may take subnormals for zeros when it computes with them, and a conversion may lose them.
inline uint float_bits(float x) { return as_type<uint>(x); }
inline uint float_bits(bfloat x) { return uint(as_type<ushort>(x)) << 16; }
inline uint float_bits(half x) {
  const uint bits = as_type<ushort>(x);
  const uint magnitude = bits & 0x7fffu;
  if (magnitude > 0u && magnitude < 0x400u) {  // subnormal as half, normal as float
    const uint lead = 31u - clz(magnitude);
    return (bits & 0x8000u) << 16 | (lead + 103u) << 23 | ((magnitude << (23u - lead)) & 0x7fffffu);
  }
  return as_type<uint>(float(x));
}

template <typename T> inline T taken_apart(T x, thread int& exponent) {
  const uint bits = float_bits(x);
  const uint sign = bits & 0x80000000u;
  uint fraction = bits & 0x7fffffu;
  int power = int(bits >> 23 & 0xffu);
  exponent = 0;
  if (power == 0xff || (power == 0 && fraction == 0u)) {
    return x;
  }
  if (power == 0) {
    const uint shift = clz(fraction) - 8u;
    fraction = (fraction << shift) & 0x7fffffu;
    power = 1 - int(shift);
  }
  exponent = power - 126;
  return T(as_type<float>(sign | 126u << 23 | fraction));
}

// Four elements a thread: 16 bytes of exponents.
template <typename T>
kernel void frexp_dense(
    device int* exponent [[buffer(0)]],
    device T* mantissa [[buffer(1)]],
    device const T* x [[buffer(2)]],
    constant ulong& elements [[buffer(3)]],
    uint i [[thread_position_in_grid]]) {
  constexpr uint W = lane_count<int>;
  const ulong first = ulong(i) * W;
  if (first + W <= elements) {
    const auto value = lanes<T, W>::load(x + first);
    lanes<T, W> m;
    lanes<int, W> e;
    for (uint k = 0; k < W; ++k) {
      m.value[k] = taken_apart(value.value[k], e.value[k]);
    }
    m.store(mantissa + first);
    e.store(exponent + first);
    return;
  }
  for (ulong k = first; k < elements; ++k) {
    int power;
    mantissa[k] = taken_apart(x[k], power);
    exponent[k] = power;
  }
}

template <typename T, typename I>
kernel void frexp_strided(
    device int* exponent [[buffer(0)]],
    device T* mantissa [[buffer(1)]],
    device const T* x [[buffer(2)]],
    constant I* layout [[buffer(3)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const I element = element_of<I>(position, grid);
  if (element < layout[0]) {
    const offsets<3, I> o(layout, element);
    int power;
    mantissa[o.at[1]] = taken_apart(x[o.at[2]], power);
    exponent[o.at[0]] = power;
  }
}

#define FREXP(T) \
  template [[host_name("frexp_" #T "_dense_int")]] kernel void frexp_dense<T>( \
      device int*, device T*, device const T*, constant ulong&, uint); \
  template [[host_name("frexp_" #T "_strided_int")]] kernel void frexp_strided<T, uint>( \
      device int*, device T*, device const T*, constant uint*, uint2, uint2); \
  template [[host_name("frexp_" #T "_strided64_int")]] kernel void frexp_strided<T, ulong>( \
      device int*, device T*, device const T*, constant ulong*, uint2, uint2);
FREXP(float)
FREXP(half)
FREXP(bfloat)
