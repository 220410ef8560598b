// CPU kernels for operators that only mps (and perhaps cuda) implements.
#include "registration.h"

#include <ATen/core/stack.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/max_pool2d_with_indices.h>
#include <ATen/ops/max_pool2d_with_indices_backward.h>
#include <ATen/ops/mm.h>

namespace mpsmith {
namespace {

using at::IntArrayRef;
using at::Tensor;
using c10::SymInt;
using c10::SymIntArrayRef;
using TwoTensors = std::tuple<Tensor, Tensor>;
using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;

ThreeTensors linear_backward(
    const Tensor& input, const Tensor& grad, const Tensor& weight, std::array<bool, 3> wanted) {
  const Tensor grad_rows = grad.reshape({-1, grad.size(-1)});
  Tensor grad_input, grad_weight, grad_bias;
  if (wanted[0]) {
    grad_input = at::matmul(grad, weight.conj());
  }
  if (wanted[1]) {
    grad_weight = at::mm(grad_rows.t(), input.reshape({-1, input.size(-1)}).conj());
  }
  if (wanted[2]) {
    grad_bias = grad_rows.sum(0);
  }
  return {grad_input, grad_weight, grad_bias};
}

Tensor max_pool2d_backward(
    const Tensor& grad,
    const Tensor& input,
    IntArrayRef kernel,
    IntArrayRef stride,
    IntArrayRef padding,
    IntArrayRef dilation,
    bool ceil_mode) {
  const Tensor indices = std::get<1>(at::max_pool2d_with_indices(input, kernel, stride, padding, dilation, ceil_mode));
  return at::max_pool2d_with_indices_backward(grad, input, kernel, stride, padding, dilation, ceil_mode, indices);
}

Tensor mps_convolution(
    const Tensor& input,
    const Tensor& weight,
    const std::optional<Tensor>& bias,
    SymIntArrayRef padding,
    SymIntArrayRef stride,
    SymIntArrayRef dilation,
    SymInt groups) {
  const std::vector<SymInt> no_output_padding(padding.size(), 0);
  return at::convolution_symint(
      input, weight, bias, stride, padding, dilation, /*transposed=*/false, no_output_padding, std::move(groups));
}

ThreeTensors mps_convolution_backward(
    const Tensor& input,
    const Tensor& grad,
    const Tensor& weight,
    SymIntArrayRef padding,
    SymIntArrayRef stride,
    SymIntArrayRef dilation,
    SymInt groups,
    std::array<bool, 3> wanted) {
  const std::vector<SymInt> no_output_padding(padding.size(), 0);
  const std::vector<SymInt> bias_sizes{weight.sym_size(0)};
  return at::convolution_backward_symint(
      grad, input, weight, bias_sizes, stride, padding, dilation, /*transposed=*/false, no_output_padding,
      std::move(groups), wanted);
}

Tensor mps_convolution_transpose(
    const Tensor& input,
    const Tensor& weight,
    SymIntArrayRef padding,
    SymIntArrayRef output_padding,
    SymIntArrayRef stride,
    SymIntArrayRef dilation,
    SymInt groups) {
  return at::convolution_symint(
      input, weight, {}, stride, padding, dilation, /*transposed=*/true, output_padding, std::move(groups));
}

TwoTensors mps_convolution_transpose_backward(
    const Tensor& input,
    const Tensor& grad,
    const Tensor& weight,
    SymIntArrayRef padding,
    SymIntArrayRef output_padding,
    SymIntArrayRef stride,
    SymIntArrayRef dilation,
    SymInt groups,
    std::array<bool, 2> wanted) {
  auto [grad_input, grad_weight, none] = at::convolution_backward_symint(
      grad, input, weight, {}, stride, padding, dilation, /*transposed=*/true, output_padding, std::move(groups),
      {wanted[0], wanted[1], false});
  return {grad_input, grad_weight};
}

// Boxed, because enable_gqa was added to the operator later.
void attention_math_for_mps(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  static const auto math =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::_scaled_dot_product_attention_math", "");
  for (size_t missing = op.schema().arguments().size(); missing < math.schema().arguments().size(); missing++) {
    stack->emplace_back(false);
  }
  math.callBoxed(stack);
}

} // namespace

void register_mps_only_operators(torch::Library& cpu) {
  cpu.impl("linear_backward", TORCH_FN(linear_backward));
  cpu.impl("max_pool2d_backward", TORCH_FN(max_pool2d_backward));
  cpu.impl("_mps_convolution", TORCH_FN(mps_convolution));
  cpu.impl("mps_convolution_backward", TORCH_FN(mps_convolution_backward));
  cpu.impl("_mps_convolution_transpose", TORCH_FN(mps_convolution_transpose));
  cpu.impl("mps_convolution_transpose_backward", TORCH_FN(mps_convolution_transpose_backward));
  cpu.impl(
      "_scaled_dot_product_attention_math_for_mps",
      torch::CppFunction::makeFromBoxedFunction<&attention_math_for_mps>());
}

} // namespace mpsmith
