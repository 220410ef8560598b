// The kernels that are written out in C++, each group registered by the file that holds it.
#pragma once

#include <torch/library.h>

namespace mpsmith {

// empty, empty_strided and the copies that the CPU fallback is made of. `mps` is the MPS key of aten.
void register_factories(torch::Library& mps);

// Operators that exist on mps only, computed by the CPU: `cpu` is the CPU key of aten.
void register_mps_only_operators(torch::Library& cpu);

// Composite operators that ask which backend they run on and know no mps in this build of torch.
void register_composites(torch::Library& mps, torch::Library& autograd_mps);

} // namespace mpsmith
