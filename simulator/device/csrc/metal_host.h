// The simulated Metal framework, if it is loaded: functions for torch's hooks, and pending errors.
#pragma once

namespace mpsmith {

struct MetalHost {
  void* (*command_buffer)();
  void* (*dispatch_queue)();
  void (*commit)();
  void (*synchronize)();
};

// Null if it is not loaded.
const MetalHost* metal_host();

// Raises an error of host code that occurred where exceptions are impossible, such as in a release. Cheap.
void raise_misuse();

} // namespace mpsmith
