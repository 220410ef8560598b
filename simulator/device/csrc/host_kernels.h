// Operators for which the CPU's kernel gives another dtype than a Mac's: what is computed on the host instead.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>

namespace mpsmith {

// Takes an operator's arguments, as CPU tensors, from the stack and leaves its results there.
using HostKernel = void (*)(const c10::OperatorHandle& op, c10::DispatchKeySet host, torch::jit::Stack* stack);

// The one for an overload ("aten::bincount"): the CPU's own unless this file has another.
HostKernel host_kernel_for(const std::string& overload);

} // namespace mpsmith
