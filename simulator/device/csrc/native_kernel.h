// The kernel of every operator that the coverage profile lists as native.
#pragma once

#include "counters.h"
#include "host_kernels.h"
#include "refusals.h"

#include <ATen/core/boxing/OperatorKernel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <optional>
#include <vector>

namespace mpsmith {

// The CPU tensors that an operator accepts next to those of the device.
enum class DeviceMix : uint8_t { none, copies, indices };

// Runs an operator on the simulated device: its mps arguments become CPU aliases of the same bytes, the CPU's
// kernel runs on them, and its results become mps tensors again. One object for each operator, so that
// its schema is analyzed once.
class NativeKernel final : public c10::OperatorKernel {
 public:
  // `host` is the key whose kernel does the work: CPU or SparseCPU.
  NativeKernel(const c10::OperatorHandle& op, c10::DispatchKey host);

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

 private:
  Counter& counter_;
  const Refusals& refusals_;
  const HostKernel host_kernel_;
  const c10::DispatchKeySet host_;
  const bool keeps_bytes_;
  const DeviceMix mix_;
  // Positions of the arguments that can hold a tensor, a device, a generator or a storage.
  std::vector<size_t> convertible_;
  std::optional<size_t> generator_;
  bool draws_without_generator_;
};

} // namespace mpsmith
