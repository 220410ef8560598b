// Host kernels for operators whose CPU kernel returns another dtype than a Mac's.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>

namespace mpsmith {

// Takes an operator's arguments, as CPU tensors, from the stack and leaves its results there.
using HostKernel = void (*)(const c10::OperatorHandle& op, c10::DispatchKeySet host, torch::jit::Stack* stack);

// The kernel for an overload ("aten::bincount"): the CPU's unless this file has another.
HostKernel host_kernel_for(const std::string& overload);

} // namespace mpsmith
