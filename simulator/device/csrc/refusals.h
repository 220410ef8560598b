// What native operators refuse although they are native: dtypes and arguments, with the errors of a Mac.
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

// What one overload refuses. Lives for the whole process, so that its kernel looks it up once.
class Refusals {
 public:
  // Raises what the first refusal that fits these arguments raises; costs nothing while there are none.
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

// The refusals of an overload ("aten::abs.out"), made when they are first asked for.
Refusals& refusals_of(const std::string& overload);

} // namespace mpsmith
