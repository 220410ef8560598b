#include "counters.h"

#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace mpsmith {
namespace {

struct Registry {
  std::mutex mutex;
  std::unordered_map<std::string, std::unique_ptr<Counter>> counters;
  std::vector<Counter*> called;
  std::vector<Counter*> fallen_back;
};

Registry& registry() {
  static auto* all = new Registry();
  return *all;
}

// The total is incremented before the flag is read, and a drain clears the flag before it reads the total: so a
// concurrent call is either in the total that the drain reads, or listed for the next drain.
void list_once(Counter* counter, std::atomic<bool>& listed, std::vector<Counter*>& list) {
  if (!listed.load() && !listed.exchange(true)) {
    std::lock_guard<std::mutex> lock(registry().mutex);
    list.push_back(counter);
  }
}

} // namespace

void Counter::count(Outcome outcome) {
  totals_[static_cast<size_t>(outcome)]++;
  list_once(this, listed_as_called_, registry().called);
  if (outcome == Outcome::fallback) {
    list_once(this, listed_as_fallen_back_, registry().fallen_back);
  }
}

OperatorCalls Counter::totals() const { return {name_, totals_[0], totals_[1], totals_[2]}; }

Counter& counter_for(const std::string& name) {
  std::lock_guard<std::mutex> lock(registry().mutex);
  auto& counter = registry().counters[name];
  if (!counter) {
    counter = std::make_unique<Counter>(name);
  }
  return *counter;
}

std::vector<OperatorCalls> all_calls() {
  std::lock_guard<std::mutex> lock(registry().mutex);
  std::vector<OperatorCalls> called;
  for (const auto& [name, counter] : registry().counters) {
    OperatorCalls calls = counter->totals();
    if (calls.native || calls.fallback || calls.error) {
      called.push_back(std::move(calls));
    }
  }
  return called;
}

void reset_counters() {
  std::lock_guard<std::mutex> lock(registry().mutex);
  for (const auto& [name, counter] : registry().counters) {
    counter->listed_as_called_ = false;
    counter->listed_as_fallen_back_ = false;
    counter->drained_ = {};
    for (auto& total : counter->totals_) {
      total = 0;
    }
  }
  registry().called.clear();
  registry().fallen_back.clear();
}

std::vector<OperatorCalls> drain_calls() {
  std::lock_guard<std::mutex> lock(registry().mutex);
  std::vector<OperatorCalls> drained;
  for (Counter* counter : std::exchange(registry().called, {})) {
    counter->listed_as_called_ = false;
    const OperatorCalls now = counter->totals();
    auto& before = counter->drained_;
    OperatorCalls since{now.name, now.native - before[0], now.fallback - before[1], now.error - before[2]};
    before = {now.native, now.fallback, now.error};
    // If a concurrent drain has counted the call, the counter is listed with no new calls.
    if (since.native || since.fallback || since.error) {
      drained.push_back(std::move(since));
    }
  }
  return drained;
}

std::vector<std::string> drain_fallbacks() {
  std::lock_guard<std::mutex> lock(registry().mutex);
  std::vector<std::string> names;
  for (Counter* counter : std::exchange(registry().fallen_back, {})) {
    counter->listed_as_fallen_back_ = false;
    names.push_back(counter->name_);
  }
  return names;
}

} // namespace mpsmith
