#include "shared/lanes.metal"
#include "shared/strided.metal"

// p: decay of the learning rate, weight decay, eps, whether to maximize, whether gradients are scaled, and whether
// `found_inf` tells to leave everything as it is. The other numbers come from buffers: they may live on the device.
struct adagrad {
  float rate, weight_decay, eps, direction, unscale;
  bool unscales, skips;

  adagrad(
      constant float* p, constant float& lr, constant float& step, constant float& scale, constant float& found_inf) {
    rate = lr / (1.0f + (step - 1.0f) * p[0]);
    weight_decay = p[1];
    eps = p[2];
    direction = p[3] != 0.0f ? -1.0f : 1.0f;
    unscales = p[4] != 0.0f;
    unscale = unscales ? scale : 1.0f;
    skips = p[5] != 0.0f && found_inf == 1.0f;
  }

  // One element; the gradient is written back only if it was scaled.
  template <typename T> void update(thread T& parameter, thread T& gradient, thread T& sum) const {
    float g = float(gradient);
    if (unscales) {
      g /= unscale;
      gradient = T(g);
    }
    g *= direction;
    const float x = float(parameter);
    g = weight_decay != 0.0f ? fma(weight_decay, x, g) : g;
    const float total = float(sum) + g * g;
    sum = T(total);
    parameter = T(x - rate * g / (precise::sqrt(total) + eps));
  }
};

// The 16 bytes of `vector` in dense tensors, or what is left of them at the end.
template <typename T>
void step_on(device T* parameter, device T* gradient, device T* sum, adagrad rule, ulong vector, ulong elements) {
  constexpr uint W = lane_count<T>;
  const ulong first = vector * W;
  if (rule.skips) {
    return;
  }
  if (first + W <= elements) {
    auto x = lanes<T, W>::load(parameter + first);
    auto g = lanes<T, W>::load(gradient + first);
    auto s = lanes<T, W>::load(sum + first);
    for (uint k = 0; k < W; ++k) {
      rule.update(x.value[k], g.value[k], s.value[k]);
    }
    x.store(parameter + first);
    s.store(sum + first);
    if (rule.unscales) {
      g.store(gradient + first);
    }
    return;
  }
  for (ulong e = first; e < elements; ++e) {
    T x = parameter[e], g = gradient[e], s = sum[e];
    rule.update(x, g, s);
    parameter[e] = x;
    sum[e] = s;
    if (rule.unscales) {
      gradient[e] = g;
    }
  }
}

template <typename T>
kernel void fused_adagrad_dense(
    device T* parameter [[buffer(0)]],
    device T* gradient [[buffer(1)]],
    device T* sum [[buffer(2)]],
    constant float* p [[buffer(3)]],
    constant float& lr [[buffer(4)]],
    constant float& step [[buffer(5)]],
    constant float& scale [[buffer(6)]],
    constant float& found_inf [[buffer(7)]],
    constant ulong& elements [[buffer(8)]],
    uint i [[thread_position_in_grid]]) {
  step_on(parameter, gradient, sum, adagrad(p, lr, step, scale, found_inf), i, elements);
}

// The buffers of one of several parameters, and what makes it the one of a thread: tensors follow each other.
#define ROW(k, b0, b1, b2, b3) \
  device T *parameter##k [[buffer(b0)]], device T *gradient##k [[buffer(b1)]], device T *sum##k [[buffer(b2)]], \
      constant float &step##k [[buffer(b3)]]
#define TAKE(k) \
  if (i >= sizes[k]) { \
    parameter = parameter##k; \
    gradient = gradient##k; \
    sum = sum##k; \
    step = &step##k; \
    first = sizes[k]; \
    elements = sizes[6 + k]; \
  }

// Six parameters at once. sizes: the first vector of each, then the elements of each.
template <typename T>
kernel void fused_adagrad_several(
    ROW(0, 0, 1, 2, 3),
    ROW(1, 4, 5, 6, 7),
    ROW(2, 8, 9, 10, 11),
    ROW(3, 12, 13, 14, 15),
    ROW(4, 16, 17, 18, 19),
    ROW(5, 20, 21, 22, 23),
    constant float* p [[buffer(24)]],
    constant float& lr [[buffer(25)]],
    constant float& scale [[buffer(26)]],
    constant float& found_inf [[buffer(27)]],
    constant ulong* sizes [[buffer(28)]],
    uint i [[thread_position_in_grid]]) {
  device T *parameter, *gradient, *sum;
  constant float* step;
  ulong first, elements;
  TAKE(0)
  TAKE(1)
  TAKE(2)
  TAKE(3)
  TAKE(4)
  TAKE(5)
  step_on(parameter, gradient, sum, adagrad(p, lr, *step, scale, found_inf), i - first, elements);
}

template <typename T, typename I>
kernel void fused_adagrad_strided(
    device T* parameter [[buffer(0)]],
    device T* gradient [[buffer(1)]],
    device T* sum [[buffer(2)]],
    constant float* p [[buffer(3)]],
    constant float& lr [[buffer(4)]],
    constant float& step [[buffer(5)]],
    constant float& scale [[buffer(6)]],
    constant float& found_inf [[buffer(7)]],
    constant I* layout [[buffer(8)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const adagrad rule(p, lr, step, scale, found_inf);
  const I element = element_of<I>(position, grid);
  if (rule.skips || element >= layout[0]) {
    return;
  }
  const offsets<3, I> o(layout, element);
  T x = parameter[o.at[0]], g = gradient[o.at[1]], s = sum[o.at[2]];
  rule.update(x, g, s);
  parameter[o.at[0]] = x;
  sum[o.at[2]] = s;
  if (rule.unscales) {
    gradient[o.at[1]] = g;
  }
}

#define ROW_TYPES(T) device T*, device T*, device T*, constant float&
#define FUSED_ADAGRAD(T) \
  template [[host_name("fused_adagrad_several_" #T)]] kernel void fused_adagrad_several<T>( \
      ROW_TYPES(T), ROW_TYPES(T), ROW_TYPES(T), ROW_TYPES(T), ROW_TYPES(T), ROW_TYPES(T), constant float*, \
      constant float&, constant float&, constant float&, constant ulong*, uint); \
  template [[host_name("fused_adagrad_dense_" #T)]] kernel void fused_adagrad_dense<T>( \
      device T*, device T*, device T*, constant float*, constant float&, constant float&, constant float&, \
      constant float&, constant ulong&, uint); \
  template [[host_name("fused_adagrad_strided_" #T)]] kernel void fused_adagrad_strided<T, uint>( \
      device T*, device T*, device T*, constant float*, constant float&, constant float&, constant float&, \
      constant float&, constant uint*, uint2, uint2); \
  template [[host_name("fused_adagrad_strided64_" #T)]] kernel void fused_adagrad_strided<T, ulong>( \
      device T*, device T*, device T*, constant float*, constant float&, constant float&, constant float&, \
      constant float&, constant ulong*, uint2, uint2);
FUSED_ADAGRAD(float)
FUSED_ADAGRAD(half)
FUSED_ADAGRAD(bfloat)
