// What the parts of the runtime share: the dispatch that Python hands over, the items of a threadgroup, the errors.
#pragma once
#include <stddef.h>
#include <stdint.h>

enum Order : uint32_t { kForward = 0, kReverse = 1, kRandom = 2 };
// The first two are limits of Apple GPUs: MAX_THREADS_PER_THREADGROUP and SIMD_WIDTH of mpsmith.metal_limits.
enum : uint32_t { kMaxThreads = 1024, kSimdWidth = 32, kMaxRegions = 64, kMaxMessages = 16, kMaxLaneReads = 8 };

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
  uint32_t argument;   // the first argument that is bound to it, for messages
  uint32_t writable;
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
  uint32_t blocking;     // the kernel waits somewhere: each item needs a stack of its own
  uint32_t one_by_one;   // run items singly, so that errors can name the thread
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
  char* message;         // receives the errors, one a line
  uint64_t message_size;
  uint32_t flush_denormals;  // subnormal floats count as zero, as arguments and as results
  uint32_t error_count;
  uint32_t place_count;
  uint64_t places[kMaxMessages];   // for each message, the instruction in the kernel's library, or 0
  uint32_t inactive_fill;          // each byte of what an inactive lane holds
  uint32_t lane_read_count;
  LaneRead lane_reads[kMaxLaneReads];
};

extern Dispatch* g_dispatch;
extern Group g_group;
extern uint32_t g_item;          // index of the running item in its group
extern bool g_item_known;        // false inside a vectorised row

// The instruction that the next messages are about; 0 where it is not known.
extern uint64_t g_instruction;
// Adds a line to the message; the first few are kept, all are counted.
void report(const char* format, ...) __attribute__((format(printf, 1, 2)));
// " by thread (x, y, z) of threadgroup (x, y, z)", written into `buffer`.
const char* describe_item(char* buffer, size_t size, uint32_t item);
// Leaves the dispatch for good: nothing of the kernel runs any more.
[[noreturn]] void abandon();

// guard.cpp
void guard_enter(Dispatch* d);   // copies the regions and turns faults into errors
void guard_leave(Dispatch* d);
// The region in whose surroundings the address lies, or null.
const Region* nearest_region(const uint8_t* address);
void report_out_of_bounds(const char* access, const Region& region, const uint8_t* address);
bool is_fiber_stack(const void* address);
bool is_fiber_guard_page(const void* address);

// checker.cpp
void checker_begin(Dispatch* d);
void checker_group_end();
void checker_group_begin();
void checker_threadgroup_barrier(uint32_t flags);
void checker_simdgroup_barrier(uint32_t simdgroup, uint32_t flags);
void checker_end();
