// The dtypes that native operators refuse, as a Mac's do for which PyTorch's own tests expect no support.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <atomic>

namespace mpsmith {

// Whether any operator refuses anything: all that a call costs while none does.
extern std::atomic<bool> dtypes_refused;

// Raises where the first mps tensor among the arguments has a dtype that the operator refuses. The first one is what
// the operator computes with; others may be indices or masks.
void check_dtype(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

} // namespace mpsmith
