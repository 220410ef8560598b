#include "shared/field.metal"
#include "shared/lanes.metal"
#include "shared/strided.metal"

// e^z; the argument of a complex number is at most as exact as float32 holds it.
inline float power_of_e(float z) { return precise::exp(z); }
inline float2 power_of_e(float2 z) { return precise::exp(z.x) * float2(precise::cos(z.y), precise::sin(z.y)); }
inline float real_part(float z) { return z; }
inline float real_part(float2 z) { return z.x; }

// The logistic function and what it lacks to one; each is exact to rounding where the other is nearly one.
template <typename C> struct gate {
  C open;
  C shut;
  static gate at(C b) {
    const bool leans_open = real_part(b) >= 0.0f;
    const C decay = power_of_e(leans_open ? -b : b);
    const C major = over(number<C>(1.0f), number<C>(1.0f) + decay);
    const C minor = times(decay, major);
    return leans_open ? gate{major, minor} : gate{minor, major};
  }
};

// The unit is a * open(b); its derivative by b is a * open * shut, which is glu * shut.
// `distances`: how far the gates of x and dx stand behind their linear parts.
template <typename T, typename C, typename I>
kernel void glu_jvp(
    device T* out [[buffer(0)]],
    device const T* glu [[buffer(1)]],
    device const T* x [[buffer(2)]],
    device const T* dx [[buffer(3)]],
    constant long* distances [[buffer(4)]],
    constant I* layout [[buffer(5)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const I element = element_of<I>(position, grid);
  if (element < layout[0]) {
    const offsets<4, I> o(layout, element);
    const C b = C(x[o.at[2] + distances[0]]), da = C(dx[o.at[3]]), db = C(dx[o.at[3] + distances[1]]);
    const gate<C> g = gate<C>::at(b);
    out[o.at[0]] = T(times(da, g.open) + times(times(C(glu[o.at[1]]), g.shut), db));
  }
}

// The same where each operand's neighbours stand together: a thread moves 16 bytes of each, and computes where they stand
// once. `layout` counts in as many elements.
template <typename T, typename I>
kernel void glu_jvp_wide(
    device T* out [[buffer(0)]],
    device const T* glu [[buffer(1)]],
    device const T* x [[buffer(2)]],
    device const T* dx [[buffer(3)]],
    constant long* distances [[buffer(4)]],
    constant I* layout [[buffer(5)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  constexpr uint W = lane_count<T>;
  const I element = element_of<I>(position, grid);
  if (element < layout[0]) {
    const offsets<4, I> o(layout, element);
    device const T* tangent = dx + W * o.at[3];
    const auto unit = lanes<T, W>::load(glu + W * o.at[1]), gates = lanes<T, W>::load(x + distances[0] + W * o.at[2]);
    const auto linear = lanes<T, W>::load(tangent), moved = lanes<T, W>::load(tangent + distances[1]);
    lanes<T, W> result;
    for (uint k = 0; k < W; ++k) {
      const gate<float> g = gate<float>::at(float(gates.value[k]));
      const float through_gate = float(unit.value[k]) * g.shut * float(moved.value[k]);
      result.value[k] = T(float(linear.value[k]) * g.open + through_gate);
    }
    result.store(out + W * o.at[0]);
  }
}

// The gradient of the linear part is grad * open, that of the gate is grad * open * a * shut.
// `distances`: how far the gates of out, x and dx stand behind their linear parts.
template <typename T, typename C, typename I>
kernel void glu_backward_jvp(
    device T* out [[buffer(0)]],
    device const T* linear_gradient [[buffer(1)]],
    device const T* x [[buffer(2)]],
    device const T* dgradient [[buffer(3)]],
    device const T* dx [[buffer(4)]],
    constant long* distances [[buffer(5)]],
    constant I* layout [[buffer(6)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const I element = element_of<I>(position, grid);
  if (element >= layout[0]) {
    return;
  }
  const offsets<5, I> o(layout, element);
  const C a = C(x[o.at[2]]), da = C(dx[o.at[4]]), dgate = C(dx[o.at[4] + distances[2]]);
  const gate<C> g = gate<C>::at(C(x[o.at[2] + distances[1]]));
  const C gradient = C(linear_gradient[o.at[1]]);
  const C moved = times(C(dgradient[o.at[3]]), g.open) + times(times(gradient, g.shut), dgate);
  out[o.at[0]] = T(moved);
  // What is shut comes first: numbers whose products would overflow are nothing then.
  const C shut_a = times(a, g.shut), shut_da = times(da, g.shut);
  out[o.at[0] + distances[0]] =
      T(times(moved, shut_a) + times(gradient, shut_da) - times(times(gradient, shut_a), times(g.open, dgate)));
}

#define GLU_JVP(T, C, I, SUFFIX) \
  template [[host_name("glu_jvp" SUFFIX "_" #T)]] kernel void glu_jvp<T, C, I>( \
      device T*, device const T*, device const T*, device const T*, constant long*, constant I*, uint2, uint2);
#define GLU_JVP_WIDE(T, I, SUFFIX) \
  template [[host_name("glu_jvp_wide" SUFFIX "_" #T)]] kernel void glu_jvp_wide<T, I>( \
      device T*, device const T*, device const T*, device const T*, constant long*, constant I*, uint2, uint2);
#define GLU_BACKWARD_JVP(T, C, I, SUFFIX) \
  template [[host_name("glu_backward_jvp" SUFFIX "_" #T)]] kernel void glu_backward_jvp<T, C, I>( \
      device T*, device const T*, device const T*, device const T*, device const T*, constant long*, constant I*, \
      uint2, uint2);
#define GLU(T, C) \
  GLU_JVP(T, C, uint, "") \
  GLU_JVP(T, C, ulong, "64") \
  GLU_JVP_WIDE(T, uint, "") \
  GLU_JVP_WIDE(T, ulong, "64") GLU_BACKWARD_JVP(T, C, uint, "") GLU_BACKWARD_JVP(T, C, ulong, "64")
GLU(float, float)
GLU(half, float)
GLU(bfloat, float)
GLU_BACKWARD_JVP(float2, float2, uint, "")
GLU_BACKWARD_JVP(float2, float2, ulong, "64")
