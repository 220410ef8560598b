#include "refusals.h"

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <utility>

namespace mpsmith {

using torch::jit::Stack;

// Reads the arguments of a call by name.
class Arguments {
 public:
  Arguments(const c10::FunctionSchema& schema, const Stack& stack, size_t first)
      : schema_(schema), stack_(stack), first_(first) {}

  const c10::IValue* find(const std::string& name) const {
    const std::optional<int> position = schema_.argumentIndexWithName(name);
    return position ? &stack_[first_ + static_cast<size_t>(*position)] : nullptr;
  }

  // The mps tensor in an argument, or the first in a list.
  std::optional<at::Tensor> tensor(const std::string& name) const {
    const c10::IValue* value = find(name);
    if (value == nullptr) {
      return std::nullopt;
    }
    if (value->isTensor()) {
      return on_device(value->toTensor());
    }
    if (value->isTensorList()) {
      for (const at::Tensor& tensor : value->toTensorVector()) {
        if (std::optional<at::Tensor> found = on_device(tensor)) {
          return found;
        }
      }
    }
    return std::nullopt;
  }

 private:
  static std::optional<at::Tensor> on_device(const at::Tensor& tensor) {
    return tensor.defined() && tensor.is_mps() ? std::optional<at::Tensor>(tensor) : std::nullopt;
  }

  const c10::FunctionSchema& schema_;
  const Stack& stack_;
  size_t first_;
};

using Condition = std::function<bool(const Arguments&)>;

struct Refusal {
  c10::FunctionSchema schema;
  std::string argument; // the tensor to check
  std::vector<c10::ScalarType> dtypes; // empty for any
  std::optional<int64_t> dimensions;
  Condition condition;
  std::string error; // "TypeError", "NotImplementedError" or "RuntimeError"
  std::string text;

  bool fits(const Arguments& arguments) const {
    const std::optional<at::Tensor> tensor = arguments.tensor(argument);
    if (!tensor || (dimensions && tensor->dim() != *dimensions)) {
      return false;
    }
    const bool dtype_fits =
        dtypes.empty() || std::find(dtypes.begin(), dtypes.end(), tensor->scalar_type()) != dtypes.end();
    return dtype_fits && condition(arguments);
  }

  void raise() const {
    TORCH_CHECK_TYPE(error != "TypeError", text);
    TORCH_CHECK_NOT_IMPLEMENTED(error != "NotImplementedError", text);
    TORCH_CHECK(false, text);
  }
};

namespace {

// ---- conditions

struct Pooling {
  std::array<int64_t, 2> input; // height and width
  std::array<int64_t, 2> output;

  bool shrinks() const { return input[0] >= output[0] && input[1] >= output[1]; }
  bool grows() const { return input[0] <= output[0] && input[1] <= output[1]; }
};

bool multiples(const std::array<int64_t, 2>& sizes, const std::array<int64_t, 2>& of) {
  return sizes[0] % of[0] == 0 && sizes[1] % of[1] == 0;
}

// The sizes of an adaptive pool or of its backward; none if one of them is 0.
std::optional<Pooling> pooling(const Arguments& arguments) {
  const std::optional<at::Tensor> input = arguments.tensor("self");
  if (!input || input->dim() < 2) {
    return std::nullopt;
  }
  Pooling sizes{{input->size(-2), input->size(-1)}, {0, 0}};
  if (const std::optional<at::Tensor> grad = arguments.tensor("grad_output"); grad && grad->dim() >= 2) {
    sizes.output = {grad->size(-2), grad->size(-1)};
  } else if (const c10::IValue* wanted = arguments.find("output_size")) {
    const c10::DimVector output = wanted->toDimVector();
    if (output.size() == 2) {
      sizes.output = {output[0], output[1]};
    }
  }
  const bool all = sizes.input[0] > 0 && sizes.input[1] > 0 && sizes.output[0] > 0 && sizes.output[1] > 0;
  return all ? std::optional<Pooling>(sizes) : std::nullopt;
}

bool pool_grows_and_shrinks(const Arguments& arguments) {
  const std::optional<Pooling> sizes = pooling(arguments);
  return sizes && !sizes->shrinks() && !sizes->grows();
}

bool pool_divides_unevenly(const Arguments& arguments) {
  const std::optional<Pooling> sizes = pooling(arguments);
  return sizes && sizes->shrinks() && !multiples(sizes->input, sizes->output);
}

bool pool_multiplies_unevenly(const Arguments& arguments) {
  const std::optional<Pooling> sizes = pooling(arguments);
  return sizes && !sizes->shrinks() && sizes->grows() && !multiples(sizes->output, sizes->input);
}

const std::map<std::string, Condition>& named_conditions() {
  static const auto* conditions = new std::map<std::string, Condition>{
      {"pool grows and shrinks", pool_grows_and_shrinks},
      {"pool divides unevenly", pool_divides_unevenly},
      {"pool multiplies unevenly", pool_multiplies_unevenly},
  };
  return *conditions;
}

// "" is always true, "reduce=prod" compares an argument; the others are named.
Condition condition_of(const std::string& text) {
  if (text.empty()) {
    return [](const Arguments&) { return true; };
  }
  if (const auto equals = text.find('='); equals != std::string::npos) {
    return [name = text.substr(0, equals), wanted = text.substr(equals + 1)](const Arguments& arguments) {
      const c10::IValue* value = arguments.find(name);
      return value != nullptr && value->isString() && value->toStringRef() == wanted;
    };
  }
  const auto found = named_conditions().find(text);
  TORCH_CHECK_VALUE(found != named_conditions().end(), "no condition for refusals has the name ", text);
  return found->second;
}

// ---- by overload

std::mutex map_mutex;

std::map<std::string, std::unique_ptr<Refusals>>& by_overload() {
  static auto* map = new std::map<std::string, std::unique_ptr<Refusals>>();
  return *map;
}

void refuse(
    const std::string& overload,
    std::string argument,
    std::vector<c10::ScalarType> dtypes,
    std::optional<int64_t> dimensions,
    const std::string& condition,
    std::string error,
    std::string text) {
  const auto dot = overload.find('.');
  const auto op = c10::Dispatcher::singleton().findSchema(
      {overload.substr(0, dot), dot == std::string::npos ? "" : overload.substr(dot + 1)});
  if (!op) { // of another release of torch
    return;
  }
  refusals_of(overload).add(
      std::make_shared<const Refusal>(Refusal{
          op->schema(), std::move(argument), std::move(dtypes), dimensions, condition_of(condition), std::move(error),
          std::move(text)}));
}

void clear_refusals() {
  const std::lock_guard<std::mutex> lock(map_mutex);
  for (const auto& [name, refusals] : by_overload()) {
    refusals->clear();
  }
}

} // namespace

void Refusals::add(std::shared_ptr<const Refusal> refusal) {
  const std::lock_guard<std::mutex> lock(mutex_);
  refusals_.push_back(std::move(refusal));
  any_ = true;
}

void Refusals::clear() {
  const std::lock_guard<std::mutex> lock(mutex_);
  refusals_.clear();
  any_ = false;
}

void Refusals::check_all(const Stack& stack, size_t first) const {
  std::shared_ptr<const Refusal> fitting;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& refusal : refusals_) {
      if (refusal->fits(Arguments(refusal->schema, stack, first))) {
        fitting = refusal;
        break;
      }
    }
  }
  if (fitting) {
    fitting->raise();
  }
}

Refusals& refusals_of(const std::string& overload) {
  const std::lock_guard<std::mutex> lock(map_mutex);
  std::unique_ptr<Refusals>& refusals = by_overload()[overload];
  if (!refusals) {
    refusals = std::make_unique<Refusals>();
  }
  return *refusals;
}

TORCH_LIBRARY_FRAGMENT(mpsmith_simulator, m) {
  m.def(
      "refuse(str overload, str argument, ScalarType[] dtypes, int? dimensions, str condition, str error, str text)"
      " -> ()",
      refuse);
  m.def("clear_refusals() -> ()", clear_refusals);
}

} // namespace mpsmith
