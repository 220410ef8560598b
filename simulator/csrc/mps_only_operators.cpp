#include "registration.h"

#include <ATen/ops/matmul.h>
#include <ATen/ops/max_pool2d_with_indices.h>
#include <ATen/ops/max_pool2d_with_indices_backward.h>
#include <ATen/ops/mm.h>

namespace mpsmith {
namespace {

std::tuple<at::Tensor, at::Tensor, at::Tensor> linear_backward(
    const at::Tensor& input, const at::Tensor& grad, const at::Tensor& weight, std::array<bool, 3> wanted) {
  const at::Tensor grad_rows = grad.reshape({-1, grad.size(-1)});
  at::Tensor grad_input, grad_weight, grad_bias;
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

at::Tensor max_pool2d_backward(
    const at::Tensor& grad,
    const at::Tensor& input,
    at::IntArrayRef kernel,
    at::IntArrayRef stride,
    at::IntArrayRef padding,
    at::IntArrayRef dilation,
    bool ceil_mode) {
  const at::Tensor indices =
      std::get<1>(at::max_pool2d_with_indices(input, kernel, stride, padding, dilation, ceil_mode));
  return at::max_pool2d_with_indices_backward(
      grad, input, kernel, stride, padding, dilation, ceil_mode, indices);
}

} // namespace

void register_mps_only_operators(torch::Library& cpu) {
  cpu.impl("linear_backward", TORCH_FN(linear_backward));
  cpu.impl("max_pool2d_backward", TORCH_FN(max_pool2d_backward));
}

} // namespace mpsmith
