#include "shared/elementwise.metal"
#include "shared/report.metal"

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

// Refuses a zero point, or a switch, that the CPU could not turn into an integer.
kernel void check_whole_number(
    device const float* number [[buffer(0)]], REPORT_BUFFER(1) uint i [[thread_position_in_grid]]) {
  if (i == 0 && !(number[0] > -2147483904.0f && number[0] < 2147483648.0f)) {
    REPORT("value cannot be converted to type int without overflow");
  }
}

UNARY_PAIR(fake_quantize, float, bool)
UNARY_PAIR(fake_quantize, half, bool)
UNARY_PAIR(fake_quantize, bfloat, bool)
