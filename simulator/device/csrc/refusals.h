// Refused dtypes and arguments of native operators, with the errors of a Mac.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace mpsmith {

struct Refusal;

// The refusals of an overload. Never destroyed, so that its kernel looks it up once.
class Refusals {
 public:
  // Raises the error of the first refusal that applies to these arguments.
  void check(const torch::jit::Stack& stack, size_t first) const {
    if (any_.load(std::memory_order_relaxed)) {
      check_all(stack, first);
    }
  }

  void add(std::shared_ptr<const Refusal> refusal);
  void clear();

 private:
  void check_all(const torch::jit::Stack& stack, size_t first) const;

  std::atomic<bool> any_{false};
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<const Refusal>> refusals_;
};

// The refusals of an overload ("aten::abs.out"), created on first use.
Refusals& refusals_of(const std::string& overload);

} // namespace mpsmith
