namespace {

#include "shared/grid.h"
#include "shared/launch.h"

constexpr auto minus_infinity = -std::numeric_limits<double>::infinity();

// A checked batch as the kernels read it. `lengths` has three rows: steps, lengths of targets, where each target starts.
struct Batch {
  Tensor targets;
  Tensor lengths;
  std::array<int64_t, 10> geometry; // `struct problem` of the Metal source
  int64_t states; // of the longest target
};

void check_lengths(const char* name, IntArrayRef lengths, int64_t items, int64_t most) {
  TORCH_CHECK(static_cast<int64_t>(lengths.size()) == items, name, "_lengths must be of size batch_size");
  for (const auto length : lengths) {
    TORCH_CHECK(
        length >= 0 && length <= most, "Expected ", name, "_lengths between 0 and ", most, ", but got value ", length);
  }
}

Batch checked(
    const Tensor& log_probs,
    const Tensor& given_targets,
    IntArrayRef input_lengths,
    IntArrayRef target_lengths,
    int64_t blank,
    bool zero_infinity) {
  TORCH_CHECK(log_probs.numel() > 0, "log_probs tensor must not be empty");
  TORCH_CHECK_NOT_IMPLEMENTED(
      log_probs.scalar_type() == kFloat, "ctc_loss is not implemented for ", log_probs.scalar_type(), " on MPS");
  TORCH_CHECK(
      given_targets.scalar_type() == kLong || given_targets.scalar_type() == kInt,
      "Expected tensor for argument #2 'targets' to have scalar type Int; but got ", given_targets.scalar_type());
  TORCH_CHECK(log_probs.dim() == 3, "Expected 3-dimensional log_probs, but got ", log_probs.dim(), " dimensions");
  TORCH_CHECK(
      given_targets.dim() == 1 || given_targets.dim() == 2, "Expected 1 to 2 dimensions of targets, but got ",
      given_targets.dim());
  const auto steps = log_probs.size(0), items = log_probs.size(1), labels = log_probs.size(2);
  TORCH_CHECK(0 <= blank && blank < labels, "blank must be in label range");
  check_lengths("input", input_lengths, items, steps);
  check_lengths("target", target_lengths, items, std::numeric_limits<int64_t>::max());
  const auto targets = given_targets.to(kLong);
  auto longest = *std::max_element(target_lengths.begin(), target_lengths.end());
  const auto lengths = at::empty({3, items}, at::TensorOptions().dtype(kLong));
  auto* numbers = lengths.mutable_data_ptr<int64_t>();
  std::copy(input_lengths.begin(), input_lengths.end(), numbers);
  std::copy(target_lengths.begin(), target_lengths.end(), numbers + items);
  int64_t start = 0;
  for (const auto item : c10::irange(items)) {
    numbers[2 * items + item] = (targets.dim() == 1 ? start : item) * targets.stride(0);
    start += target_lengths[item];
  }
  const auto expected = targets.dim() == 1 ? start : items;
  TORCH_CHECK(
      targets.size(0) == expected, "Expected tensor to have size ", expected, " at dimension 0, but got size ",
      targets.size(0), " for argument #2 'targets'");
  if (targets.dim() == 2) {
    TORCH_CHECK(
        targets.size(1) >= longest, "Expected tensor to have size at least ", longest, " at dimension 1, but got size ",
        targets.size(1), " for argument #2 'targets'");
    longest = targets.size(1);
  }
  const auto states = 2 * longest + 1;
  return {
      targets,
      lengths.to(log_probs.device()),
      {steps, labels, states, log_probs.stride(0), log_probs.stride(1), log_probs.stride(2), blank, targets.stride(-1),
       items, zero_infinity},
      states};
}

std::vector<int64_t> read(const Tensor& lengths) {
  const auto numbers = lengths.to(kCPU, kLong).contiguous();
  const auto* first = numbers.const_data_ptr<int64_t>();
  return {first, first + numbers.numel()};
}

} // namespace

std::tuple<Tensor, Tensor> _ctc_loss_mps(
    const Tensor& log_probs,
    const Tensor& targets,
    IntArrayRef input_lengths,
    IntArrayRef target_lengths,
    int64_t blank,
    bool zero_infinity) {
  const auto batch = checked(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity);
  const auto items = log_probs.size(1);
  const auto loss = at::empty({items}, log_probs.options());
  const auto alpha = at::full({items, log_probs.size(0), batch.states}, minus_infinity, log_probs.options());
  launch_rows(
      "ctc_alpha", items, row_group(batch.states), loss, alpha, log_probs, batch.targets, batch.lengths, batch.geometry,
      getCurrentMPSStream()->getErrorBuffer());
  return {loss, alpha};
}

std::tuple<Tensor, Tensor> _ctc_loss_Tensor_mps(
    const Tensor& log_probs,
    const Tensor& targets,
    const Tensor& input_lengths,
    const Tensor& target_lengths,
    int64_t blank,
    bool zero_infinity) {
  return _ctc_loss_mps(log_probs, targets, read(input_lengths), read(target_lengths), blank, zero_infinity);
}

Tensor _ctc_loss_backward_mps(
    const Tensor& grad,
    const Tensor& log_probs,
    const Tensor& targets,
    IntArrayRef input_lengths,
    IntArrayRef target_lengths,
    const Tensor& neg_log_likelihood,
    const Tensor& log_alpha,
    int64_t blank,
    bool zero_infinity) {
  const auto batch = checked(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity);
  const auto steps = log_probs.size(0), items = log_probs.size(1), labels = log_probs.size(2);
  const auto require = [&](const char* name, const Tensor& tensor, IntArrayRef sizes) {
    TORCH_CHECK(
        tensor.scalar_type() == log_probs.scalar_type() && tensor.sizes() == sizes, "_ctc_loss_backward: expected ",
        name, " of ", log_probs.scalar_type(), " and sizes ", sizes, ", but got ", tensor.scalar_type(), " and ",
        tensor.sizes());
  };
  require("grad", grad, {items});
  require("neg_log_likelihood", neg_log_likelihood, {items});
  require("log_alpha", log_alpha, {items, steps, batch.states});
  const auto beta = at::full(log_alpha.sizes(), minus_infinity, log_probs.options());
  launch_rows(
      "ctc_beta", items, row_group(batch.states), beta, log_probs, batch.targets, batch.lengths, batch.geometry);
  const auto gradient = at::empty(log_probs.sizes(), log_probs.options());
  const auto group = MTLSizeMake(32, 1, 1);
  const auto slope = grad.contiguous(), loss = neg_log_likelihood.contiguous();
  launch_grid(
      "ctc_gradient", MTLSizeMake(labels, items, steps), group, gradient, slope, loss, log_probs, batch.targets,
      batch.lengths, batch.geometry);
  const auto kinds = (batch.states + 1) / 2; // the blank and the labels of the longest target
  launch_grid(
      "ctc_collect", MTLSizeMake(kinds, items, steps), group, gradient, slope, loss, log_probs, batch.targets,
      batch.lengths, batch.geometry, log_alpha.contiguous(), beta);
  return gradient;
}

Tensor _ctc_loss_backward_Tensor_mps(
    const Tensor& grad,
    const Tensor& log_probs,
    const Tensor& targets,
    const Tensor& input_lengths,
    const Tensor& target_lengths,
    const Tensor& neg_log_likelihood,
    const Tensor& log_alpha,
    int64_t blank,
    bool zero_infinity) {
  return _ctc_loss_backward_mps(
      grad, log_probs, targets, read(input_lengths), read(target_lengths), neg_log_likelihood, log_alpha, blank,
      zero_infinity);
}
