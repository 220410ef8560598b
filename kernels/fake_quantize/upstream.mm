#include <ATen/native/quantized/FakeQuantAffine.h>

namespace {

#include "shared/launch.h"

// Parameters: scale, zero point, smallest and largest quantized value, and whether anything is done at all.
template <typename P>
void quantize(const Tensor& output, const Tensor& mask, const Tensor& input, const P& parameters) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      supportedFloatingType(input), "fake_quantize is not implemented for ", input.scalar_type(), " on MPS");
  const auto elements = output.numel();
  if (elements == 0) {
    return;
  }
  const auto suffix = scalarToMetalTypeString(output);
  if (is_dense_and_aligned({output, mask, input})) {
    const auto lanes = 16 / output.element_size();
    const auto threads = (elements + lanes - 1) / lanes;
    launch_elements("fake_quantize_dense_" + suffix, threads, output, mask, input, parameters, elements);
  } else {
    const auto layout = packed_layout({output, mask, input});
    launch_elements("fake_quantize_strided64_" + suffix, elements, output, mask, input, parameters, layout);
  }
}

void fake_quant_kernel(
    Tensor& output,
    Tensor& mask,
    const Tensor& input,
    float scale,
    int64_t zero_point,
    int64_t quant_min,
    int64_t quant_max) {
  const std::array<float, 5> parameters = {
      scale, static_cast<float>(zero_point), static_cast<float>(quant_min), static_cast<float>(quant_max), 1.0f};
  quantize(output, mask, input, parameters);
}

// The parameters stay on the device.
void fake_quant_tensor_qparams_kernel(
    Tensor& output,
    Tensor& mask,
    const Tensor& input,
    const Tensor& scale,
    const Tensor& zero_point,
    const Tensor& fake_quant_enabled,
    int64_t quant_min,
    int64_t quant_max) {
  const auto first = [](const Tensor& x) {
    TORCH_CHECK(x.numel() != 0, "a Tensor with 0 elements cannot be converted to Scalar");
    return x.reshape(-1).narrow(0, 0, 1);
  };
  // The zero point and the switch are whole numbers, whatever the dtype is that they come in.
  const auto whole = [&](const Tensor& x) { return first(x).to(kInt).to(kFloat); };
  auto limits = at::empty({2}, input.options().dtype(kFloat));
  limits.narrow(0, 0, 1).fill_(quant_min);
  limits.narrow(0, 1, 1).fill_(quant_max);
  const auto parameters = at::cat({first(scale).to(kFloat), whole(zero_point), limits, whole(fake_quant_enabled)});
  quantize(output, mask, input, parameters);
}

} // namespace

REGISTER_DISPATCH(fake_quant_tensor_cachemask_stub, &fake_quant_kernel)
REGISTER_DISPATCH(fake_quant_tensor_cachemask_tensor_qparams_stub, &fake_quant_tensor_qparams_kernel)
