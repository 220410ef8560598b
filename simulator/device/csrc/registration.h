// Registration of the kernels implemented in C++, by file.
#pragma once

#include <torch/library.h>

namespace mpsmith {

// empty, empty_strided and the copies that the CPU fallback needs. `mps` is the MPS key of aten.
void register_factories(torch::Library& mps);

// Operators that exist on mps only, computed by the CPU: `cpu` is the CPU key of aten.
void register_mps_only_operators(torch::Library& cpu);

// Composite operators that depend on the backend and do not support mps in this build of torch.
void register_composites(torch::Library& mps, torch::Library& autograd_mps);

} // namespace mpsmith
