#include "shared/elementwise.metal"

// p: scale, zero point, smallest and largest quantized value, and whether anything is done at all.
// `kept` is the mask of the backward: false where the value was clamped, and for a NaN.
struct fake_quantize {
  template <typename T> static T apply(T value, constant float* p, thread bool& kept) {
    const float scale = p[0], zero_point = p[1], low = p[2], high = p[3];
    if (p[4] == 0.0f) {
      kept = true;
      return value;
    }
    const float quantized = zero_point + rint(float(value) * (1.0f / scale));
    kept = quantized >= low && quantized <= high;
    const float clamped = quantized > high ? high : quantized >= low ? quantized : low;
    return T((clamped - zero_point) * scale);
  }
};

UNARY_PAIR(fake_quantize, float, bool)
UNARY_PAIR(fake_quantize, half, bool)
UNARY_PAIR(fake_quantize, bfloat, bool)
