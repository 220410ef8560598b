// Events of the simulated device: everything is synchronous, so an event is the time at which it was recorded.
#pragma once

#include <chrono>
#include <cstdint>

namespace mpsmith {

using EventTime = std::chrono::steady_clock::time_point;

// Events that torch.mps.event.Event names by number.
uint32_t acquire_event(bool enable_timing);
void release_event(uint32_t id);
void record_event(uint32_t id);
double milliseconds_between(uint32_t start, uint32_t end);

} // namespace mpsmith
