// A header of host and device: simd's names, enumerators as indices, TargetConditionals.h. out: 12 14 16 18
#include <metal_stdlib>
using namespace metal;
using namespace simd;
#include <simd/simd.h>
#include <TargetConditionals.h>

typedef enum Buffers { BufferOut, BufferUnused = 1 << 2, BufferLast } Buffers;
enum class Shared : uint { first = Buffers::BufferLast - 5 };
constant constexpr int threads = BufferUnused * 64u;
typedef struct {
  vector_float2 position;
  matrix_float2x2 turn;
  simd::float4 colour;
  simd_uint3 size;
} Frame;

[[max_total_threads_per_threadgroup(threads)]] kernel void k(
    device float* out [[buffer(Shared::first)]], uint i [[thread_position_in_grid]]) {
  constexpr sampler smooth(filter::linear, max_anisotropy(4));
  Frame frame = {{float(i), 1}, simd_float2x2(2.0), simd::max(simd::float4(3), 4), {TARGET_OS_OSX, 0, 0}};
  out[i] = (frame.turn * frame.position).x + frame.colour.y + frame.size.x + simd::dot(frame.position, {0, 7});
}
