// metal_pack: vectors of normalized numbers in an integer.
#pragma once
#include "math.h"

namespace metal {
MSL_INLINE uint msl_quantize(float x, float lo, float scale) {
  float c = x != x ? 0.0f : __builtin_fminf(__builtin_fmaxf(x, lo), 1.0f);
  return (uint)(int)__builtin_rintf(c * scale);
}
MSL_INLINE uint pack_float_to_unorm4x8(float4 v) {
  uint r = 0;
  for (int i = 0; i < 4; i++) r |= msl_quantize(v[i], 0.0f, 255.0f) << (8 * i);
  return r;
}
MSL_INLINE uint pack_float_to_snorm4x8(float4 v) {
  uint r = 0;
  for (int i = 0; i < 4; i++) r |= (msl_quantize(v[i], -1.0f, 127.0f) & 0xff) << (8 * i);
  return r;
}
MSL_INLINE uint pack_float_to_unorm2x16(float2 v) {
  return msl_quantize(v.x, 0.0f, 65535.0f) | msl_quantize(v.y, 0.0f, 65535.0f) << 16;
}
MSL_INLINE uint pack_float_to_snorm2x16(float2 v) {
  return (msl_quantize(v.x, -1.0f, 32767.0f) & 0xffff) | msl_quantize(v.y, -1.0f, 32767.0f) << 16;
}
MSL_INLINE float4 unpack_unorm4x8_to_float(uint x) {
  float4 r;
  for (int i = 0; i < 4; i++) r[i] = (float)((x >> (8 * i)) & 0xff) / 255.0f;
  return r;
}
MSL_INLINE float4 unpack_snorm4x8_to_float(uint x) {
  float4 r;
  for (int i = 0; i < 4; i++) r[i] = __builtin_fmaxf((float)(int8_t)(x >> (8 * i)) / 127.0f, -1.0f);
  return r;
}
MSL_INLINE float2 unpack_unorm2x16_to_float(uint x) { return float2((x & 0xffff) / 65535.0f, (x >> 16) / 65535.0f); }
MSL_INLINE float2 unpack_snorm2x16_to_float(uint x) {
  return float2(__builtin_fmaxf((short)(x & 0xffff) / 32767.0f, -1.0f), __builtin_fmaxf((short)(x >> 16) / 32767.0f, -1.0f));
}
// The sRGB transfer function of red, green and blue; alpha is linear.
MSL_INLINE float msl_from_srgb(float x) {
  return x <= 0.04045f ? x / 12.92f : __builtin_powf((x + 0.055f) / 1.055f, 2.4f);
}
MSL_INLINE float msl_to_srgb(float x) {
  if (!(x > 0.0f)) return 0.0f;
  return x < 0.0031308f ? x * 12.92f : 1.055f * __builtin_powf(__builtin_fminf(x, 1.0f), 1.0f / 2.4f) - 0.055f;
}
MSL_INLINE float4 unpack_unorm4x8_srgb_to_float(uint x) {
  float4 v = unpack_unorm4x8_to_float(x);
  return float4(msl_from_srgb(v.x), msl_from_srgb(v.y), msl_from_srgb(v.z), v.w);
}
MSL_INLINE uint pack_float_to_srgb_unorm4x8(float4 v) {
  return pack_float_to_unorm4x8(float4(msl_to_srgb(v.x), msl_to_srgb(v.y), msl_to_srgb(v.z), v.w));
}
MSL_INLINE float4 unpack_unorm10a2_to_float(uint x) {
  return float4((x & 1023) / 1023.0f, (x >> 10 & 1023) / 1023.0f, (x >> 20 & 1023) / 1023.0f, (x >> 30) / 3.0f);
}
MSL_INLINE uint pack_float_to_unorm10a2(float4 v) {
  return msl_quantize(v.x, 0.0f, 1023.0f) | msl_quantize(v.y, 0.0f, 1023.0f) << 10 |
      msl_quantize(v.z, 0.0f, 1023.0f) << 20 | msl_quantize(v.w, 0.0f, 3.0f) << 30;
}
MSL_INLINE float3 unpack_unorm565_to_float(ushort x) {
  return float3((x & 31) / 31.0f, (x >> 5 & 63) / 63.0f, (x >> 11) / 31.0f);
}
MSL_INLINE ushort pack_float_to_unorm565(float3 v) {
  return (ushort)(msl_quantize(v.x, 0.0f, 31.0f) | msl_quantize(v.y, 0.0f, 63.0f) << 5 |
                  msl_quantize(v.z, 0.0f, 31.0f) << 11);
}
#define MSL_HALF_FORMS(format, P, n) \
  MSL_INLINE half##n unpack_##format##_to_half(P x) { return half##n(unpack_##format##_to_float(x)); } \
  MSL_INLINE P pack_half_to_##format(half##n v) { return pack_float_to_##format(float##n(v)); }
MSL_HALF_FORMS(unorm4x8, uint, 4) MSL_HALF_FORMS(snorm4x8, uint, 4) MSL_HALF_FORMS(unorm2x16, uint, 2)
MSL_HALF_FORMS(snorm2x16, uint, 2) MSL_HALF_FORMS(unorm10a2, uint, 4) MSL_HALF_FORMS(unorm565, ushort, 3)
#undef MSL_HALF_FORMS
MSL_INLINE half4 unpack_unorm4x8_srgb_to_half(uint x) { return half4(unpack_unorm4x8_srgb_to_float(x)); }
MSL_INLINE uint pack_half_to_srgb_unorm4x8(half4 v) { return pack_float_to_srgb_unorm4x8(float4(v)); }
} // namespace metal
