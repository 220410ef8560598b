// Switches stacks. The speed of kernels with barriers depends on this.
//
// A stack at rest holds, at its top, the frame pointer and the address to go on at. A kernel that waits calls one of
// the stubs below; a function of the scheduler says which stack is next, and the stub returns *there*, straight into
// the other thread's kernel. It jumps instead of returning, because the CPU's return predictions are those of the
// stack that was left.
#pragma once
#include <stdint.h>

struct Resume {
  void* stack;
  void* value;  // what the call returns on the stack that goes on
};
// The scheduler's side of the stubs: what waits, where it called from, and its stack.
extern "C" __attribute__((visibility("hidden"))) Resume wait_at_barrier(uint32_t flags, const void* site, void* stack);
extern "C" __attribute__((visibility("hidden"))) Resume
wait_at_simdgroup_barrier(uint32_t flags, const void* site, void* stack);
extern "C" __attribute__((visibility("hidden"))) Resume wait_at_region_end(const void* site, void* stack);
extern "C" __attribute__((visibility("hidden"))) Resume
wait_at_exchange(const void* value, uint32_t size, const void* site, void* stack);
// For the runtime's own code: rests the current stack in *save and goes on with `load`, where `value` is returned.
extern "C" __attribute__((visibility("hidden"))) void switch_stack(void** save, void* load, void* value);

// A stack that starts in `entry`; `top` is a multiple of 64.
#if defined(__x86_64__)
static inline void* prime(uintptr_t top, void (*entry)()) {
  void** word = (void**)top;
  *--word = nullptr;  // the stack is aligned in `entry` as after a call
  *--word = (void*)entry;
  *--word = nullptr;  // rbp
  return word;
}
#elif defined(__aarch64__)
static inline void* prime(uintptr_t top, void (*entry)()) {
  void** word = (void**)(top - 160);
  for (int i = 0; i < 20; i++) word[i] = nullptr;
  word[1] = (void*)entry;  // x30
  return word;
}
#endif
