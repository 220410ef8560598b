// Allocators of host memory for both devices, with exact statistics.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>

namespace mpsmith {

// Allocates memory labelled mps:0.
c10::Allocator* device_allocator();

// Allocates the same memory labelled cpu, for CPU aliases of mps tensors: an operator may grow an alias, and the mps
// tensor then takes the new block.
c10::Allocator* alias_allocator();

// The bytes of a host storage as an mps:0 pointer (counted as device memory), or the bytes of a device storage as
// a cpu pointer (not counted again). The storage lives as long as the pointer.
c10::DataPtr device_pointer_to(const c10::Storage& host);
c10::DataPtr host_pointer_to(const c10::Storage& device);

// Bytes of live mps tensors.
size_t allocated_bytes();

// Physical memory of this machine: the simulated device's "recommended maximum".
size_t recommended_max_bytes();

// Refuse to exceed this fraction of recommended_max_bytes(); 0 lifts the limit (as PYTORCH_MPS_HIGH_WATERMARK_RATIO).
void set_memory_fraction(double fraction);

// Fill new memory with one bits (NaN, -1 and true) instead of zeros, which makes unwritten values visible.
void fill_fresh_memory(bool enabled);

} // namespace mpsmith
