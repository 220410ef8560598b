#include "autograd_threads.h"

#include <torch/csrc/autograd/engine.h>

namespace mpsmith {

void stop_autograd_threads() { torch::autograd::Engine::get_default_engine().stop(); }

} // namespace mpsmith
