// The one kernel behind every operator that the coverage profile calls native.
#pragma once

#include "counters.h"

#include <ATen/core/boxing/OperatorKernel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <optional>
#include <vector>

namespace mpsmith {

// Runs an operator on the simulated device: its mps arguments become CPU aliases of the same bytes, the CPU's
// kernel runs on them, and its results become mps tensors again. One object an operator, so that what is known
// from its schema is looked up once.
class NativeKernel final : public c10::OperatorKernel {
 public:
  // `host` is the key whose kernel does the work: CPU or SparseCPU.
  NativeKernel(const c10::OperatorHandle& op, c10::DispatchKey host);

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

 private:
  void run(const c10::OperatorHandle& op, torch::jit::Stack* stack);

  Counter& counter_;
  const c10::DispatchKeySet host_;
  // Positions of the arguments that can hold a tensor, a device, a generator or a storage.
  std::vector<size_t> convertible_;
  std::optional<size_t> generator_;
  bool draws_without_generator_;
  bool mixes_devices_;
};

} // namespace mpsmith
