#include "native_kernel.h"

#include "alias.h"
#include "device.h"
#include "generator.h"

#include <ATen/core/List.h>
#include <ATen/core/enum_tag.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <unordered_map>

namespace mpsmith {
namespace {

using torch::jit::Stack;

// Operators that accept CPU tensors next to mps ones: copies, and indices on the CPU.
DeviceMix device_mix_of(const std::string& overload) {
  static const auto* mixes = new std::unordered_map<std::string, DeviceMix>{
      {"aten::copy_", DeviceMix::copies},
      {"aten::_foreach_copy_", DeviceMix::copies},
      {"aten::index.Tensor", DeviceMix::indices},
      {"aten::index.Tensor_out", DeviceMix::indices},
      {"aten::index_put", DeviceMix::indices},
      {"aten::index_put_", DeviceMix::indices},
      {"aten::_index_put_impl_", DeviceMix::indices},
  };
  const auto found = mixes->find(overload);
  return found == mixes->end() ? DeviceMix::none : found->second;
}

bool can_hold_device_value(const c10::Argument& argument) {
  const std::string type = argument.type()->str();
  for (const char* word : {"Tensor", "Device", "Generator", "Storage"}) {
    if (type.find(word) != std::string::npos) {
      return true;
    }
  }
  return false;
}

// Replaces mps tensors, devices, generators and storages in the arguments of a call.
class ArgumentConversion {
 public:
  explicit ArgumentConversion(AliasScope& scope) : scope_(scope) {}

  void convert(c10::IValue& value) {
    if (value.isTensor()) {
      value = convert_tensor(value.toTensor());
    } else if (value.isTensorList()) {
      std::vector<at::Tensor> tensors = value.toTensorVector();
      for (at::Tensor& tensor : tensors) {
        tensor = convert_tensor(tensor);
      }
      value = c10::List<at::Tensor>(std::move(tensors));
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> tensors;
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
        tensors.push_back(tensor ? std::optional<at::Tensor>(convert_tensor(*tensor)) : std::nullopt);
      }
      value = std::move(tensors);
    } else if (value.isDevice()) {
      if (value.toDevice().is_mps()) {
        value = host_device();
      }
    } else if (value.isGenerator()) {
      value = convert_generator(value.toGenerator());
    } else if (value.isStorage()) {
      if (value.toStorage().device().is_mps()) {
        value = scope_.to_host(value.toStorage());
      }
    }
  }

  // The CPU generator for this call.
  at::Generator draw_from(const at::Generator& generator) { return draw_.emplace(generator).host(); }

  // A CPU tensor without dimensions counts as a number, which any device accepts.
  bool mixes_devices() const { return has_host_tensor_ && scope_.has_device_tensor(); }

  // Whether there is an mps tensor of a dtype that no operator computes with.
  bool has_complex128() const { return has_complex128_; }

 private:
  at::Tensor convert_tensor(const at::Tensor& tensor) {
    if (tensor.defined() && tensor.device().is_cpu() && tensor.dim() > 0) {
      has_host_tensor_ = true;
    }
    if (tensor.defined() && tensor.is_mps() && tensor.scalar_type() == c10::ScalarType::ComplexDouble) {
      has_complex128_ = true;
    }
    return scope_.to_host(tensor);
  }

  // The generator follows the tensors in every schema, so the device is known here.
  at::Generator convert_generator(const at::Generator& generator) {
    if (generator.device().is_mps()) {
      return draw_from(generator);
    }
    TORCH_CHECK(
        !scope_.has_device_tensor(), "Expected a 'mps' device type for generator but found '",
        generator.device().type(), "'");
    return generator;
  }

  AliasScope& scope_;
  std::optional<Draw> draw_;
  bool has_host_tensor_ = false;
  bool has_complex128_ = false;
};

// Whether the operator only moves or reinterprets memory, which a Mac allows for complex128.
bool keeps_bytes(const c10::OperatorHandle& op) {
  const std::string& name = op.operator_name().name;
  const auto& returns = op.schema().returns();
  const bool is_view = !returns.empty() && returns[0].alias_info() && !returns[0].alias_info()->isWrite();
  return is_view || name == "aten::set_" || name == "aten::resize_" || name == "aten::copy_";
}

// A copy without conversion moves bytes.
bool converts(const c10::OperatorHandle& op, const Stack& stack, size_t first) {
  return op.operator_name().name == "aten::copy_" &&
      stack[first].toTensor().scalar_type() != stack[first + 1].toTensor().scalar_type();
}

// A CPU tensor accepts only indices on the CPU.
void check_indexed(const c10::IValue& indexed) {
  TORCH_CHECK(
      indexed.toTensor().is_mps(), "indices should be either on cpu or on the same device as the indexed tensor (",
      indexed.toTensor().device(), ")");
}

// Runs the host's kernel below autograd and autocast, which have already processed the mps tensors.
void run_on_host(HostKernel kernel, const c10::OperatorHandle& op, c10::DispatchKeySet host, Stack* stack) {
  static const c10::DispatchKeySet done =
      c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset;
  const c10::impl::ExcludeDispatchKeyGuard guard(done);
  kernel(op, host, stack);
}

void convert_results(AliasScope& scope, size_t count, Stack* stack) {
  for (size_t i = stack->size() - count; i < stack->size(); i++) {
    c10::IValue& value = (*stack)[i];
    if (value.isTensor()) {
      value = scope.to_device(value.toTensor());
    } else if (value.isTensorList()) {
      std::vector<at::Tensor> tensors = value.toTensorVector();
      for (at::Tensor& tensor : tensors) {
        tensor = scope.to_device(tensor);
      }
      value = c10::List<at::Tensor>(std::move(tensors));
    }
  }
}

} // namespace

NativeKernel::NativeKernel(const c10::OperatorHandle& op, c10::DispatchKey host)
    : counter_(counter_for(c10::toString(op.operator_name()))),
      refusals_(refusals_of(c10::toString(op.operator_name()))),
      host_kernel_(host_kernel_for(c10::toString(op.operator_name()))),
      host_(host),
      keeps_bytes_(keeps_bytes(op)),
      mix_(device_mix_of(c10::toString(op.operator_name()))) {
  const auto& arguments = op.schema().arguments();
  for (size_t i = 0; i < arguments.size(); i++) {
    if (can_hold_device_value(arguments[i])) {
      convertible_.push_back(i);
      if (arguments[i].type()->str().find("Generator") != std::string::npos) {
        generator_ = i;
      }
    }
  }
  const bool has_dropout = op.operator_name().name == "aten::_lstm_mps"; // which torch does not tag
  draws_without_generator_ = !generator_ && (has_dropout || op.hasTag(at::Tag::nondeterministic_seeded));
}

void NativeKernel::operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
  refusals_.check(*stack, stack->size() - op.schema().arguments().size());
  counter_.count(Outcome::native);
  const size_t first = stack->size() - op.schema().arguments().size();
  if (mix_ == DeviceMix::indices) {
    check_indexed((*stack)[first]);
  }
  AliasScope scope;
  ArgumentConversion arguments(scope);
  for (const size_t i : convertible_) {
    arguments.convert((*stack)[first + i]);
  }
  TORCH_CHECK(
      mix_ != DeviceMix::none || !arguments.mixes_devices(),
      "Expected all tensors to be on the same device, but found at least two devices, mps:0 and cpu!");
  if (arguments.has_complex128() && (!keeps_bytes_ || converts(op, *stack, first))) {
    check_dtype_of_result(c10::ScalarType::ComplexDouble);
  }
  if (generator_ && (*stack)[first + *generator_].isNone() && scope.has_device_tensor()) {
    (*stack)[first + *generator_] = arguments.draw_from(default_generator());
  }
  {
    std::optional<LendSequenceToHost> lent;
    if (draws_without_generator_) {
      lent.emplace();
    }
    run_on_host(host_kernel_, op, host_, stack);
  }
  scope.propagate_changes();
  convert_results(scope, op.schema().returns().size(), stack);
}

} // namespace mpsmith
