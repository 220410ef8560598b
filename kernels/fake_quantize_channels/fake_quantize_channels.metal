#include "shared/reduce.metal"
#include "shared/report.metal"
#include "shared/strided.metal"

// Quantized values are 64-bit integers, as on the CPU; a NaN counts as below all of them.
struct quantized {
  long value;
  bool inside;
  quantized(float x, constant long* limits) {
    constexpr float BEYOND = 9.0e18f;
    value = x >= BEYOND ? limits[1] : x > -BEYOND ? long(x) : limits[0];
    inside = abs(x) < BEYOND && value >= limits[0] && value <= limits[1];
    value = clamp(value, limits[0], limits[1]);
  }
};

// Up to 2^24 floats hold every whole number, and quantized values are nearly always of 8 bits: then floats give the same
// results, and no number is converted to 64 bits and back, which takes a GPU several times as long.
inline bool are_exact_in_float(constant long* limits) { return limits[0] >= -(1l << 24) && limits[1] <= (1l << 24); }

struct quantized_in_float {
  float value;
  bool inside;
  quantized_in_float(float x, constant long* limits) {
    const float low = float(limits[0]), high = float(limits[1]);
    inside = x >= low && x <= high;
    value = (x > high ? high : x >= low ? x : low) + 0.0f;  // a NaN counts as below, and no zero is negative
  }
};

inline float above(float value, int zero_point) { return value - float(zero_point); }
inline float above(float value, float zero_point) { return value - zero_point; }
inline float above(float value, half zero_point) { return value - float(zero_point); }
inline float above(long value, int zero_point) { return float(value - long(zero_point)); }
inline float above(long value, float zero_point) { return float(value) - zero_point; }
inline float above(long value, half zero_point) { return float(value) - float(zero_point); }

// An integral zero point is added to rounded numbers; a floating one is rounded with them.
inline float placed(float x, float inverse, int zero_point) { return float(zero_point) + rint(x * inverse); }
inline float placed(float x, float inverse, float zero_point) { return rint(fma(x, inverse, zero_point)); }
inline float placed(float x, float inverse, half zero_point) { return placed(x, inverse, float(zero_point)); }

// Operands: quantized and dequantized numbers, which of them were not clamped, the numbers, a scale and a zero point
// for each. limits: smallest and largest quantized value. Nothing is done unless `enabled`.
template <typename T, typename Z, typename I>
kernel void fake_quantize(
    device T* out [[buffer(0)]],
    device bool* kept [[buffer(1)]],
    device const T* x [[buffer(2)]],
    device const float* scale [[buffer(3)]],
    device const Z* zero_point [[buffer(4)]],
    constant long* limits [[buffer(5)]],
    constant long& enabled [[buffer(6)]],
    constant I* layout [[buffer(7)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const I element = element_of<I>(position, grid);
  if (element >= layout[0]) {
    return;
  }
  const offsets<5, I> o(layout, element);
  const T number = x[o.at[2]];
  if (enabled == 0) {
    out[o.at[0]] = number;
    kept[o.at[1]] = true;
    return;
  }
  const float step = scale[o.at[3]];
  const Z zero = zero_point[o.at[4]];
  const float at = placed(float(number), 1.0f / step, zero);
  if (are_exact_in_float(limits)) {
    const quantized_in_float q(at, limits);
    out[o.at[0]] = T(above(q.value, zero) * step);
    kept[o.at[1]] = q.inside;
    return;
  }
  const quantized q(at, limits);
  out[o.at[0]] = T(above(q.value, zero) * step);
  kept[o.at[1]] = q.inside;
}

// A zero point that is learned may be any number: it is rounded to a quantized value. A NaN is refused.
inline int rounded(int zero_point, constant long* limits) { return zero_point; }
inline int rounded(float zero_point, constant long* limits) {
  const float low = float(limits[0]), high = float(limits[1]), at = rint(zero_point);
  return int(at > high ? high : at >= low ? at : low);
}

template <typename T, typename Z, typename I>
kernel void fake_quantize_without_mask(
    device T* out [[buffer(0)]],
    device const T* x [[buffer(1)]],
    device const float* scale [[buffer(2)]],
    device const Z* zero_point [[buffer(3)]],
    constant long* limits [[buffer(4)]],
    constant I* layout [[buffer(5)]],
    REPORT_BUFFER(6) uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const I element = element_of<I>(position, grid);
  if (element >= layout[0]) {
    return;
  }
  const offsets<4, I> o(layout, element);
  const float step = scale[o.at[2]];
  const Z given = zero_point[o.at[3]];
  if (is_nan(float(given))) {
    REPORT("`zero_point` must be between `quant_min` and `quant_max`.");
  }
  const int zero = rounded(given, limits);
  const quantized q(placed(float(x[o.at[1]]), 1.0f / step, zero), limits);
  out[o.at[0]] = T(above(q.value, zero) * step);
}

// Zero points that are integers must be quantized values.
kernel void check_zero_points(
    device const int* zero_point [[buffer(0)]],
    constant long* limits [[buffer(1)]],
    REPORT_BUFFER(2) uint i [[thread_position_in_grid]]) {
  if (long(zero_point[i]) < limits[0] || long(zero_point[i]) > limits[1]) {
    REPORT("`zero_point` must be between `quant_min` and `quant_max`.");
  }
}

// Zero points that are learned may be any numbers.
kernel void check_numbers(
    device const float* zero_point [[buffer(0)]], REPORT_BUFFER(1) uint i [[thread_position_in_grid]]) {
  if (is_nan(zero_point[i])) {
    REPORT("`zero_point` must be between `quant_min` and `quant_max`.");
  }
}

// The gradients of numbers, scales and zero points (Jain et al., Trained Quantization Thresholds, 2020; Bhalgat et
// al., LSQ+, 2020). A row of groups a channel; each group sums its share of the gradients of scale and zero point into
// `partial`, which has a place for each group of each channel, first for the scales.
// channel: the strides from channel to channel of the gradient, the numbers and the gradient of the output.
// factors: smallest and largest quantized value, and what the gradients of scale and zero point are multiplied with.
kernel void learnable_backward(
    device float* gradient [[buffer(0)]],
    device float* partial [[buffer(1)]],
    device const float* x [[buffer(2)]],
    device const float* output_gradient [[buffer(3)]],
    device const float* scales [[buffer(4)]],
    device const float* zero_points [[buffer(5)]],
    constant long* limits [[buffer(6)]],
    constant float& factor [[buffer(7)]],
    constant ulong* channel [[buffer(8)]],
    constant ulong* layout [[buffer(9)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint2 groups [[threadgroups_per_grid]],
    uint2 thread_in_group [[thread_position_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  threadgroup float scratch[256];
  const ulong c = group.y;
  const float scale = scales[c], zero_point = zero_points[c], inverse = 1.0f / scale;
  float scale_sum = 0.0f, zero_point_sum = 0.0f;
  for (ulong e = ulong(group.x) * group_size.x + thread_in_group.x; e < layout[0];
       e += ulong(groups.x) * group_size.x) {
    const offsets<3, ulong> o(layout, e);
    const float number = x[o.at[1] + c * channel[1]], dy = output_gradient[o.at[2] + c * channel[2]];
    const quantized q(placed(number, inverse, zero_point), limits);
    gradient[o.at[0] + c * channel[0]] = dy * (q.inside ? 1.0f : 0.0f);
    const float at = above(q.value, zero_point);
    if (q.inside) {
      scale_sum += dy * (at * scale - number) * inverse * factor;
    } else {
      scale_sum += dy * at * factor;
      zero_point_sum += -dy * scale * factor;
    }
  }
  scale_sum = sum_group(scale_sum, scratch, thread_in_group.x, group_size.x);
  zero_point_sum = sum_group(zero_point_sum, scratch, thread_in_group.x, group_size.x);
  if (thread_in_group.x == 0) {
    const ulong place = c * groups.x + group.x;
    partial[place] = scale_sum;
    partial[ulong(groups.y) * groups.x + place] = zero_point_sum;
  }
}

// A thread a channel: what moves the running limits, and the scale and zero point that follow from them.
// The scale is at least 6.1e-5, and 0.1 where the limits leave none (the rules of fbgemm's ChooseQuantizationParams).
// settings: smallest and largest quantized value, and whether a range around zero is made symmetric.
kernel void observe(
    device float* running_min [[buffer(0)]],
    device float* running_max [[buffer(1)]],
    device float* scale [[buffer(2)]],
    device int* zero_point [[buffer(3)]],
    device const float* x_min [[buffer(4)]],
    device const float* x_max [[buffer(5)]],
    constant long& observes [[buffer(6)]],
    constant long& quantizes [[buffer(7)]],
    constant float& weight [[buffer(8)]],
    constant long* settings [[buffer(9)]],
    uint c [[thread_position_in_grid]]) {
  constexpr float SMALLEST_SCALE = 6.1e-5f;
  float low = running_min[c], high = running_max[c];
  if (observes != 0) {
    low = isinf(low) ? x_min[c] : low + weight * (x_min[c] - low);
    high = isinf(high) ? x_max[c] : high + weight * (x_max[c] - high);
    running_min[c] = low;
    running_max[c] = high;
  }
  if (quantizes == 0) {
    return;
  }
  low = low > 0.0f ? 0.0f : low;
  high = high < 0.0f ? 0.0f : high;
  const long least = settings[0], most = settings[1];
  const float steps = float(most - least);
  const bool symmetric = settings[2] != 0 && low < 0.0f && high > 0.0f;
  if (symmetric) {
    const float down = -float((most - least) / 2 + 1), up = float((most - least) / 2);
    const float widest = max(abs(low / down), abs(high / up));
    low = widest * down;
    high = widest * up;
  }
  float step = (high - low) / steps;
  if (step == 0.0f || isinf(1.0f / step)) {
    step = 0.1f;
  }
  if (step < SMALLEST_SCALE) {
    const float before = step;
    step = SMALLEST_SCALE;
    if (low == 0.0f) {
      high = SMALLEST_SCALE * steps;
    } else if (high == 0.0f) {
      low = -SMALLEST_SCALE * steps;
    } else {
      low *= SMALLEST_SCALE / before;
      high *= SMALLEST_SCALE / before;
    }
  }
  // The end of the range that rounding moves less decides.
  const float from_low = float(least) - low / step, from_high = float(most) - high / step;
  const bool takes_low = abs(float(least)) + abs(low / step) < abs(float(most)) + abs(high / step);
  const float zero = symmetric ? float(least + most) * 0.5f : takes_low ? from_low : from_high;
  scale[c] = step;
  zero_point[c] = isnan(zero) ? INT_MIN
      : zero < float(least)   ? int(least)
      : zero > float(most)    ? int(most)
                              : int(rint(zero));
}

#define FAKE_QUANTIZE(T, Z, I, SUFFIX) \
  template [[host_name("fake_quantize" SUFFIX "_" #T "_" #Z)]] kernel void fake_quantize<T, Z, I>( \
      device T*, device bool*, device const T*, device const float*, device const Z*, constant long*, constant long&, \
      constant I*, uint2, uint2);
#define WITHOUT_MASK(T, Z, I, SUFFIX) \
  template [[host_name("without_mask" SUFFIX "_" #T "_" #Z)]] kernel void fake_quantize_without_mask<T, Z, I>( \
      device T*, device const T*, device const float*, device const Z*, constant long*, constant I*, \
      REPORT_TYPE uint2, uint2);
#define OF_TYPE(T, I, SUFFIX) \
  FAKE_QUANTIZE(T, int, I, SUFFIX) \
  FAKE_QUANTIZE(T, float, I, SUFFIX) \
  FAKE_QUANTIZE(T, half, I, SUFFIX) \
  WITHOUT_MASK(T, int, I, SUFFIX) \
  WITHOUT_MASK(T, float, I, SUFFIX)
OF_TYPE(float, uint, "")
OF_TYPE(half, uint, "")
OF_TYPE(bfloat, uint, "")
OF_TYPE(float, ulong, "64")
OF_TYPE(half, ulong, "64")
OF_TYPE(bfloat, ulong, "64")
