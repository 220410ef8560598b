// Exact counts of the calls of every operator on the simulated device.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace mpsmith {

enum class Outcome : uint8_t { native, fallback, error };

struct OperatorCalls {
  std::string name; // "aten::add.Tensor"
  int64_t native = 0;
  int64_t fallback = 0;
  int64_t error = 0;
};

// The counts of an operator. Never destroyed; thread-safe.
class Counter {
 public:
  explicit Counter(std::string name) : name_(std::move(name)) {}

  void count(Outcome outcome);

 private:
  friend std::vector<OperatorCalls> all_calls();
  friend std::vector<OperatorCalls> drain_calls();
  friend std::vector<std::string> drain_fallbacks();
  friend void reset_counters();

  OperatorCalls totals() const;

  const std::string name_;
  std::array<std::atomic<int64_t>, 3> totals_{};
  // The last results of drain_calls(), guarded by the registry's mutex.
  std::array<int64_t, 3> drained_{};
  // True while the counter is in the list of the next drain, so that it is listed once.
  std::atomic<bool> listed_as_called_{false};
  std::atomic<bool> listed_as_fallen_back_{false};
};

// The counter of an operator ("aten::add.Tensor"), created on first use.
Counter& counter_for(const std::string& name);

// Every operator called since the last reset.
std::vector<OperatorCalls> all_calls();
void reset_counters();

// The calls since the last drain of the same kind, in order of first call.
std::vector<OperatorCalls> drain_calls();
std::vector<std::string> drain_fallbacks();

} // namespace mpsmith
