#include <metal_stdlib>
using namespace metal;

// a * b + c for numbers that are sums of two floats, high part first.
inline float2 multiply_add(float2 a, float b, float2 c) {
  const float product = a.x * b;
  const float product_rest = fma(a.x, b, -product) + a.y * b;
  const float sum = product + c.x;
  const float from = sum - product;
  const float sum_rest = (product - (sum - from)) + (c.x - from) + product_rest + c.y;
  const float high = sum + sum_rest;
  return float2(high, sum_rest - (high - sum));
}

// 2^x: the Taylor series of the fraction around zero, to 9 terms, times the power of two.
inline float two_to(float2 x) {
  constexpr float LIMIT = 200.0f;  // beyond all exponents of a float
  const float high = clamp(x.x, -LIMIT, LIMIT), low = high == x.x ? x.y : 0.0f;
  const float whole = rint(high);
  const float y = ((high - whole) + low) * M_LN2_F;
  float sum = 1.0f / 40320;
  sum = fma(sum, y, 1.0f / 5040);
  sum = fma(sum, y, 1.0f / 720);
  sum = fma(sum, y, 1.0f / 120);
  sum = fma(sum, y, 1.0f / 24);
  sum = fma(sum, y, 1.0f / 6);
  sum = fma(sum, y, 0.5f);
  sum = fma(sum, y, 1.0f);
  sum = fma(sum, y, 1.0f);
  const int half_of = int(whole) / 2;
  return ldexp(ldexp(sum, half_of), int(whole) - half_of);
}

// exponents: of two at the start, at the end, and from step to step; each number is the sum of two floats.
// The second half is counted from the end, so that the last one is exact.
template <typename T>
kernel void logspace(
    device T* out [[buffer(0)]],
    constant float* exponents [[buffer(1)]],
    constant ulong& steps [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  const float2 step = float2(exponents[4], exponents[5]);
  if (ulong(i) >= steps) {
    return;
  }
  const bool from_start = ulong(i) < steps / 2;
  const uint count = from_start ? i : uint(steps) - i - 1;
  // A count of more than 24 bits in two parts.
  const float high = float(count & 0xffff0000u), low = float(count & 0xffffu);
  const float2 direction = from_start ? step : -step;
  const float2 origin = from_start ? float2(exponents[0], exponents[1]) : float2(exponents[2], exponents[3]);
  out[i] = T(two_to(multiply_add(direction, low, multiply_add(direction, high, origin))));
}

#define LOGSPACE(T) \
  template [[host_name("logspace_" #T)]] kernel void logspace<T>(device T*, constant float*, constant ulong&, uint);
LOGSPACE(float)
LOGSPACE(half)
LOGSPACE(bfloat)
