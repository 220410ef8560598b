#pragma once

namespace mpsmith {

// Tells c10 how to switch to the simulated device. Without it every mps tensor is refused with
// "PyTorch is not linked with support for mps devices".
void register_device_guard();

} // namespace mpsmith
