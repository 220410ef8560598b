// The control operators of the simulated device: torch.ops.mpsmith_simulator.*
// Loading the library only registers these; activate() activates the device.
#include "allocator.h"
#include "autograd_threads.h"
#include "counters.h"
#include "device_guard.h"
#include "fallback.h"
#include "generator.h"
#include "hooks.h"
#include "native_kernel.h"
#include "registration.h"

#include <memory>
#include <string>
#include <vector>

namespace mpsmith {
namespace {

using Names = std::vector<std::string>;
using CallTable = std::tuple<Names, std::vector<int64_t>, std::vector<int64_t>, std::vector<int64_t>>;

// Leaked: kernels stay registered until the process ends.
torch::Library& library(const char* ns, c10::DispatchKey key) {
  return *new torch::Library(torch::Library::IMPL, ns, key, __FILE__, __LINE__);
}

torch::Library& mps_kernels() {
  static torch::Library& kernels = library("aten", c10::DispatchKey::MPS);
  return kernels;
}

torch::Library& sparse_kernels() {
  static torch::Library& kernels = library("aten", c10::DispatchKey::SparseMPS);
  return kernels;
}

c10::OperatorHandle find_operator(const std::string& overload) {
  const auto dot = overload.find('.');
  const c10::OperatorName name(
      "aten::" + overload.substr(0, dot), dot == std::string::npos ? "" : overload.substr(dot + 1));
  const auto found = c10::Dispatcher::singleton().findSchema(name);
  TORCH_CHECK(found, "No operator aten::", overload, " in this torch");
  return *found;
}

// A profile of another release registers over kernels that this torch has for mps. The dispatcher warns of that.
struct NoWarnings : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

void register_native(torch::Library& kernels, const Names& overloads, c10::DispatchKey host) {
  NoWarnings none;
  const c10::WarningUtils::WarningHandlerGuard guard(&none);
  for (const auto& overload : overloads) {
    const c10::OperatorHandle op = find_operator(overload);
    kernels.impl(
        overload.c_str(),
        op.hasComputedKernelForDispatchKey(host)
            ? torch::CppFunction::makeFromBoxedFunctor(std::make_unique<NativeKernel>(op, host))
            : torch::CppFunction::makeFromBoxedFunction<&not_simulated_kernel>());
  }
}

void activate(const Names& native, const Names& sparse, const Names& always_fallback) {
  c10::SetAllocator(c10::DeviceType::MPS, device_allocator(), 1);
  register_device_guard();
  register_hooks();
  register_mps_only_operators(library("aten", c10::DispatchKey::CPU));
  register_native(mps_kernels(), native, c10::DispatchKey::CPU);
  register_native(sparse_kernels(), sparse, c10::DispatchKey::SparseCPU);
  for (const auto& overload : always_fallback) {
    mps_kernels().impl(overload.c_str(), torch::CppFunction::makeFromBoxedFunction<&always_fallback_kernel>());
  }
  mps_kernels().impl("_slow_conv2d_forward", torch::CppFunction::makeFromBoxedFunction<&slow_convolution_kernel>());
  register_factories(mps_kernels());
  register_composites(mps_kernels(), library("aten", c10::DispatchKey::AutogradMPS));
  library("_", c10::DispatchKey::MPS).fallback(torch::CppFunction::makeFromBoxedFunction<&missing_kernel>());
}

CallTable columns(const std::vector<OperatorCalls>& calls) {
  CallTable table;
  auto& [names, native, fallback, error] = table;
  for (const auto& row : calls) {
    names.push_back(row.name);
    native.push_back(row.native);
    fallback.push_back(row.fallback);
    error.push_back(row.error);
  }
  return table;
}

} // namespace

TORCH_LIBRARY(mpsmith_simulator, m) {
  m.def(
      "activate(str[] native, str[] sparse, str[] always_fallback) -> ()",
      [](Names native, Names sparse, Names always_fallback) { activate(native, sparse, always_fallback); });
  m.def("set_torch_commit(str commit) -> ()", [](std::string commit) { set_torch_commit(std::move(commit)); });
  m.def("set_fallback_enabled(bool enabled) -> ()", [](bool enabled) { set_fallback_enabled(enabled); });
  m.def("fill_fresh_memory(bool enabled) -> ()", [](bool enabled) { fill_fresh_memory(enabled); });
  m.def("all_calls() -> (str[], int[], int[], int[])", [] { return columns(all_calls()); });
  m.def("drain_calls() -> (str[], int[], int[], int[])", [] { return columns(drain_calls()); });
  m.def("drain_fallbacks() -> str[]", [] { return drain_fallbacks(); });
  m.def("reset_counters() -> ()", [] { reset_counters(); });
  m.def("stop_autograd_threads() -> ()", [] { stop_autograd_threads(); });
}

} // namespace mpsmith
