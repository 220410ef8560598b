#include <ATen/core/Reduction.h>

namespace {

#include "shared/launch.h"
#include "shared/loss.h"
#include "shared/loss_gradient.h"
#include "shared/operands.h"

struct MarginOperands {
  int64_t rows;
  int64_t classes;
  Tensor input;
  Tensor target;
  Tensor weight; // the input, as a placeholder, if no weights are given
  float p;
};

MarginOperands checked(
    const Tensor& self, const Tensor& target, const Scalar& p, const std::optional<Tensor>& weight, const char* name) {
  require_dtype(self, self.scalar_type(), name);
  TORCH_CHECK(p.toDouble() == 1 || p.toDouble() == 2, "only p == 1 and p == 2 supported");
  TORCH_CHECK(
      self.dim() <= 2 && (self.numel() != 0 || (self.dim() == 2 && self.size(1) != 0)),
      "Expected non-empty vector or matrix with optional 0-dim batch size, but got: ", self.sizes());
  const auto rows = self.dim() == 2 ? self.size(0) : 1;
  const auto classes = self.dim() == 2 ? self.size(1) : self.numel();
  TORCH_CHECK(
      target.dim() <= 1 && target.numel() == rows,
      "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). ",
      "Expected target size [", rows, "], but got ", target.sizes(), ". Input has shape ", self.sizes(), ".");
  require_scalar_type(target, kLong);
  const bool weighted = weight.has_value() && weight->defined();
  TORCH_CHECK(
      !weighted || (weight->dim() <= 1 && weight->numel() == classes), "inconsistent weight size, expected ", classes,
      " but got ", weighted ? weight->sizes() : IntArrayRef{});
  if (weighted) {
    require_scalar_type(*weight, self.scalar_type());
  }
  const auto input = self.contiguous();
  return {rows, classes, input, target.contiguous(), weighted ? weight->contiguous() : input, p.to<float>()};
}

std::array<float, 3> factors(const MarginOperands& of, const Scalar& margin, int64_t reduction) {
  return {margin.to<float>(), of.p, reduction == Reduction::Mean ? 1.0f / of.rows : 1.0f};
}

bool is_given(const std::optional<Tensor>& weight) { return weight.has_value() && weight->defined(); }

} // namespace

Tensor& multi_margin_loss_out_mps(
    const Tensor& self,
    const Tensor& target,
    const Scalar& p,
    const Scalar& margin,
    const std::optional<Tensor>& weight,
    int64_t reduction,
    Tensor& out) {
  const auto of = checked(self, target, p, weight, "multi_margin_loss");
  require_dtype(out, self.scalar_type(), "multi_margin_loss");
  const auto losses = at::empty({of.rows}, self.options().dtype(kFloat));
  if (of.rows != 0) {
    const auto numbers = factors(of, margin, reduction);
    const std::array<int64_t, 2> shape = {of.classes, is_given(weight)};
    launch_rows(
        "multi_margin_loss_" + scalarToMetalTypeString(self), of.rows, row_group(of.classes), losses, of.input,
        of.target, of.weight, numbers, shape, getCurrentMPSStream()->getErrorBuffer());
  }
  // Each row has its share of the mean: the sum of all may be beyond float32 where the mean is not.
  const auto rest = reduction == Reduction::Mean && of.rows != 0 ? int64_t(Reduction::Sum) : reduction;
  return reduce_losses(losses, rest, target.dim() > 0, out);
}

Tensor multi_margin_loss_mps(
    const Tensor& self,
    const Tensor& target,
    const Scalar& p,
    const Scalar& margin,
    const std::optional<Tensor>& weight,
    int64_t reduction) {
  auto out = at::empty({0}, self.options());
  return multi_margin_loss_out_mps(self, target, p, margin, weight, reduction, out);
}

Tensor& multi_margin_loss_backward_grad_input_mps(
    const Tensor& grad_output,
    const Tensor& self,
    const Tensor& target,
    const Scalar& p,
    const Scalar& margin,
    const std::optional<Tensor>& weight,
    int64_t reduction,
    Tensor& grad_input) {
  const auto of = checked(self, target, p, weight, "multi_margin_loss_backward");
  require_scalar_type(grad_output, self.scalar_type());
  check_loss_gradient(grad_output, reduction, of.rows);
  require_dtype(grad_input, self.scalar_type(), "multi_margin_loss_backward");
  resize_output(grad_input, self.sizes());
  assert_no_internal_overlap(grad_input);
  if (of.rows == 0) {
    return grad_input;
  }
  const auto gradient = grad_input.is_contiguous() ? grad_input : at::empty_like(of.input);
  const auto numbers = factors(of, margin, reduction);
  const std::array<int64_t, 3> shape = {
      of.classes, is_given(weight), reduction == Reduction::None && grad_output.dim() > 0};
  launch_rows(
      "multi_margin_loss_backward_" + scalarToMetalTypeString(self), of.rows, row_group(of.classes), gradient, of.input,
      of.target, of.weight, grad_output.contiguous(), numbers, shape, getCurrentMPSStream()->getErrorBuffer());
  return gradient.is_same(grad_input) ? grad_input : grad_input.copy_(gradient);
}

Tensor multi_margin_loss_backward_mps(
    const Tensor& grad_output,
    const Tensor& self,
    const Tensor& target,
    const Scalar& p,
    const Scalar& margin,
    const std::optional<Tensor>& weight,
    int64_t reduction) {
  auto grad_input = at::empty(self.sizes(), self.options());
  return multi_margin_loss_backward_grad_input_mps(grad_output, self, target, p, margin, weight, reduction, grad_input);
}
