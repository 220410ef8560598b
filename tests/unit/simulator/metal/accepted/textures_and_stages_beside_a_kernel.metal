// out: 0 1 2 3
#include <metal_stdlib>
using namespace metal;
constexpr sampler linear(coord::normalized, address::clamp_to_edge, filter::linear);
struct Corner { float4 position [[position]]; float2 at; };
vertex Corner corner(uint id [[vertex_id]], constant float4* positions [[buffer(0)]]) {
  Corner c;
  c.position = positions[id];
  c.at = positions[id].xy;
  return c;
}
fragment half4 colour(Corner c [[stage_in]], texture2d<half> image [[texture(0)]]) {
  if (c.at.x < 0) discard_fragment();
  return image.sample(linear, c.at) * half(dfdx(c.at.x));
}
float luminance(texture2d<float, access::read> image, uint2 at) { return dot(image.read(at).rgb, float3(1)); }
kernel void grey(texture2d<float, access::read> image [[texture(0)]], texture2d<float, access::write> out [[texture(1)]],
                 uint2 at [[thread_position_in_grid]]) {
  if (at.x < out.get_width()) out.write(float4(luminance(image, at)), at);
}
kernel void k(device float* out, uint i [[thread_position_in_grid]]) { out[i] = i; }
