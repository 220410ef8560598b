#pragma once

namespace mpsmith {

// Implements torch.mps.* (memory, generators, events, synchronize): torch calls the mps backend through its hooks.
void register_hooks();

} // namespace mpsmith
