// Functions that the C library lacks, or that depend on the spacing of a type.
#include "runtime.h"

extern "C" {
double sin(double);
double tan(double);
double sqrt(double);
}
static constexpr double kPi = 3.14159265358979323846;

AIR_LOCAL double within_period(f32 x, double period) { return x - period * __builtin_rint(x / period); }
// Zeros and poles are exact, which multiples of a rounded pi would not give.
AIR f32 airrt_sinpi(f32 x) {
  double part = within_period(x, 2);
  if (part > 0.5 || part < -0.5) part = __builtin_copysign(1.0, part) - part;
  return part == 0 ? __builtin_copysignf(0, x) : (f32)sin(kPi * part);
}
AIR f32 airrt_cospi(f32 x) { return (f32)sin(kPi * (0.5 - __builtin_fabs(within_period(x, 2)))); }
AIR f32 airrt_tanpi(f32 x) {
  double part = within_period(x, 1);
  if (part == 0.5 || part == -0.5) return __builtin_copysignf(__builtin_inff(), (f32)part);
  return (f32)tan(kPi * part);
}
AIR f32 airrt_rsqrt(f32 x) { return (f32)(1.0 / sqrt((double)x)); }
AIR f32 airrt_divide(f32 x, f32 y) { return x / y; }
AIR f32 airrt_recip(f32 x) { return 1 / x; }
AIR f32 airrt_sign(f32 x) { return x > 0 ? 1.f : x < 0 ? -1.f : x == 0 ? x : 0.f; }

// The fractional part, less than 1 in the rounding of the type.
template <class T> AIR_LOCAL T fract(T value, T below_one) {
  f32 x = (f32)value;
  if (__builtin_isinf(x)) return (T)0;
  T part = (T)(x - __builtin_floorf(x));
  return part < below_one ? part : x != x ? value : below_one;
}
AIR f32 airrt_fract_f32(f32 x) { return fract(x, 0x1.fffffep-1f); }
AIR f16 airrt_fract_f16(f16 x) { return fract(x, (f16)0x1.ffcp-1f); }
AIR bf16 airrt_fract_bf16(bf16 x) { return fract(x, (bf16)0x1.fep-1f); }

// The next number from x towards y, by the bits.
template <class T, class Bits> AIR_LOCAL T next(T x, T y) {
  if (x != x) return x;
  if (y != y) return y;
  if (x == y) return y;
  constexpr Bits kSign = (Bits)1 << (sizeof(Bits) * 8 - 1);
  Bits bits = __builtin_bit_cast(Bits, x);
  if (!(Bits)(bits << 1)) return __builtin_bit_cast(T, (Bits)(y > x ? 1 : kSign | 1));
  bool away = (y > x) == !(bits & kSign);
  return __builtin_bit_cast(T, (Bits)(away ? bits + 1 : bits - 1));
}
AIR f32 airrt_nextafter_f32(f32 x, f32 y) { return next<f32, u32>(x, y); }
AIR f16 airrt_nextafter_f16(f16 x, f16 y) { return next<f16, u16>(x, y); }
AIR bf16 airrt_nextafter_bf16(bf16 x, bf16 y) { return next<bf16, u16>(x, y); }
