#include <ATen/core/Reduction.h>

namespace {

#include "shared/launch.h"
#include "shared/loss.h"
#include "shared/loss_gradient.h"
#include "shared/operands.h"

// Rows and classes.
std::pair<int64_t, int64_t> checked(const Tensor& self, const Tensor& target, const char* name) {
  require_dtype(self, self.scalar_type(), name);
  TORCH_CHECK(
      self.dim() <= 2 && !(self.dim() > 0 && self.size(-1) == 0),
      "Expected non-empty vector or matrix with optional 0-dim batch size, but got: ", self.sizes());
  const auto rows = self.dim() == 2 ? self.size(0) : 1;
  const auto classes = self.dim() == 2 ? self.size(1) : self.numel();
  const bool fits = self.dim() == 2 ? target.sizes() == self.sizes() : target.dim() <= 1 && target.numel() == classes;
  TORCH_CHECK(fits, "inconsistent target size: ", target.sizes(), " for input of size: ", self.sizes());
  require_scalar_type(target, kLong);
  return {rows, classes};
}

} // namespace

std::tuple<Tensor&, Tensor&> multilabel_margin_loss_forward_output_mps(
    const Tensor& self, const Tensor& target, int64_t reduction, Tensor& output, Tensor& is_target) {
  const auto [rows, classes] = checked(self, target, "multilabel_margin_loss_forward");
  require_dtype(output, self.scalar_type(), "multilabel_margin_loss_forward");
  require_dtype(is_target, self.scalar_type(), "multilabel_margin_loss_forward");
  resize_output(is_target, target.sizes());
  assert_no_internal_overlap(is_target);
  if (self.numel() == 0) { // the CPU gives it its size, and leaves what it holds
    const bool is_one = reduction != Reduction::None || target.dim() <= 1;
    resize_output(output, is_one ? std::vector<int64_t>{} : std::vector<int64_t>{rows});
    return {output, is_target};
  }
  const auto losses = at::empty({rows}, self.options().dtype(kFloat));
  const auto marks = is_target.is_contiguous() ? is_target : at::empty_like(is_target, MemoryFormat::Contiguous);
  launch_rows(
      "multilabel_margin_loss_" + scalarToMetalTypeString(self), rows, row_group(classes), losses, marks,
      self.contiguous(), target.contiguous(), classes, getCurrentMPSStream()->getErrorBuffer());
  if (!marks.is_same(is_target)) {
    is_target.copy_(marks);
  }
  reduce_losses(losses, reduction, target.dim() > 1, output);
  return {output, is_target};
}

std::tuple<Tensor, Tensor> multilabel_margin_loss_forward_mps(
    const Tensor& self, const Tensor& target, int64_t reduction) {
  auto output = self.numel() == 0 ? at::zeros({}, self.options()) : at::empty({0}, self.options());
  auto is_target = at::empty(target.sizes(), self.options());
  multilabel_margin_loss_forward_output_mps(self, target, reduction, output, is_target);
  return {output, is_target};
}

Tensor& multilabel_margin_loss_backward_grad_input_mps(
    const Tensor& grad_output,
    const Tensor& self,
    const Tensor& target,
    int64_t reduction,
    const Tensor& is_target,
    Tensor& grad_input) {
  const auto [rows, classes] = checked(self, target, "multilabel_margin_loss_backward");
  TORCH_CHECK(
      is_target.sizes() == target.sizes(), "inconsistent is_target size: ", is_target.sizes(), " for a target of ",
      target.sizes());
  require_scalar_type(is_target, self.scalar_type());
  require_scalar_type(grad_output, self.scalar_type());
  check_loss_gradient(grad_output, reduction, rows);
  require_dtype(grad_input, self.scalar_type(), "multilabel_margin_loss_backward");
  resize_output(grad_input, self.sizes());
  assert_no_internal_overlap(grad_input);
  if (self.numel() == 0) {
    return grad_input;
  }
  const auto input = self.contiguous();
  const auto gradient = grad_input.is_contiguous() ? grad_input : at::empty_like(input);
  const float share = reduction == Reduction::Mean ? 1.0f / rows : 1.0f;
  const std::array<int64_t, 2> shape = {classes, reduction == Reduction::None && grad_output.dim() > 0};
  launch_rows(
      "multilabel_margin_loss_backward_" + scalarToMetalTypeString(self), rows, row_group(classes), gradient, input,
      target.contiguous(), is_target.contiguous(), grad_output.contiguous(), share, shape,
      getCurrentMPSStream()->getErrorBuffer());
  return gradient.is_same(grad_input) ? grad_input : grad_input.copy_(gradient);
}

Tensor multilabel_margin_loss_backward_mps(
    const Tensor& grad_output, const Tensor& self, const Tensor& target, int64_t reduction, const Tensor& is_target) {
  auto grad_input = at::empty(self.sizes(), self.options());
  return multilabel_margin_loss_backward_grad_input_mps(grad_output, self, target, reduction, is_target, grad_input);
}
