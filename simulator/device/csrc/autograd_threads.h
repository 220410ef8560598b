#pragma once

namespace mpsmith {

// Ends the autograd engine's device threads; no backward on the device can follow. Needed at the end of the process: a
// thread that holds a graph when Python finalizes aborts the process.
void stop_autograd_threads();

} // namespace mpsmith
