// What happens to operators without a kernel: the CPU fallback or the error, with the texts of the real backend.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>

namespace mpsmith {

// Whether a missing operator runs on the CPU (PYTORCH_ENABLE_MPS_FALLBACK) or raises NotImplementedError.
void set_fallback_enabled(bool enabled);

// The commit of torch, which the error text names.
void set_torch_commit(std::string commit);

// An operator that is native on a Mac but that nothing here can compute: counts as native, then raises.
void not_simulated_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// Behind the whole MPS key: every operator without a kernel of its own.
void missing_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// What a convolution of a CPU tensor with mps weights ends in: the real backend has this operator for its error alone.
void slow_convolution_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// The operators that the real backend hands to the CPU whatever the setting.
void always_fallback_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack);

} // namespace mpsmith
