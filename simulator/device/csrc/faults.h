// Faults that an operator of the simulated device commits on purpose, so that the auditor can be tested with them.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <atomic>
#include <functional>

namespace mpsmith {

// Whether any fault is armed: all that a call costs while none is.
extern std::atomic<bool> faults_armed;

// Runs `kernel`, which takes its arguments from the stack and leaves its results there, with the fault that is armed
// for `op`. False, and nothing was run, where none is armed or its condition does not hold for these arguments.
bool run_with_fault(const c10::OperatorHandle& op, torch::jit::Stack* stack, const std::function<void()>& kernel);

} // namespace mpsmith
