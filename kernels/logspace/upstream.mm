#include <cmath>

namespace {

#include "shared/launch.h"

// The kernel computes with exponents of two up to this size. It is far from the largest float.
constexpr double most_exponent = 1e30;

// A number as a dtype holds it.
double rounded(const Scalar& x, ScalarType dtype) {
  return at::scalar_tensor(x, TensorOptions().dtype(dtype).device(kCPU)).item().toDouble();
}

// A double as the sum of two numbers of float32.
std::array<float, 2> in_two(double x) {
  const auto high = static_cast<float>(x);
  return {high, static_cast<float>(x - high)};
}

} // namespace

Tensor& logspace_out_mps(const Scalar& start, const Scalar& end, int64_t steps, double base, Tensor& out) {
  TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
  if (out.numel() != steps) {
    out.resize_({steps});
  }
  if (steps == 0) {
    return out;
  }
  const auto dtype = out.scalar_type();
  const bool fits = supportedFloatingType(dtype) && !start.isComplex() && !end.isComplex();
  const double first = fits ? rounded(start, dtype) : 0, last = fits ? rounded(end, dtype) : 0;
  // Others need double precision or a branch of the logarithm, and depend on nothing but the numbers given here.
  const double power = base > 0 ? std::log2(base) : std::numeric_limits<double>::infinity();
  const double largest = std::max(std::abs(first), std::abs(last)) * std::abs(power);
  if (!fits || steps == 1 || !std::isfinite(first) || !std::isfinite(last) || !(largest <= most_exponent)) {
    const auto values = at::logspace(start, end, steps, base, TensorOptions().dtype(dtype).device(kCPU));
    return out.copy_(values.reshape(out.sizes()));
  }
  const auto result = out.is_contiguous() ? out : at::empty(out.sizes(), out.options());
  const double step = rounded(last - first, dtype) / (steps - 1);
  std::vector<float> exponents;
  for (const double x : {first, last, step}) {
    const auto parts = in_two(x * power);
    exponents.insert(exponents.end(), parts.begin(), parts.end());
  }
  launch_elements("logspace_" + scalarToMetalTypeString(out), steps, result, exponents, steps);
  return result.is_same(out) ? out : out.copy_(result);
}
