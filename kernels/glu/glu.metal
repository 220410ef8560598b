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
template <typename T, typename C, typename I>
kernel void glu_jvp(
    device T* out [[buffer(0)]],
    device const T* glu [[buffer(1)]],
    device const T* b [[buffer(2)]],
    device const T* da [[buffer(3)]],
    device const T* db [[buffer(4)]],
    constant I* layout [[buffer(5)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const I element = element_of<I>(position, grid);
  if (element < layout[0]) {
    const offsets<5, I> o(layout, element);
    const gate<C> g = gate<C>::at(C(b[o.at[2]]));
    const C through_gate = times(times(C(glu[o.at[1]]), g.shut), C(db[o.at[4]]));
    out[o.at[0]] = T(times(C(da[o.at[3]]), g.open) + through_gate);
  }
}

// The same where each operand's neighbours stand together: a thread moves 16 bytes of each, and computes where they stand
// once. `layout` counts in as many elements.
template <typename T, typename I>
kernel void glu_jvp_wide(
    device T* out [[buffer(0)]],
    device const T* glu [[buffer(1)]],
    device const T* b [[buffer(2)]],
    device const T* da [[buffer(3)]],
    device const T* db [[buffer(4)]],
    constant I* layout [[buffer(5)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  constexpr uint W = lane_count<T>;
  const I element = element_of<I>(position, grid);
  if (element < layout[0]) {
    const offsets<5, I> o(layout, element);
    const auto unit = lanes<T, W>::load(glu + W * o.at[1]), gates = lanes<T, W>::load(b + W * o.at[2]);
    const auto linear = lanes<T, W>::load(da + W * o.at[3]), moved = lanes<T, W>::load(db + W * o.at[4]);
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
template <typename T, typename C, typename I>
kernel void glu_backward_jvp(
    device T* linear_out [[buffer(0)]],
    device T* gate_out [[buffer(1)]],
    device const T* linear_gradient [[buffer(2)]],
    device const T* a [[buffer(3)]],
    device const T* b [[buffer(4)]],
    device const T* dgradient [[buffer(5)]],
    device const T* da [[buffer(6)]],
    device const T* db [[buffer(7)]],
    constant I* layout [[buffer(8)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const I element = element_of<I>(position, grid);
  if (element >= layout[0]) {
    return;
  }
  const offsets<8, I> o(layout, element);
  const gate<C> g = gate<C>::at(C(b[o.at[4]]));
  const C x = C(a[o.at[3]]), dx = C(da[o.at[6]]), dgate = C(db[o.at[7]]);
  const C gradient = C(linear_gradient[o.at[2]]);
  const C moved = times(C(dgradient[o.at[5]]), g.open) + times(times(gradient, g.shut), dgate);
  linear_out[o.at[0]] = T(moved);
  // What is shut comes first: numbers whose products would overflow are nothing then.
  const C shut_x = times(x, g.shut), shut_dx = times(dx, g.shut);
  gate_out[o.at[1]] =
      T(times(moved, shut_x) + times(gradient, shut_dx) - times(times(gradient, shut_x), times(g.open, dgate)));
}

#define GLU_JVP(T, C, I, SUFFIX) \
  template [[host_name("glu_jvp" SUFFIX "_" #T)]] kernel void glu_jvp<T, C, I>( \
      device T*, device const T*, device const T*, device const T*, device const T*, constant I*, uint2, uint2);
#define GLU_JVP_WIDE(T, I, SUFFIX) \
  template [[host_name("glu_jvp_wide" SUFFIX "_" #T)]] kernel void glu_jvp_wide<T, I>( \
      device T*, device const T*, device const T*, device const T*, device const T*, constant I*, uint2, uint2);
#define GLU_BACKWARD_JVP(T, C, I, SUFFIX) \
  template [[host_name("glu_backward_jvp" SUFFIX "_" #T)]] kernel void glu_backward_jvp<T, C, I>( \
      device T*, device T*, device const T*, device const T*, device const T*, device const T*, device const T*, \
      device const T*, constant I*, uint2, uint2);
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
