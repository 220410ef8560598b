// Composite operators that choose their kernel by the backend. A torch without mps is compiled without their branch for
// mps, so it is implemented here.
#include "registration.h"

#include <ATen/core/grad_mode.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/ops/_lstm_mps.h>
#include <ATen/ops/_mps_convolution.h>
#include <ATen/ops/_mps_convolution_transpose.h>
#include <ATen/ops/_scaled_dot_product_attention_math.h>
#include <ATen/ops/_scaled_dot_product_attention_math_for_mps.h>
#include <ATen/ops/mps_convolution_backward.h>
#include <ATen/ops/mps_convolution_transpose_backward.h>
#include <ATen/ops/zeros_like.h>

#include <limits>

namespace mpsmith {
namespace {

using at::Tensor;
using c10::SymInt;
using c10::SymIntArrayRef;

// The memory format of the results of a convolution on a Mac. CPU kernels may choose another.
at::MemoryFormat foreseen_format(const Tensor& input, const Tensor& weight, bool transposed) {
  using at::native::ConvBackend;
  const auto backend = transposed ? ConvBackend::MpsTranspose : ConvBackend::Mps;
  return at::native::_determine_backend_memory_format(input, weight, backend);
}

Tensor in_format(const Tensor& result, at::MemoryFormat format) {
  return result.defined() ? result.contiguous(format) : result;
}

// aten::convolution checks its arguments and calls the "overrideable" operator for an unknown backend.
Tensor convolution(
    const Tensor& input,
    const Tensor& weight,
    const std::optional<Tensor>& bias,
    SymIntArrayRef stride,
    SymIntArrayRef padding,
    SymIntArrayRef dilation,
    bool transposed,
    SymIntArrayRef output_padding,
    SymInt groups) {
  const auto format = foreseen_format(input, weight, transposed);
  if (!transposed) {
    return in_format(
        at::_mps_convolution_symint(input, weight, bias, padding, stride, dilation, std::move(groups)), format);
  }
  Tensor output = at::_mps_convolution_transpose_symint(
      input, weight, padding, output_padding, stride, dilation, std::move(groups));
  if (bias && bias->defined()) {
    std::vector<SymInt> one_value_a_channel(output.dim(), 1);
    one_value_a_channel[1] = -1;
    output.add_(bias->reshape_symint(one_value_a_channel));
  }
  return in_format(output, format);
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(
    const Tensor& grad,
    const Tensor& input,
    const Tensor& weight,
    SymIntArrayRef stride,
    SymIntArrayRef padding,
    SymIntArrayRef dilation,
    bool transposed,
    SymIntArrayRef output_padding,
    SymInt groups,
    std::array<bool, 3> wanted) {
  const auto format = foreseen_format(input, weight, transposed);
  if (!transposed) {
    auto [grad_input, grad_weight, grad_bias] =
        at::mps_convolution_backward_symint(input, grad, weight, padding, stride, dilation, std::move(groups), wanted);
    return {in_format(grad_input, format), in_format(grad_weight, format), grad_bias};
  }
  auto [grad_input, grad_weight] = at::mps_convolution_transpose_backward_symint(
      input, grad, weight, padding, output_padding, stride, dilation, std::move(groups), {wanted[0], wanted[1]});
  Tensor grad_bias;
  if (wanted[2]) {
    std::vector<int64_t> all_but_channels{0};
    for (int64_t dim = 2; dim < grad.dim(); dim++) {
      all_but_channels.push_back(dim);
    }
    grad_bias = grad.sum(all_but_channels);
  }
  return {in_format(grad_input, format), in_format(grad_weight, format), grad_bias};
}

bool needs_gradient(const Tensor& query, const Tensor& key, const Tensor& value) {
  return at::GradMode::is_enabled() && (query.requires_grad() || key.requires_grad() || value.requires_grad());
}

// torch's own implementation queries a DispatchStub for mps, which raises in a build without mps. A Mac with macOS 15
// uses its own operator unless a gradient or dropout is needed.
Tensor scaled_dot_product_attention(
    const Tensor& query,
    const Tensor& key,
    const Tensor& value,
    const std::optional<Tensor>& mask,
    double dropout,
    bool is_causal,
    std::optional<double> scale,
    bool enable_gqa) {
  std::optional<Tensor> bias = mask;
  if (mask && mask->defined() && mask->scalar_type() == at::kBool) {
    bias = at::zeros_like(*mask, query.dtype())
               .masked_fill_(mask->logical_not(), -std::numeric_limits<double>::infinity());
  }
  if (dropout == 0.0 && !enable_gqa && !needs_gradient(query, key, value)) {
    return std::get<0>(
        at::_scaled_dot_product_attention_math_for_mps(query, key, value, bias, dropout, is_causal, {}, scale));
  }
  return std::get<0>(
      at::_scaled_dot_product_attention_math(query, key, value, bias, dropout, is_causal, {}, scale, enable_gqa));
}

// A Mac takes its own operator for each LSTM over whole tensors, whatever its arguments. Packed sequences, GRU and RNN
// are composed of cells everywhere.
std::tuple<Tensor, Tensor, Tensor> lstm(
    const Tensor& input,
    at::TensorList hx,
    at::TensorList params,
    bool has_biases,
    int64_t layers,
    double dropout,
    bool train,
    bool bidirectional,
    bool batch_first) {
  TORCH_CHECK(hx.size() == 2, "lstm expects two hidden states");
  auto [output, states, cells, gates, all_cells, outputs] =
      at::_lstm_mps(input, hx, params, has_biases, layers, dropout, train, bidirectional, batch_first);
  return {output, states, cells};
}

} // namespace

void register_composites(torch::Library& mps, torch::Library& autograd_mps) {
  mps.impl("convolution_overrideable", TORCH_FN(convolution));
  mps.impl("convolution_backward_overrideable", TORCH_FN(convolution_backward));
  mps.impl("lstm.input", TORCH_FN(lstm));
  autograd_mps.impl("lstm.input", TORCH_FN(lstm));
  mps.impl("scaled_dot_product_attention", TORCH_FN(scaled_dot_product_attention));
  autograd_mps.impl("scaled_dot_product_attention", TORCH_FN(scaled_dot_product_attention));
}

} // namespace mpsmith
