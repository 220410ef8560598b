// Events of the simulated device: calls are synchronous, so an event is the time of its recording.
#pragma once

#include <chrono>
#include <cstdint>

namespace mpsmith {

using EventTime = std::chrono::steady_clock::time_point;

// Events by number, for torch.mps.event.Event.
uint32_t acquire_event(bool enable_timing);
void release_event(uint32_t id);
void record_event(uint32_t id);
double milliseconds_between(uint32_t start, uint32_t end);

} // namespace mpsmith
