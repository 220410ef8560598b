#include "host_kernels.h"

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>

namespace mpsmith {
namespace {

using torch::jit::Stack;

void run_as_it_is(const c10::OperatorHandle& op, c10::DispatchKeySet host, Stack* stack) {
  op.redispatchBoxed(host, stack);
}

// A Mac accumulates in the dtype of the weights, or in int32 if it cannot scatter them; the CPU in float64.
void bincount(const c10::OperatorHandle& op, c10::DispatchKeySet host, Stack* stack) {
  std::optional<c10::ScalarType> dtype;
  const size_t first = stack->size() - op.schema().arguments().size();
  c10::IValue& weights = (*stack)[first + 1];
  const bool is_empty = (*stack)[first].toTensor().numel() == 0;
  if (weights.isTensor() && !is_empty) {
    dtype = weights.toTensor().scalar_type();
    if (dtype != at::kFloat && dtype != at::kInt && dtype != at::kHalf) {
      dtype = at::kInt;
      weights = weights.toTensor().to(at::kInt);
    }
  }
  op.redispatchBoxed(host, stack);
  if (dtype) {
    stack->back() = stack->back().toTensor().to(*dtype);
  }
}

} // namespace

HostKernel host_kernel_for(const std::string& overload) {
  static const auto* kernels = new std::map<std::string, HostKernel>{{"aten::bincount", bincount}};
  const auto found = kernels->find(overload);
  return found == kernels->end() ? run_as_it_is : found->second;
}

} // namespace mpsmith
