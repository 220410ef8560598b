#include "fallback.h"

#include "counters.h"

#include <ATen/native/CPUFallback.h>

#include <atomic>

namespace mpsmith {
namespace {

std::atomic<bool> fallback_enabled{false};

std::string& torch_commit() {
  static auto* commit = new std::string("unknown");
  return *commit;
}

Counter& counter_of(const c10::OperatorHandle& op) { return counter_for(c10::toString(op.operator_name())); }

} // namespace

void set_fallback_enabled(bool enabled) { fallback_enabled = enabled; }

void set_torch_commit(std::string commit) { torch_commit() = std::move(commit); }

void always_fallback_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  counter_of(op).count(Outcome::fallback);
  TORCH_WARN_ONCE(
      "The operator '", op.schema().operator_name(), "' is not currently supported ",
      "on the MPS backend and will fall back to run on the CPU.", " This may have performance implications.");
  at::native::cpu_fallback(op, stack);
}

void not_simulated_kernel(const c10::OperatorHandle& op, torch::jit::Stack*) {
  counter_of(op).count(Outcome::native);
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, "The operator '", op.schema().operator_name(),
      "' is native on the MPS device, but the simulated one cannot run it: ", "there is no CPU kernel to run it with.");
}

void missing_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  if (fallback_enabled) {
    always_fallback_kernel(op, stack);
    return;
  }
  counter_of(op).count(Outcome::error);
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, "The operator '", op.schema().operator_name(), "' is not currently implemented ",
      "for the MPS device. If you want this op to be considered for addition ",
      "please comment on https://github.com/pytorch/pytorch/issues/141287 and mention use-case, that resulted in "
      "missing op",
      " as well as commit hash ", torch_commit(),
      ". As a temporary fix, you can set the environment variable `PYTORCH_ENABLE_MPS_FALLBACK=1` ",
      "to use the CPU as a fallback for this op. WARNING: this will be slower than running natively ", "on MPS.");
}

// With both on mps the real backend asserts. Only a direct call gets here, so it counts as missing.
void slow_convolution_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t first = stack->size() - op.schema().arguments().size();
  const c10::Device input = (*stack)[first].toTensor().device();
  const c10::Device weight = (*stack)[first + 1].toTensor().device();
  TORCH_CHECK(
      input == weight, "slow_conv2d_forward_mps: input(device='", input, "') and weight(device=", weight,
      "')  must be on the same device");
  missing_kernel(op, stack);
}

} // namespace mpsmith
