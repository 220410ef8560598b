// Operators without a kernel: the CPU fallback or the error, with the messages of the real backend.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>

namespace mpsmith {

// Whether a missing operator runs on the CPU (PYTORCH_ENABLE_MPS_FALLBACK) or raises NotImplementedError.
void set_fallback_enabled(bool enabled);

// The commit of torch, for the error message.
void set_torch_commit(std::string commit);

// An operator that is native on a Mac and cannot be computed here: counts as native, then raises.
void not_simulated_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// The fallback of the MPS key: every operator without a kernel.
void missing_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// Called for a convolution of a CPU tensor with mps weights: in the real backend this operator only raises.
void slow_convolution_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// The operators that the real backend always runs on the CPU.
void always_fallback_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack);

} // namespace mpsmith
