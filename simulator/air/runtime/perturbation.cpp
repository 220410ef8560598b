// Moves results of mathematical functions within the bounds of intrinsics/accuracy.py.
//
// A moved result keeps its sign, stays finite, and does not cross 1: so a sine stays in its range, and exp(0), log(1) and
// overflowing results do not change.
#include "runtime.h"

extern "C" f32 expf(f32);

AIR_LOCAL u32 bits_of(f32 x) { return __builtin_bit_cast(u32, x); }

// A pseudo-random number, reproducible for a call.
AIR_LOCAL u32 hash(u32 a, u32 b, u32 c) {
  u64 h = (a ^ 0x9E3779B9ull) * 0xD6E8FEB86659FD93ull + b;
  h = (h ^ h >> 32) * 0xD6E8FEB86659FD93ull + c;
  h = (h ^ h >> 29) * 0x94D049BB133111EBull;
  return (u32)(h >> 32);
}

AIR u32 airrt_fast_exp_ulps(f32 x) {
  f32 more = __builtin_floorf(2 * __builtin_fabsf(x));
  return 3 + (more < 1024 ? (u32)more : 1024);
}

// The host's error is less than one ULP, so the result is moved by one ULP less.
AIR f32 airrt_perturbed_f32(f32 value, f32 argument, u32 salt, u32 ulps) {
  const s64 one = 0x3F800000, infinity = 0x7F800000, least = 0x00800000;
  u32 bits = bits_of(value), sign = bits & 0x80000000u;
  s64 size = bits & 0x7FFFFFFFu;
  if (size < least || size >= infinity || size == one) return value;
  s64 moved = size + (s64)(hash(bits, bits_of(argument), salt) % (2 * ulps - 1)) - (s64)(ulps - 1);
  s64 low = size > one ? one : least, high = size < one ? one : infinity - 1;
  moved = moved < low ? low : moved > high ? high : moved;
  return __builtin_bit_cast(f32, (u32)moved | sign);
}

AIR f32 airrt_perturbed_fast_tanh(f32 x, u32 salt) {
  f32 t = airrt_perturbed_f32(expf(2 * x), 2 * x, salt, airrt_fast_exp_ulps(2 * x));
  return (t - 1) / (t + 1);
}

// One of the two halves next to a float.
AIR f16 airrt_perturbed_f16(f32 value, f32 argument, u32 salt) {
  f16 nearest = (f16)value;
  f32 back = (f32)nearest;
  u16 bits = __builtin_bit_cast(u16, nearest);
  u32 size = bits & 0x7FFF;
  if (value != value || back == value || size == 0 || size >= 0x7BFF) return nearest;
  bool away = __builtin_fabsf(back) < __builtin_fabsf(value);
  u16 other = (u16)(away ? bits + 1 : bits - 1);
  return hash(bits_of(value), bits_of(argument), salt) & 1 ? nearest : __builtin_bit_cast(f16, other);
}
