#pragma once

namespace mpsmith {

// Registers the device with c10. Without it every mps tensor is refused with
// "PyTorch is not linked with support for mps devices".
void register_device_guard();

} // namespace mpsmith
