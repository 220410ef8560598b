#pragma once

namespace mpsmith {

// Ends the autograd engine's device threads; no backward on the device can follow. For the end of the process:
// a thread that still holds the last graph when python goes away aborts the process.
void stop_autograd_threads();

} // namespace mpsmith
