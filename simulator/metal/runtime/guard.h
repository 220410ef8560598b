// Small buffers run as copies between guard pages, and a fault ends the dispatch with an error instead of the process.
#pragma once
#include "runtime.h"

void guard_enter(Dispatch* d);  // copies the regions and turns faults into errors
void guard_leave(Dispatch* d);
// The region next to the address, or null.
const Region* nearest_region(const uint8_t* address);
void report_out_of_bounds(const char* access, const Region& region, const uint8_t* address);
