// The interface between the Metal framework and the kernel runner: plain C, which Python implements through ctypes.
#pragma once
#include <stdint.h>

// A bound buffer: `address` is inside the `size` bytes from `base` on; the number of its element type, 0 if unknown; and
// whether setBytes copied it.
struct MetalBinding { uint64_t index, address, base, size, element_type, by_value; };
// A buffer parameter of a kernel: `size` bytes are read through a reference; 0 for a pointer.
struct MetalParameter {
  uint64_t index, size;
  const char* name;
};
struct MetalKernel {
  int64_t number;
  uint64_t max_threads, threadgroup_bytes;
  uint64_t parameter_count;
  const MetalParameter* parameters; // never freed
};
// A function constant: its index or, where that is -1, its name; the value as Metal source.
struct MetalConstant {
  int64_t index;
  const char *name, *value;
};
constexpr uint64_t kThreadgroupSlots = 16;
struct MetalLaunch {
  uint64_t grid[3], group[3];
  uint64_t threadgroup_bytes[kThreadgroupSlots];
  uint64_t binding_count;
  const MetalBinding* bindings;
};
// Each returns null, or an error message that is valid until the next call in the same thread.
struct MetalPrograms {
  const char* (*compile)(const char* source, uint64_t bytes, int64_t* library);
  const char* (*names)(int64_t library, const char** names); // one a line
  const char* (*specialize)(int64_t library, const MetalConstant* constants, uint64_t count, int64_t* specialized);
  const char* (*kernel)(int64_t library, const char* name, MetalKernel* kernel);
  const char* (*launch)(int64_t kernel, const MetalLaunch* launch);
  const char* (*load)(const void* compiled, uint64_t bytes, int64_t* library);
};
extern MetalPrograms metal_programs;
