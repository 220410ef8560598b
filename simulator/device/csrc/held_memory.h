// The memory of mps tensors as MTLBuffers, with reference counts. Host code casts the start address
// (`tensor.storage().data()`) to its MTLBuffer, and a retained buffer outlives its tensor.
#pragma once

#include <cstddef>

namespace mpsmith {

// `bytes` of a tensor's memory begin at `data`.
void note_start(const void* data, size_t bytes);

// The tensor frees its memory: calls `release(context)`, now or at the last release.
void forget_start(const void* data, void (*release)(void*), void* context);

} // namespace mpsmith
