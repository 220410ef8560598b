#include "faults.h"

#include "fault_effects.h"
#include "generator.h"

#include <ATen/core/Tensor.h>
#include <ATen/native/CPUFallback.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace mpsmith {

std::atomic<bool> faults_armed{false};

namespace {

using torch::jit::Stack;
using Tensors = std::vector<at::Tensor>;

struct Fault {
  std::string overload; // "aten::exp.out"
  std::string kind;
  std::string when;
  std::optional<c10::ScalarType> dtype;
  int64_t above;
  double relative;
  double absolute;

  // What the fault remembers from call to call.
  std::mutex mutex;
  std::vector<std::vector<int64_t>> previous_sizes;
  std::optional<c10::Storage> previous_result;
  std::vector<c10::Storage> never_freed;
  uint64_t draws = 0;
};

// One call of a faulty operator.
struct Call {
  const c10::OperatorHandle& op;
  Stack* stack;
  const std::function<void()>& kernel;
  const std::vector<c10::IValue> arguments;
  const Tensors inputs;

  size_t results() const { return op.schema().returns().size(); }
  Tensors outputs() const { return device_tensors({stack->end() - static_cast<int64_t>(results()), stack->end()}); }
  bool is_fresh(const at::Tensor& output) const {
    return std::none_of(
        inputs.begin(), inputs.end(), [&](const at::Tensor& input) { return share_memory(input, output); });
  }
};

std::mutex list_mutex;

std::vector<std::shared_ptr<Fault>>& armed() {
  static auto* list = new std::vector<std::shared_ptr<Fault>>();
  return *list;
}

std::shared_ptr<Fault> fault_for(const c10::OperatorHandle& op) {
  const std::string name = c10::toString(op.operator_name());
  const std::lock_guard<std::mutex> lock(list_mutex);
  for (const auto& fault : armed()) {
    if (fault->overload == name) {
      return fault;
    }
  }
  return nullptr;
}

// ---- when

bool repeats_previous_call(Fault& fault, const Tensors& inputs) {
  std::vector<std::vector<int64_t>> sizes;
  for (const at::Tensor& input : inputs) {
    sizes.push_back(input.sizes().vec());
  }
  const std::lock_guard<std::mutex> lock(fault.mutex);
  std::swap(sizes, fault.previous_sizes);
  return sizes == fault.previous_sizes;
}

bool is_expanded(const at::Tensor& tensor) {
  for (int64_t d = 0; d < tensor.dim(); d++) {
    if (tensor.size(d) > 1 && tensor.stride(d) == 0) {
      return true;
    }
  }
  return false;
}

bool fits_condition(Fault& fault, const Tensors& inputs) {
  const auto any = [&](auto condition) { return std::any_of(inputs.begin(), inputs.end(), condition); };
  if (fault.dtype && !any([&](const at::Tensor& t) { return t.scalar_type() == *fault.dtype; })) {
    return false;
  }
  if (fault.above > 0 && !any([&](const at::Tensor& t) { return t.numel() > fault.above; })) {
    return false;
  }
  if (fault.when == "non_contiguous") {
    return any([](const at::Tensor& t) { return !t.is_contiguous(); });
  }
  if (fault.when == "offset") {
    return any([](const at::Tensor& t) { return t.storage_offset() > 0; });
  }
  if (fault.when == "expanded") {
    return any(is_expanded);
  }
  if (fault.when == "empty") {
    return any([](const at::Tensor& t) { return t.numel() == 0; });
  }
  if (fault.when == "repeated") {
    return repeats_previous_call(fault, inputs);
  }
  return true;
}

// ---- what

Change in_place(const std::function<void(const at::Tensor&)>& effect) {
  return [effect](const at::Tensor& host) {
    effect(host);
    return host;
  };
}

void run_with_wrong_alias(const Call& call) {
  call.kernel();
  const Tensors outputs = call.outputs();
  if (outputs.empty()) {
    return;
  }
  if (call.is_fresh(outputs[0])) {
    move_into_input(*call.stack, call.results(), call.inputs);
  } else {
    change_result(*call.stack, call.results(), [](const at::Tensor& view) { return view.clone(); });
  }
}

void run_and_change_input(const Call& call) {
  call.kernel();
  const Tensors outputs = call.outputs();
  for (const at::Tensor& input : call.inputs) {
    const bool is_output = std::any_of(
        outputs.begin(), outputs.end(), [&](const at::Tensor& output) { return share_memory(input, output); });
    if (!is_output) {
      change_first(input);
      return;
    }
  }
}

// The memory of each result is somebody else's as soon as the operator is called again.
void run_with_freed_result(Fault& fault, const Call& call) {
  const std::lock_guard<std::mutex> lock(fault.mutex);
  if (fault.previous_result) {
    overwrite(*fault.previous_result);
    fault.previous_result.reset();
  }
  call.kernel();
  const Tensors outputs = call.outputs();
  if (!outputs.empty() && call.is_fresh(outputs[0])) {
    fault.previous_result = outputs[0].storage();
  }
}

void run_and_leak(Fault& fault, const Call& call) {
  call.kernel();
  const Tensors outputs = call.outputs();
  const std::lock_guard<std::mutex> lock(fault.mutex);
  if (!outputs.empty() && call.is_fresh(outputs[0])) {
    fault.never_freed.push_back(outputs[0].storage());
  }
}

at::Generator generator_of(const Call& call) {
  for (const c10::IValue& argument : call.arguments) {
    if (argument.isGenerator() && argument.toGenerator().device().is_mps()) {
      return argument.toGenerator();
    }
  }
  return default_generator();
}

// Draws from a sequence of the fault's own; the generator that the caller seeded stays as it was.
void run_with_seed(const Call& call, uint64_t seed) {
  const at::Generator generator = generator_of(call);
  auto* impl = generator.unsafeGetGeneratorImpl();
  const auto before = impl->get_state();
  impl->set_current_seed(seed);
  call.kernel();
  impl->set_state(*before);
}

void run_with_own_seed(Fault& fault, const Call& call) {
  uint64_t draw = 0;
  {
    const std::lock_guard<std::mutex> lock(fault.mutex);
    draw = ++fault.draws;
  }
  run_with_seed(call, draw);
}

// The larger of two draws: the right shape, dtype and range, from another distribution.
void run_with_larger_of_two_draws(const Call& call) {
  call.kernel();
  at::Tensor first;
  change_result(*call.stack, call.results(), in_place([&](const at::Tensor& drawn) { first = drawn.clone(); }));
  torch::jit::drop(*call.stack, call.results());
  call.stack->insert(call.stack->end(), call.arguments.begin(), call.arguments.end());
  call.kernel();
  change_result(*call.stack, call.results(), in_place([&](const at::Tensor& drawn) {
    if (first.defined() && !drawn.is_complex()) {
      drawn.copy_(drawn.maximum(first));
    }
  }));
}

void run_with_other_error(const Call& call) {
  try {
    call.kernel();
  } catch (const c10::ValueError& error) {
    TORCH_CHECK_TYPE(false, error.what_without_backtrace());
  } catch (const c10::Error& error) {
    TORCH_CHECK_VALUE(false, error.what_without_backtrace());
  }
}

void run_faulty(Fault& fault, const Call& call) {
  const std::string& kind = fault.kind;
  const auto run_and_change = [&](const Change& change) {
    call.kernel();
    change_result(*call.stack, call.results(), change);
  };
  if (kind == "values") {
    run_and_change(in_place(make_wrong));
  } else if (kind == "nan") {
    run_and_change(in_place(make_last_nan));
  } else if (kind == "near") {
    run_and_change(in_place([&](const at::Tensor& host) { move_last(host, fault.relative, fault.absolute); }));
  } else if (kind == "shape") {
    run_and_change(with_another_shape);
  } else if (kind == "dtype") {
    run_and_change(with_another_dtype);
  } else if (kind == "stride") {
    run_and_change(with_other_strides);
  } else if (kind == "alias") {
    run_with_wrong_alias(call);
  } else if (kind == "outside") {
    call.kernel();
    for (const at::Tensor& output : call.outputs()) {
      write_behind(output);
    }
  } else if (kind == "input") {
    run_and_change_input(call);
  } else if (kind == "freed") {
    run_with_freed_result(fault, call);
  } else if (kind == "leak") {
    run_and_leak(fault, call);
  } else if (kind == "seed") {
    run_with_own_seed(fault, call);
  } else if (kind == "same_draws") {
    run_with_seed(call, 0);
  } else if (kind == "distribution") {
    run_with_larger_of_two_draws(call);
  } else if (kind == "error") {
    run_with_other_error(call);
  } else if (kind == "fallback") {
    at::native::cpu_fallback(call.op, call.stack);
  } else if (kind == "abort") {
    std::abort();
  } else if (kind == "segfault") {
    std::raise(SIGSEGV);
  } else if (kind == "hang") {
    while (true) {
      pause();
    }
  } else {
    TORCH_CHECK(false, "No kind of fault ", kind);
  }
}

void arm_fault(
    std::string overload,
    std::string kind,
    std::string when,
    std::optional<c10::ScalarType> dtype,
    int64_t above,
    double relative,
    double absolute) {
  auto fault = std::make_shared<Fault>();
  fault->overload = std::move(overload);
  fault->kind = std::move(kind);
  fault->when = std::move(when);
  fault->dtype = dtype;
  fault->above = above;
  fault->relative = relative;
  fault->absolute = absolute;
  const std::lock_guard<std::mutex> lock(list_mutex);
  armed().push_back(std::move(fault));
  faults_armed = true;
}

void clear_faults() {
  const std::lock_guard<std::mutex> lock(list_mutex);
  armed().clear();
  faults_armed = false;
}

} // namespace

bool run_with_fault(const c10::OperatorHandle& op, Stack* stack, const std::function<void()>& kernel) {
  const std::shared_ptr<Fault> fault = fault_for(op);
  if (!fault) {
    return false;
  }
  const auto count = static_cast<int64_t>(op.schema().arguments().size());
  std::vector<c10::IValue> arguments(stack->end() - count, stack->end());
  Tensors inputs = device_tensors(arguments);
  if (!fits_condition(*fault, inputs)) {
    return false;
  }
  // The effects use operators themselves: below autograd and autocast, as the kernel does.
  static const c10::DispatchKeySet done =
      c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset;
  const c10::impl::ExcludeDispatchKeyGuard guard(done);
  run_faulty(*fault, Call{op, stack, kernel, std::move(arguments), std::move(inputs)});
  return true;
}

TORCH_LIBRARY_FRAGMENT(mpsmith_simulator, m) {
  m.def(
      "arm_fault(str overload, str kind, str when, ScalarType? dtype, int above, float relative, float absolute) -> ()",
      &arm_fault);
  m.def("clear_faults() -> ()", &clear_faults);
}

} // namespace mpsmith
