#include "refusals.h"

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace mpsmith {

std::atomic<bool> dtypes_refused{false};

namespace {

using Refusal = std::pair<std::string, c10::ScalarType>; // "aten::abs.out" and a dtype

std::mutex set_mutex;

std::set<Refusal>& refusals() {
  static auto* set = new std::set<Refusal>();
  return *set;
}

std::optional<at::Tensor> first_device_tensor(const c10::IValue& value) {
  if (value.isTensor() && value.toTensor().defined() && value.toTensor().is_mps()) {
    return value.toTensor();
  }
  if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) {
      if (tensor.defined() && tensor.is_mps()) {
        return tensor;
      }
    }
  }
  return std::nullopt;
}

void refuse_dtype(std::string overload, c10::ScalarType dtype) {
  const std::lock_guard<std::mutex> lock(set_mutex);
  refusals().emplace(std::move(overload), dtype);
  dtypes_refused = true;
}

void clear_refusals() {
  const std::lock_guard<std::mutex> lock(set_mutex);
  refusals().clear();
  dtypes_refused = false;
}

bool is_refused(const std::string& overload, c10::ScalarType dtype) {
  const std::lock_guard<std::mutex> lock(set_mutex);
  return refusals().count({overload, dtype}) > 0;
}

} // namespace

void check_dtype(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const std::string overload = c10::toString(op.operator_name());
  for (size_t i = stack.size() - op.schema().arguments().size(); i < stack.size(); i++) {
    const std::optional<at::Tensor> tensor = first_device_tensor(stack[i]);
    if (!tensor) {
      continue;
    }
    const c10::ScalarType dtype = tensor->scalar_type();
    if (is_refused(overload, dtype)) {
      TORCH_CHECK_TYPE(
          !c10::isComplexType(dtype), "Trying to convert ", dtype,
          " to the MPS backend but it does not have support for that dtype.");
      TORCH_CHECK_NOT_IMPLEMENTED(
          false, '"', op.operator_name().name.substr(6), "\" not implemented for '", dtype, "'");
    }
    return;
  }
}

TORCH_LIBRARY_FRAGMENT(mpsmith_simulator, m) {
  m.def("refuse_dtype(str overload, ScalarType dtype) -> ()", refuse_dtype);
  m.def("clear_refusals() -> ()", clear_refusals);
}

} // namespace mpsmith
