// Where the memory of mps tensors begins, and who else holds on to it. Host code takes such an address for its
// MTLBuffer (`tensor.storage().data()`), and a buffer that is retained outlives its tensor.
#pragma once

#include <cstddef>

namespace mpsmith {

// `bytes` of a tensor's memory begin at `data`.
void note_start(const void* data, size_t bytes);

// The tensor lets go of its memory: gives it back with `release(context)`, now or when nobody holds it any more.
void forget_start(const void* data, void (*release)(void*), void* context);

} // namespace mpsmith
