// Metal's host side, where one is loaded: what the hooks of torch ask for, and mistakes that wait to be raised.
#pragma once

namespace mpsmith {

struct MetalHost {
  void* (*command_buffer)();
  void* (*dispatch_queue)();
  void (*commit)();
  void (*synchronize)();
};

// Null where none is loaded.
const MetalHost* metal_host();

// Raises a mistake of host code that was seen where nothing could be thrown, such as in a release. Costs a load.
void raise_misuse();

} // namespace mpsmith
