// Small buffers run as copies between guard pages, and a fault ends the dispatch with an error instead of the process.
//
// The end of a copy is next to an inaccessible page, so that an access past the end faults. In front of a copy, and in
// the alignment bytes after it, a pattern detects stray writes.
#include "guard.h"

#include "errors.h"
#include "fibers.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

static const uint64_t kPage = 4096;
static const uint64_t kSlotData = 1 << 20;   // the largest copy that a slot of the arena holds
static const uint64_t kSlotGap = 16 << 20;   // inaccessible address space behind each slot
static const uint64_t kSlotSpacing = kSlotData + kSlotGap;
static const uint64_t kAlignment = 32;       // of the start of a copy: that of long4, the largest of any type
static const uint64_t kFrontPattern = 256;
static const uint8_t kPattern = 0xFF;        // NaN to every float type

static uint8_t* s_arena;
static uint8_t* s_large[kMaxRegions];        // separate mappings of buffers that are too large for a slot
static uint64_t s_large_size[kMaxRegions];
static bool s_slot_open[kMaxRegions];
static bool s_active;
static pid_t s_thread;
static char s_fault_stack[64 * 1024] __attribute__((aligned(16)));
static stack_t s_old_stack;
static const int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
static struct sigaction s_old_actions[sizeof kSignals / sizeof kSignals[0]];

static uint64_t round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

static void fill_pattern(const Region& r) {
  uint64_t tail = round_up(r.size, kAlignment) - r.size;
  memset(r.guarded - kFrontPattern, kPattern, kFrontPattern);
  memset(r.guarded + r.size, kPattern, tail);
}
static void check_pattern(const Region& r) {
  uint64_t tail = round_up(r.size, kAlignment) - r.size;
  for (uint64_t i = 1; i <= kFrontPattern; i++)
    if (r.guarded[-(int64_t)i] != kPattern) {
      report(
          "out of bounds: the kernel wrote %lu bytes before the start of argument %u (%lu bytes)", (unsigned long)i,
          r.argument, (unsigned long)r.size);
      break;
    }
  for (uint64_t i = 0; i < tail; i++)
    if (r.guarded[r.size + i] != kPattern) {
      report(
          "out of bounds: the kernel wrote %lu bytes past the end of argument %u (%lu bytes)", (unsigned long)i,
          r.argument, (unsigned long)r.size);
      break;
    }
}

static void place(Region& r, uint32_t k) {
  uint64_t room = round_up(r.size, kAlignment);
  if (room + kFrontPattern <= kSlotData) {
    if (!s_arena)
      s_arena = (uint8_t*)mmap(
                    nullptr, kSlotSpacing * kMaxRegions + kSlotGap, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) +
          kSlotGap;
    uint8_t* slot = s_arena + k * kSlotSpacing;
    if (!s_slot_open[k]) {
      mprotect(slot, kSlotData, PROT_READ | PROT_WRITE);
      s_slot_open[k] = true;
    }
    r.guarded = slot + kSlotData - room;
  } else {
    uint64_t data = round_up(room + kFrontPattern, kPage);
    s_large_size[k] = data + 2 * kSlotGap;
    s_large[k] =
        (uint8_t*)mmap(nullptr, s_large_size[k], PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    mprotect(s_large[k] + kSlotGap, data, PROT_READ | PROT_WRITE);
    r.guarded = s_large[k] + kSlotGap + data - room;
  }
}

const Region* nearest_region(const uint8_t* p) {
  const Dispatch& d = *g_dispatch;
  const Region* best = nullptr;
  int64_t best_distance = kSlotGap;
  for (uint32_t k = 0; k < d.region_count; k++) {
    const Region& r = d.regions[k];
    if (!r.guarded) continue;
    int64_t distance = p < r.guarded ? r.guarded - p : p - (r.guarded + r.size);
    if (distance < best_distance) {
      best = &r;
      best_distance = distance;
    }
  }
  return best;
}

void report_out_of_bounds(const char* access, const Region& r, const uint8_t* address) {
  char who[160];
  describe_item(who, sizeof who, g_item);
  bool after = address >= r.guarded + r.size;
  unsigned long distance = after ? address - (r.guarded + r.size) : r.guarded - address;
  report(
      "out of bounds %s %lu bytes %s argument %u (%lu bytes) by %s", access, distance,
      after ? "past the end of" : "before the start of", r.argument, (unsigned long)r.size, who);
}

static void restore_handlers() {
  for (size_t i = 0; i < sizeof kSignals / sizeof kSignals[0]; i++) sigaction(kSignals[i], &s_old_actions[i], nullptr);
}

static void on_fault(int signal, siginfo_t* info, [[maybe_unused]] void* context) {
  if (!s_active || s_thread != gettid()) {  // not ours: the previous handler takes it
    restore_handlers();
    return;
  }
  char who[160];
  describe_item(who, sizeof who, g_item);
  const uint8_t* address = (const uint8_t*)info->si_addr;
  const char* access = "access";
#if defined(__x86_64__)
  g_instruction = ((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP];
  access = ((ucontext_t*)context)->uc_mcontext.gregs[REG_ERR] & 2 ? "store" : "load";
#endif
  if (signal == SIGFPE) {
    report("integer division by zero (or of the least integer by -1) by %s", who);
  } else if (signal == SIGILL || signal == SIGTRAP) {
    report("reached code that cannot run, by %s", who);
  } else if (is_fiber_guard_page(address)) {
    report("stack overflow by %s: too many or too large thread-local arrays, or recursion", who);
  } else if (info->si_code == SI_KERNEL) {  // x86 does not report the address
    report("misaligned access by %s: a vector or struct lies at an address that is no multiple of its alignment", who);
  } else if ((uintptr_t)address < kPage) {
    report("%s through a null pointer by %s", access, who);
  } else if (const Region* r = nearest_region(address)) {
    report_out_of_bounds(access, *r, address);
  } else {
    report("out of bounds %s far outside of every argument by %s", access, who);
  }
  abandon();
}

void guard_enter(Dispatch* d) {
  for (uint32_t k = 0; k < d->region_count; k++) {
    Region& r = d->regions[k];
    place(r, k);
    memcpy(r.guarded, r.source, r.size);
    fill_pattern(r);
  }
  // Arguments that point into a region move with it.
  for (uint32_t i = 0; i < d->argument_count; i++) {
    uint8_t* p = (uint8_t*)d->arguments[i];
    for (uint32_t k = 0; k < d->region_count; k++) {
      const Region& r = d->regions[k];
      if (p >= r.source && p <= r.source + r.size && (p < r.source + r.size || r.argument == i)) {
        d->arguments[i] = (uint64_t)(r.guarded + (p - r.source));
        break;
      }
    }
  }
  stack_t stack = {};
  stack.ss_sp = s_fault_stack;
  stack.ss_size = sizeof s_fault_stack;
  sigaltstack(&stack, &s_old_stack);
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  s_thread = gettid();
  s_active = true;
  for (size_t i = 0; i < sizeof kSignals / sizeof kSignals[0]; i++) sigaction(kSignals[i], &action, &s_old_actions[i]);
}

void guard_leave(Dispatch* d) {
  restore_handlers();
  s_active = false;
  sigaltstack(&s_old_stack, nullptr);
  if (!d->error_count)
    for (uint32_t k = 0; k < d->region_count; k++) check_pattern(d->regions[k]);
  for (uint32_t k = 0; k < d->region_count; k++) {
    const Region& r = d->regions[k];
    if (r.writable && !d->error_count) memcpy(r.source, r.guarded, r.size);
    if (s_large[k]) {
      munmap(s_large[k], s_large_size[k]);
      s_large[k] = nullptr;
    }
  }
}
