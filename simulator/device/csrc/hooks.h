#pragma once

namespace mpsmith {

// Answers torch.mps.* (memory, generators, events, synchronize): torch reaches the mps backend through its hooks.
void register_hooks();

} // namespace mpsmith
