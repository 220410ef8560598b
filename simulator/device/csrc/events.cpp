#include "events.h"

#include <c10/util/Exception.h>

#include <mutex>
#include <optional>
#include <unordered_map>

namespace mpsmith {
namespace {

struct Event {
  bool timed;
  std::optional<EventTime> recorded;
};

std::mutex events_mutex;

std::unordered_map<uint32_t, Event>& events() {
  static auto* all = new std::unordered_map<uint32_t, Event>();
  return *all;
}

Event& event_locked(uint32_t id) {
  auto found = events().find(id);
  TORCH_CHECK(
      found != events().end(), "No MPS event ", id, " on the simulated device: it was released or never acquired");
  return found->second;
}

} // namespace

uint32_t acquire_event(bool enable_timing) {
  static uint32_t last_id = 0;
  std::lock_guard<std::mutex> lock(events_mutex);
  events().emplace(++last_id, Event{enable_timing, std::nullopt});
  return last_id;
}

void release_event(uint32_t id) {
  std::lock_guard<std::mutex> lock(events_mutex);
  events().erase(id);
}

void record_event(uint32_t id) {
  std::lock_guard<std::mutex> lock(events_mutex);
  event_locked(id).recorded = std::chrono::steady_clock::now();
}

double milliseconds_between(uint32_t start, uint32_t end) {
  std::lock_guard<std::mutex> lock(events_mutex);
  const Event& from = event_locked(start);
  const Event& to = event_locked(end);
  TORCH_CHECK(from.timed && to.timed, "Events were not created with argument 'enable_timing=True'");
  TORCH_CHECK(from.recorded && to.recorded, "Both events must be recorded before the time between them is asked");
  return std::chrono::duration<double, std::milli>(*to.recorded - *from.recorded).count();
}

} // namespace mpsmith
