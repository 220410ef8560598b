namespace {

#include "shared/launch.h"

// Parameters of one launch: each takes four of the 31 buffers that a kernel has.
constexpr size_t at_once = 6;

// A parameter, its gradient, its sum and its step.
using Row = std::array<Tensor, 4>;

// A float32 tensor of one element, whose value the kernel reads where it is.
Tensor number(const Tensor& value, const char* name) {
  TORCH_CHECK(value.numel() == 1, "_fused_adagrad_: ", name, " must have one element, not ", value.numel());
  const auto one = value.reshape({}).to(kFloat);
  return one.is_cpu() ? one.clone() : one; // of a view on the CPU, mtl_setArgs passes the first element of the storage
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

// One launch for dense parameters of one dtype; the last one is repeated where there are fewer, without a thread.
template <typename... Constants>
void step_on(const std::vector<Row>& rows, const Constants&... constants) {
  if (rows.empty()) {
    return;
  }
  const auto lanes = 16 / rows[0][0].element_size();
  std::array<Tensor, 4 * at_once> buffers;
  std::array<int64_t, 2 * at_once> sizes;
  int64_t vectors = 0;
  for (const auto k : c10::irange(at_once)) {
    const auto& row = rows[std::min(k, rows.size() - 1)];
    std::copy(row.begin(), row.end(), buffers.begin() + 4 * k);
    sizes[k] = vectors;
    sizes[at_once + k] = row[0].numel();
    vectors += k < rows.size() ? (row[0].numel() + lanes - 1) / lanes : 0;
  }
  const auto name = "fused_adagrad_several_" + scalarToMetalTypeString(rows[0][0]);
  std::apply([&](const auto&... tensors) { launch_elements(name, vectors, tensors..., constants..., sizes); }, buffers);
}

// Whether a launch may step on another parameter, too: tensors in the same memory are written one after the other.
bool has_room(const std::vector<Row>& rows, const Row& next) {
  for (const auto& row : rows) {
    for (const auto pair : c10::irange(9)) {
      if (row[pair / 3].data_ptr() == next[pair % 3].data_ptr()) {
        return false;
      }
    }
  }
  return rows.empty() || (rows.size() < at_once && rows[0][0].scalar_type() == next[0].scalar_type());
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
  std::vector<Row> rows;
  const auto step_on_all = [&] {
    step_on(rows, numbers, rate, scale, inf);
    rows.clear();
  };
  for (const auto i : c10::irange(self.size())) {
    const auto &parameter = self[i], &gradient = grads[i], &sum = state_sums[i];
    check(parameter, gradient, sum);
    const auto elements = parameter.numel();
    if (elements == 0) {
      continue;
    }
    const auto step = number(state_steps[i], "state_steps");
    if (is_dense_and_aligned({parameter, gradient, sum})) {
      const Row row = {parameter, gradient, sum, step};
      if (!has_room(rows, row)) {
        step_on_all();
      }
      rows.push_back(row);
    } else {
      step_on_all(); // it may be in the same memory
      const auto layout = packed_layout({parameter, gradient, sum});
      const auto name = "fused_adagrad_strided64_" + scalarToMetalTypeString(parameter);
      launch_elements(name, elements, parameter, gradient, sum, numbers, rate, step, scale, inf, layout);
    }
  }
  step_on_all();
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
