// Shared state of the runtime: the dispatch that Python passes, and the running item.
#pragma once
#include <stddef.h>
#include <stdint.h>

enum Order : uint32_t { kForward = 0, kReverse = 1, kRandom = 2 };
// The first two are limits of Apple GPUs: MAX_THREADS_PER_THREADGROUP and SIMD_WIDTH of mpsmith.metal_limits.
enum : uint32_t { kMaxThreads = 1024, kSimdWidth = 32, kMaxRegions = 64, kMaxMessages = 16, kMaxLaneReads = 8 };

// Unwritten threadgroup memory: NaN in every float type, and an unusual integer.
static inline uint8_t unwritten_byte(uint64_t offset) { return offset & 1 ? 0xFF : 0xA5; }

// Same layout as msl_group in include/msl/kernel.h.
struct Group {
  uint32_t threads[3];
  uint32_t full_threads[3];
  uint32_t position[3];
  uint32_t groups[3];
  uint32_t grid[3];
  const uint64_t* arguments;
};
typedef void (*KernelFunction)(const Group*, uint32_t x_begin, uint32_t x_end, uint32_t y, uint32_t z);

// Memory that the kernel may touch through its arguments (same layout as dispatch.Region in Python).
struct Region {
  uint8_t* source;     // the caller's bytes
  uint64_t size;
  uint8_t* guarded;    // set by the runtime: a copy between guard pages
  uint32_t argument;   // the first argument bound to it, for messages
  uint32_t writable;
  uint32_t threadgroup;  // private to each threadgroup
};

struct SharedVariable {
  const uint8_t* address;
  uint64_t size;
  const char* name;
};

// Where a kernel read an inactive lane (same layout as dispatch._LaneRead in Python).
struct LaneRead {
  uint64_t place;         // the instruction in the kernel's library
  const char* operation;  // such as simd_shuffle_down
};

// Same layout as dispatch._Dispatch in Python.
struct Dispatch {
  KernelFunction kernel;
  uint32_t grid[3];
  uint32_t group[3];
  uint32_t blocking;     // the kernel has barriers: each item needs a stack
  uint32_t one_by_one;   // run items one by one, so that errors name the thread
  uint32_t checked;      // the kernel is instrumented
  uint32_t order;
  uint64_t seed;
  uint64_t* arguments;
  uint32_t argument_count;
  uint32_t region_count;
  Region* regions;
  uint8_t* shared;       // the kernel's threadgroup memory
  uint64_t shared_size;
  const SharedVariable* variables;
  uint64_t variable_count;
  char* message;         // the errors, one per line
  uint64_t message_size;
  uint32_t flush_denormals;  // flush subnormal arguments and results to zero
  uint32_t refuse_unwritten;  // checked: reading unwritten threadgroup memory is an error
  uint32_t returned_arrive;   // threads that have returned count as arrived at a barrier
  uint32_t error_count;
  uint32_t place_count;
  uint64_t places[kMaxMessages];   // for each message, the instruction in the kernel's library, or 0
  uint32_t inactive_fill;          // each byte of the value of an inactive lane
  uint32_t lane_read_count;
  LaneRead lane_reads[kMaxLaneReads];
};

extern Dispatch* g_dispatch;
extern Group g_group;
extern uint32_t g_item;          // index of the running item in its group
extern bool g_item_known;        // false inside a vectorised row
