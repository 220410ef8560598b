// metal_texture and metal_graphics, for the types only: a program with textures compiles, and its other kernels run.
// The host has no textures, so these functions stop a kernel that gets to them. Arguments behind the coordinates, such
// as `level(2)` or an offset, are not checked.
#pragma once
#include "vector.h"

#define MSL_NO_TEXTURE const { __builtin_trap(); }

namespace metal {
enum class access { sample, read, write, MSL_NAME(read_write) };
enum class coord { normalized, pixel };
enum class filter { nearest, linear, bicubic };
enum class min_filter { nearest, linear, bicubic };
enum class mag_filter { nearest, linear, bicubic };
enum class mip_filter { none, nearest, linear };
enum class address { clamp_to_zero, clamp_to_edge, repeat, mirrored_repeat, clamp_to_border };
enum class s_address { clamp_to_zero, clamp_to_edge, repeat, mirrored_repeat, clamp_to_border };
enum class t_address { clamp_to_zero, clamp_to_edge, repeat, mirrored_repeat, clamp_to_border };
enum class r_address { clamp_to_zero, clamp_to_edge, repeat, mirrored_repeat, clamp_to_border };
enum class border_color { transparent_black, opaque_black, opaque_white };
enum class compare_func { none, never, less, less_equal, greater, greater_equal, equal, not_equal, always };
enum class reduction { weighted_average, minimum, maximum };
enum class component { x, y, z, w };
struct max_anisotropy {
  constexpr max_anisotropy(int) {}
};
struct lod_clamp {
  constexpr lod_clamp(float, float) {}
};

struct sampler {
  sampler() = default;
  template <class A, class... B, enable_if_t<!is_same<decay_t<A>, sampler>::value, int> = 0>
  constexpr sampler(A, B...) {}

private:
  ulong handle = 0;
};
#define MSL_SAMPLE_OPTION(name, ...) \
  struct name { \
    template <class... A> constexpr explicit name(A...) {} \
  };
MSL_SAMPLE_OPTION(bias) MSL_SAMPLE_OPTION(level) MSL_SAMPLE_OPTION(min_lod_clamp)
MSL_SAMPLE_OPTION(gradient2d) MSL_SAMPLE_OPTION(gradient3d) MSL_SAMPLE_OPTION(gradientcube)
#undef MSL_SAMPLE_OPTION

// Of elements V: `Real` and `Whole` are coordinates, `Index` is the index in an array.
template <class V, class Real, class Whole, class Short, class... Index> struct msl_texture {
  template <class... A> V sample(sampler, Real, Index..., A...) MSL_NO_TEXTURE
  template <class... A> V read(Whole, Index..., A...) MSL_NO_TEXTURE
  template <class... A> V read(Short, Index..., A...) MSL_NO_TEXTURE
  template <class... A> void write(V, Whole, Index..., A...) MSL_NO_TEXTURE
  template <class... A> void write(V, Short, Index..., A...) MSL_NO_TEXTURE
  template <class... A> auto gather(sampler, Real, Index..., A...) const {
    __builtin_trap();
    return vec<typename msl_parts<V>::scalar, 4>();
  }
  template <class... A> auto gather_compare(sampler, Real, Index..., A...) const {
    __builtin_trap();
    return vec<typename msl_parts<V>::scalar, 4>();
  }
  template <class... A> V sample_compare(sampler, Real, Index..., A...) MSL_NO_TEXTURE
  uint get_width(uint = 0) MSL_NO_TEXTURE
  uint get_height(uint = 0) MSL_NO_TEXTURE
  uint get_depth(uint = 0) MSL_NO_TEXTURE
  uint get_array_size() MSL_NO_TEXTURE
  uint get_num_mip_levels() MSL_NO_TEXTURE
  uint get_num_samples() MSL_NO_TEXTURE
  void fence() MSL_NO_TEXTURE

private:
  ulong handle;
};
#define MSL_TEXTURE(name, V, Real, Whole, Short, ...) \
  template <class T, access a = access::sample> \
  struct name : msl_texture<V, Real, Whole, Short __VA_OPT__(, ) __VA_ARGS__> {};
#define MSL_COLOUR vec<T, 4>
MSL_TEXTURE(texture1d, MSL_COLOUR, float, uint, ushort)
MSL_TEXTURE(texture1d_array, MSL_COLOUR, float, uint, ushort, uint)
MSL_TEXTURE(texture2d, MSL_COLOUR, float2, uint2, ushort2)
MSL_TEXTURE(texture2d_array, MSL_COLOUR, float2, uint2, ushort2, uint)
MSL_TEXTURE(texture2d_ms, MSL_COLOUR, float2, uint2, ushort2, uint)
MSL_TEXTURE(texture2d_ms_array, MSL_COLOUR, float2, uint2, ushort2, uint, uint)
MSL_TEXTURE(texture3d, MSL_COLOUR, float3, uint3, ushort3)
MSL_TEXTURE(texturecube, MSL_COLOUR, float3, uint2, ushort2)
MSL_TEXTURE(texturecube_array, MSL_COLOUR, float3, uint2, ushort2)
MSL_TEXTURE(texture_buffer, MSL_COLOUR, float, uint, ushort)
MSL_TEXTURE(depth2d, T, float2, uint2, ushort2)
MSL_TEXTURE(depth2d_array, T, float2, uint2, ushort2, uint)
MSL_TEXTURE(depth2d_ms, T, float2, uint2, ushort2, uint)
MSL_TEXTURE(depth2d_ms_array, T, float2, uint2, ushort2, uint, uint)
MSL_TEXTURE(depthcube, T, float3, uint2, ushort2)
MSL_TEXTURE(depthcube_array, T, float3, uint2, ushort2)
#undef MSL_TEXTURE
#undef MSL_COLOUR

// metal_graphics
inline void discard_fragment() { __builtin_trap(); }
template <class T> inline bool is_null_texture(T) { __builtin_trap(); }
template <class T> inline T dfdx(T) { __builtin_trap(); }
template <class T> inline T dfdy(T) { __builtin_trap(); }
template <class T> inline T fwidth(T) { __builtin_trap(); }
inline uint get_num_samples() { __builtin_trap(); }
inline float2 get_sample_position(uint) { __builtin_trap(); }
} // namespace metal
#undef MSL_NO_TEXTURE
