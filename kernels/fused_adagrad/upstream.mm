namespace {

#include "shared/launch.h"

// A float32 tensor of one element, whose value the kernel reads where it is.
Tensor number(const Tensor& value, const char* name) {
  TORCH_CHECK(value.numel() == 1, "_fused_adagrad_: ", name, " must have one element, not ", value.numel());
  return value.reshape({}).to(kFloat);
}

Tensor number(const std::optional<Tensor>& value, double otherwise, const char* name) {
  if (value.has_value() && value->defined()) {
    return number(*value, name);
  }
  return at::full({}, otherwise, TensorOptions().dtype(kFloat).device(kCPU));
}

void check(const Tensor& parameter, const Tensor& gradient, const Tensor& sum) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      supportedFloatingType(parameter), "_fused_adagrad_ is not implemented for ", parameter.scalar_type(), " on MPS");
  for (const auto& other : {gradient, sum}) {
    TORCH_CHECK(
        other.scalar_type() == parameter.scalar_type() && other.sizes() == parameter.sizes(),
        "_fused_adagrad_: a parameter, its gradient and its sum must have one dtype and one shape, got ",
        parameter.scalar_type(), " ", parameter.sizes(), " and ", other.scalar_type(), " ", other.sizes());
  }
  assert_no_internal_overlap(parameter);
  assert_no_internal_overlap(gradient);
  assert_no_internal_overlap(sum);
}

} // namespace

void _fused_adagrad__tensor_lr_mps(
    TensorList self,
    TensorList grads,
    TensorList state_sums,
    TensorList state_steps,
    const Tensor& lr,
    double lr_decay,
    double weight_decay,
    double eps,
    bool maximize,
    const std::optional<Tensor>& grad_scale,
    const std::optional<Tensor>& found_inf) {
  TORCH_CHECK(
      self.size() == grads.size() && self.size() == state_sums.size() && self.size() == state_steps.size(),
      "_fused_adagrad_ needs lists of one length, got ", self.size(), " parameters, ", grads.size(), " gradients, ",
      state_sums.size(), " sums and ", state_steps.size(), " steps");
  const auto is_given = [](const std::optional<Tensor>& value) { return value.has_value() && value->defined(); };
  const std::array<float, 6> numbers = {
      static_cast<float>(lr_decay), static_cast<float>(weight_decay),         static_cast<float>(eps),
      static_cast<float>(maximize), static_cast<float>(is_given(grad_scale)), static_cast<float>(is_given(found_inf))};
  const auto rate = number(lr, "lr");
  const auto scale = number(grad_scale, 1.0, "grad_scale");
  const auto inf = number(found_inf, 0.0, "found_inf");
  for (const auto i : c10::irange(self.size())) {
    const auto &parameter = self[i], &gradient = grads[i], &sum = state_sums[i];
    check(parameter, gradient, sum);
    const auto elements = parameter.numel();
    if (elements == 0) {
      continue;
    }
    const auto step = number(state_steps[i], "state_steps");
    const auto suffix = scalarToMetalTypeString(parameter);
    if (is_dense_and_aligned({parameter, gradient, sum})) {
      const auto lanes = 16 / parameter.element_size();
      const auto threads = (elements + lanes - 1) / lanes;
      const auto name = "fused_adagrad_dense_" + suffix;
      launch_elements(name, threads, parameter, gradient, sum, numbers, rate, step, scale, inf, elements);
    } else {
      const auto layout = packed_layout({parameter, gradient, sum});
      const auto name = "fused_adagrad_strided64_" + suffix;
      launch_elements(name, elements, parameter, gradient, sum, numbers, rate, step, scale, inf, layout);
    }
  }
}

void _fused_adagrad__mps(
    TensorList self,
    TensorList grads,
    TensorList state_sums,
    TensorList state_steps,
    double lr,
    double lr_decay,
    double weight_decay,
    double eps,
    bool maximize,
    const std::optional<Tensor>& grad_scale,
    const std::optional<Tensor>& found_inf) {
  _fused_adagrad__tensor_lr_mps(
      self, grads, state_sums, state_steps, at::full({}, lr, TensorOptions().dtype(kFloat).device(kCPU)), lr_decay,
      weight_decay, eps, maximize, grad_scale, found_inf);
}
