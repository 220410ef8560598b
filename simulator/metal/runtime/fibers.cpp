// Stacks of waiting items: one mapping, reused.
#include "fibers.h"

#include "runtime.h"

#include <sys/mman.h>

// An odd number of cache lines apart, so that the tops of the stacks do not all fall into the same cache sets.
static const size_t kStackSpacing = 256 * 1024 + 4096 + 3 * 64;
static const size_t kStackSize = (kStackSpacing & ~(size_t)4095) - 4096;
static char* s_stacks;
static void* s_idle[kMaxThreads + 1];
static uint32_t s_idle_count, s_stack_count;
static void* s_main_stack;
static char* s_guard_pages[kMaxThreads + 1];

static void (*s_life)();

static char* stack_bottom(uint32_t k) {
  return (char*)(((uintptr_t)s_stacks + k * kStackSpacing + 4095) & ~(uintptr_t)4095);
}
static void* prime_stack(uint32_t k) {
  uintptr_t top = ((uintptr_t)s_stacks + k * kStackSpacing + kStackSize) & ~(uintptr_t)63;
  return prime(top, s_life);
}
void* take_fiber() {
  if (s_idle_count) return s_idle[--s_idle_count];
  if (!s_stacks) {
    void* m = mmap(
        nullptr, kStackSpacing * (kMaxThreads + 2), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
        -1, 0);
    s_stacks = (char*)m;
  }
  uint32_t k = s_stack_count++;
  s_guard_pages[k] = stack_bottom(k);
  mprotect(s_guard_pages[k], 4096, PROT_NONE);
  return prime_stack(k);
}
bool is_fiber_stack(const void* p) {
  return s_stacks && (const char*)p >= s_stacks && (const char*)p < s_stacks + kStackSpacing * (kMaxThreads + 2);
}
bool is_fiber_guard_page(const void* p) {
  for (uint32_t k = 0; k < s_stack_count; k++)
    if ((const char*)p >= s_guard_pages[k] && (const char*)p < s_guard_pages[k] + 4096) return true;
  return false;
}
// After an abandoned dispatch the stacks hold unfinished items: reset all.
static void reset_fibers() {
  s_idle_count = 0;
  for (uint32_t k = 0; k < s_stack_count; k++) s_idle[s_idle_count++] = prime_stack(k);
}

void run_fibers(void (*life)()) {
  s_life = life;
  switch_stack(&s_main_stack, take_fiber(), nullptr);
  if (s_idle_count != s_stack_count) reset_fibers();
}
void rest_fiber(void* next, void* value) { switch_stack(&s_idle[s_idle_count++], next, value); }
void rest_last_fiber() { rest_fiber(s_main_stack, nullptr); }
void abandon() {
  static void* lost;
  switch_stack(&lost, s_main_stack, nullptr);
  __builtin_unreachable();
}
