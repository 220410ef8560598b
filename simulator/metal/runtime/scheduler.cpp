// Runs the items (threads) of a dispatch, threadgroup after threadgroup, on one CPU thread.
//
// An item that never waits needs no separate stack. So items start one after another on the running fiber, and another
// fiber continues with the rest when one waits. A waiting item switches directly to the next one: one stack switch for
// each wait. A SIMD group runs until all its lanes wait. Then the lanes that wait at one call site exchange values, the
// lowest address first. So diverged lanes reconverge.
#include "checker.h"
#include "errors.h"
#include "fibers.h"
#include "guard.h"

#include <string.h>

struct alignas(64) Exchange { // same layout as msl_exchange_t in include/msl/sync.h; holds values of any alignment
  uint32_t mask, folded;
  char pad[56];
  char values[kSimdWidth * 64];
  char folds[8 * 64];
};

struct Item {
  void* stack;
  const void* site; // the call it waits at
  const void* value;
  uint32_t size;
  uint32_t flags;
  uint32_t depth; // enclosing regions (msl_region in include/msl/sync.h)
};
// One bit for each lane; a lane is in exactly one of the masks.
struct SimdGroup {
  uint32_t fresh, ready, at_barrier, at_exchange, at_simd_barrier, at_region_end, done;
  Exchange exchange;
};

extern "C" __attribute__((visibility("default"))) uint32_t msl_current_lane = 0;

static Item s_items[kMaxThreads + 1];
static SimdGroup s_simdgroups[kMaxThreads / kSimdWidth];
static uint32_t s_simdgroup_order[kMaxThreads / kSimdWidth];
static uint32_t s_simdgroup_count, s_simdgroup_turn, s_active;
static SimdGroup* s_current; // s_simdgroups[s_active]
static uint32_t s_thread_count;
static uint64_t s_group_count, s_group_turn;
static uint64_t s_random;
static bool s_shuffled; // lanes run in another order

// ---------------------------------------------------------------------------------------------------- order
static uint32_t random_below(uint32_t n) { // xorshift64*
  s_random ^= s_random >> 12;
  s_random ^= s_random << 25;
  s_random ^= s_random >> 27;
  return (uint32_t)((s_random * 2685821657736338717ull) >> 33) % n;
}
static inline uint32_t pick_lane(uint32_t mask) {
  if (g_dispatch->order == kForward) return __builtin_ctz(mask);
  if (g_dispatch->order == kReverse) return 31 - __builtin_clz(mask);
  for (uint32_t skip = random_below(__builtin_popcount(mask)); skip; skip--) mask &= mask - 1;
  return __builtin_ctz(mask);
}
static uint32_t s_group_stride; // coprime to the number of groups: a cheap random order of them
static uint64_t group_in_turn(uint64_t turn) {
  if (g_dispatch->order == kForward) return turn;
  if (g_dispatch->order == kReverse) return s_group_count - 1 - turn;
  return (turn * s_group_stride + g_dispatch->seed) % s_group_count;
}
static void choose_group_stride() {
  s_group_stride = 1;
  for (uint32_t k = 7919; k > 1; k--) {
    uint64_t a = s_group_count, b = k;
    while (b) {
      uint64_t r = a % b;
      a = b;
      b = r;
    }
    if (a == 1) {
      s_group_stride = k;
      return;
    }
  }
}
static void order_simdgroups() {
  uint32_t n = s_simdgroup_count;
  for (uint32_t i = 0; i < n; i++) s_simdgroup_order[i] = g_dispatch->order == kReverse ? n - 1 - i : i;
  if (g_dispatch->order == kRandom)
    for (uint32_t i = n; i > 1; i--) {
      uint32_t j = random_below(i), t = s_simdgroup_order[i - 1];
      s_simdgroup_order[i - 1] = s_simdgroup_order[j];
      s_simdgroup_order[j] = t;
    }
}

// ---------------------------------------------------------------------------------------------------- groups
static void activate(uint32_t simdgroup) {
  s_active = simdgroup;
  s_current = s_simdgroups + simdgroup;
}
static void poison(uint8_t* memory, uint64_t size) {
  for (uint64_t i = 0; i < size; i++) memory[i] = unwritten_byte(i);
}
// Makes missing writes visible.
static void poison_threadgroup_memory() {
  const Dispatch& d = *g_dispatch;
  poison(d.shared, d.shared_size);
  for (uint32_t k = 0; k < d.region_count; k++)
    if (d.regions[k].threadgroup) poison(d.regions[k].guarded, d.regions[k].size);
}
static bool begin_group() {
  if (g_dispatch->checked) checker_group_end();
  if (s_group_turn == s_group_count) return false;
  const Dispatch& d = *g_dispatch;
  uint64_t k = group_in_turn(s_group_turn++);
  Group& g = g_group;
  g.position[0] = k % g.groups[0];
  g.position[1] = k / g.groups[0] % g.groups[1];
  g.position[2] = k / g.groups[0] / g.groups[1];
  s_thread_count = 1;
  for (int i = 0; i < 3; i++) {
    uint32_t rest = d.grid[i] - g.position[i] * d.group[i];
    g.threads[i] = rest < d.group[i] ? rest : d.group[i];
    s_thread_count *= g.threads[i];
  }
  poison_threadgroup_memory();
  if (d.checked) checker_group_begin();
  if (!d.blocking) return true;
  s_simdgroup_count = (s_thread_count + kSimdWidth - 1) / kSimdWidth;
  for (uint32_t i = 0; i < s_simdgroup_count; i++) {
    SimdGroup& s = s_simdgroups[i];
    uint32_t lanes = s_thread_count - i * kSimdWidth;
    s.fresh = lanes >= kSimdWidth ? ~0u : (1u << lanes) - 1;
    s.ready = s.at_barrier = s.at_exchange = s.at_simd_barrier = s.at_region_end = s.done = 0;
  }
  order_simdgroups();
  s_simdgroup_turn = 0;
  activate(s_simdgroup_order[0]);
  return true;
}

// All lanes of the SIMD group wait or are done: the innermost go on. Lanes communicate before others leave the
// enclosing region; at the same depth, the lowest site comes first.
static void resolve(SimdGroup& s) {
  Item* lanes = s_items + s_active * kSimdWidth;
  uint32_t depth = 0;
  for (uint32_t m = s.at_exchange | s.at_simd_barrier | s.at_region_end; m; m &= m - 1) {
    uint32_t other = lanes[__builtin_ctz(m)].depth;
    if (other > depth) depth = other;
  }
  uint32_t innermost = 0;
  for (uint32_t m = s.at_exchange | s.at_simd_barrier | s.at_region_end; m; m &= m - 1)
    if (lanes[__builtin_ctz(m)].depth == depth) innermost |= m & -m;
  uint32_t waiting = (s.at_exchange | s.at_simd_barrier) & innermost;
  if (!waiting) { // all lanes are at the end of the region
    for (uint32_t m = innermost; m; m &= m - 1) lanes[__builtin_ctz(m)].depth--;
    s.at_region_end &= ~innermost;
    s.ready = innermost;
    return;
  }
  const void* site = (const void*)~(uintptr_t)0;
  for (uint32_t m = waiting; m; m &= m - 1) {
    const void* other = lanes[__builtin_ctz(m)].site;
    if (other < site) site = other;
  }
  uint32_t meet = 0;
  for (uint32_t m = waiting; m; m &= m - 1) {
    uint32_t lane = __builtin_ctz(m);
    if (lanes[lane].site == site) meet |= 1u << lane;
  }
  uint32_t first = __builtin_ctz(meet);
  if (s.at_exchange >> first & 1) {
    s.exchange.mask = meet;
    s.exchange.folded = 0;
    uint32_t size = lanes[first].size;
    for (uint32_t m = meet; m; m &= m - 1) {
      uint32_t lane = __builtin_ctz(m);
      if (size == 4) memcpy(s.exchange.values + lane * 4, lanes[lane].value, 4);
      else memcpy(s.exchange.values + lane * size, lanes[lane].value, size);
    }
    // The value of an inactive lane is undefined. On Apple silicon it was measured as zero; checked mode tries others.
    int fill = (int)g_dispatch->inactive_fill;
    for (uint32_t m = ~meet; m; m &= m - 1) memset(s.exchange.values + __builtin_ctz(m) * size, fill, size);
    if (g_dispatch->checked) checker_exchange(s_active, meet);
  } else if (g_dispatch->checked) {
    checker_simdgroup_barrier(s_active, lanes[first].flags);
  }
  s.at_exchange &= ~meet;
  s.at_simd_barrier &= ~meet;
  s.ready = meet;
}

// All SIMD groups wait at a threadgroup barrier or are done: open the barrier.
static bool open_barrier() {
  uint32_t waiting = 0, done = 0;
  const Item* first = nullptr;
  bool same_site = true;
  for (uint32_t i = 0; i < s_simdgroup_count; i++) {
    SimdGroup& s = s_simdgroups[i];
    waiting += __builtin_popcount(s.at_barrier);
    done += __builtin_popcount(s.done);
    for (uint32_t m = s.at_barrier; m; m &= m - 1) {
      const Item* item = s_items + i * kSimdWidth + __builtin_ctz(m);
      if (!first) first = item;
      if (item->site != first->site) same_site = false;
    }
    s.ready = s.at_barrier;
    s.at_barrier = 0;
  }
  if (!waiting) return false;
  if (g_dispatch->one_by_one || g_dispatch->checked) {
    const uint32_t* p = g_group.position;
    g_instruction = (uint64_t)first->site - 1;
    if (done && !g_dispatch->returned_arrive)
      report(
          "diverged barrier: %u of %u threads of threadgroup (%u, %u, %u) returned before a threadgroup_barrier "
          "that the others wait at",
          done, s_thread_count, p[0], p[1], p[2]);
    if (!same_site)
      report(
          "diverged barrier: threads of threadgroup (%u, %u, %u) wait at different threadgroup_barrier calls", p[0],
          p[1], p[2]);
    if (g_dispatch->checked) checker_threadgroup_barrier(first->flags);
  }
  s_simdgroup_turn = 0;
  activate(s_simdgroup_order[0]);
  return true;
}

// Makes g_item an item that can run; false when the whole dispatch is done.
static inline bool advance() {
  for (;;) {
    SimdGroup& s = *s_current;
    if (uint32_t mask = s.ready | s.fresh) {
      uint32_t lane = pick_lane(mask);
      msl_current_lane = lane;
      g_item = s_active * kSimdWidth + lane;
      return true;
    }
    if (s.at_exchange | s.at_simd_barrier | s.at_region_end) {
      resolve(s);
    } else if (++s_simdgroup_turn < s_simdgroup_count) {
      activate(s_simdgroup_order[s_simdgroup_turn]);
    } else if (!open_barrier() && !begin_group()) {
      return false;
    }
  }
}

static inline __attribute__((always_inline)) void run_item(uint32_t item) {
  const Group& g = g_group;
  uint32_t x = item % g.threads[0], rest = item / g.threads[0];
  s_items[item].depth = 0;
  g_dispatch->kernel(&g, x, x + 1, rest % g.threads[1], rest / g.threads[1]);
}

static void run_rows() {
  const Group& g = g_group;
  for (uint32_t z = 0; z < g.threads[2]; z++)
    for (uint32_t y = 0; y < g.threads[1]; y++) g_dispatch->kernel(&g, 0, g.threads[0], y, z);
}

static void run_without_waits() {
  const Dispatch& d = *g_dispatch;
  bool rows = !d.one_by_one && !d.checked && d.order == kForward;
  g_item_known = !rows;
  while (begin_group()) {
    if (rows) {
      run_rows();
      continue;
    }
    uint32_t start = d.order == kRandom ? random_below(s_thread_count) : 0;
    for (uint32_t i = 0; i < s_thread_count; i++) {
      uint32_t turn = (i + start) % s_thread_count;
      g_item = d.order == kForward ? turn : s_thread_count - 1 - turn;
      run_item(g_item);
    }
  }
}

// The main loop of a fiber: run new items while there are any, then switch to waiting ones.
static void fiber_main() {
  for (;;) {
    if (!g_dispatch->blocking) {
      run_without_waits();
    } else {
      uint32_t item = g_item;
      s_simdgroups[item / kSimdWidth].fresh &= ~(1u << item % kSimdWidth);
      run_item(item);
      s_simdgroups[item / kSimdWidth].done |= 1u << item % kSimdWidth;
      if (advance()) {
        SimdGroup& s = s_simdgroups[g_item / kSimdWidth];
        uint32_t bit = 1u << g_item % kSimdWidth;
        if (s.fresh & bit) continue;
        s.ready &= ~bit;
        rest_fiber(s_items[g_item].stack, &s.exchange);
        continue;
      }
    }
    rest_last_fiber();
  }
}

// The next stack when the running item waits.
static inline Resume next_to_run() {
  SimdGroup& mine = *s_current;
  if (!s_shuffled && mine.ready) { // the usual case: the next lane waits, too
    uint32_t lane = __builtin_ctz(mine.ready);
    mine.ready &= mine.ready - 1;
    msl_current_lane = lane;
    g_item = (g_item & ~31u) + lane;
    return {s_items[g_item].stack, &mine.exchange};
  }
  advance(); // never false: at least the calling item waits
  SimdGroup& s = *s_current;
  uint32_t bit = 1u << g_item % kSimdWidth;
  if (s.fresh & bit) return {take_fiber(), nullptr};
  s.ready &= ~bit;
  return {s_items[g_item].stack, &s.exchange};
}

// ---------------------------------------------------------------------------------------------------- kernels wait
static inline Item& rest(const void* site, void* stack) {
  Item& item = s_items[g_item];
  item.stack = stack;
  item.site = site;
  return item;
}
Resume wait_at_barrier(uint32_t flags, const void* site, void* stack) {
  rest(site, stack).flags = flags;
  s_current->at_barrier |= 1u << g_item % kSimdWidth;
  return next_to_run();
}
Resume wait_at_simdgroup_barrier(uint32_t flags, const void* site, void* stack) {
  rest(site, stack).flags = flags;
  s_current->at_simd_barrier |= 1u << g_item % kSimdWidth;
  return next_to_run();
}
Resume wait_at_region_end(const void* site, void* stack) {
  rest(site, stack);
  s_current->at_region_end |= 1u << g_item % kSimdWidth;
  return next_to_run();
}
extern "C" __attribute__((visibility("default"))) void msl_region_enter() { s_items[g_item].depth++; }
Resume wait_at_exchange(const void* value, uint32_t size, const void* site, void* stack) {
  Item& item = rest(site, stack);
  item.value = value;
  item.size = size;
  s_current->at_exchange |= 1u << g_item % kSimdWidth;
  return next_to_run();
}

extern "C" __attribute__((visibility("default"))) const Group* msl_here(uint32_t* index) {
  *index = g_item;
  return &g_group;
}

// ---------------------------------------------------------------------------------------------------- denormals
// How the processor rounds and treats subnormal numbers; a fiber switch leaves it alone.
#if defined(__x86_64__)
typedef uint32_t FloatMode;
static FloatMode float_mode() { return __builtin_ia32_stmxcsr(); }
static void set_float_mode(FloatMode mode) { __builtin_ia32_ldmxcsr(mode); }
static FloatMode flushing(FloatMode mode) { return mode | 0x8040; } // flush to zero, denormals are zero
#elif defined(__aarch64__)
typedef uint64_t FloatMode;
static FloatMode float_mode() {
  FloatMode mode;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
static void set_float_mode(FloatMode mode) { asm volatile("msr fpcr, %0" ::"r"(mode)); }
static FloatMode flushing(FloatMode mode) { return mode | 1u << 24; }
#endif

// ---------------------------------------------------------------------------------------------------- Python calls
// Runs one dispatch; errors are in d->message. Not re-entrant: the caller holds a lock.
extern "C" __attribute__((visibility("default"))) void msl_dispatch(Dispatch* d) {
  g_dispatch = d;
  d->error_count = 0;
  d->place_count = 0;
  d->lane_read_count = 0;
  g_instruction = 0;
  d->message[0] = 0;
  Group& g = g_group;
  s_group_count = 1;
  for (int i = 0; i < 3; i++) {
    g.grid[i] = d->grid[i];
    g.full_threads[i] = d->group[i];
    g.groups[i] = (d->grid[i] + d->group[i] - 1) / d->group[i];
    s_group_count *= g.groups[i];
  }
  if (!s_group_count) return;
  s_group_turn = 0;
  s_shuffled = d->order != kForward;
  s_random = d->seed * 2654435761u + 88172645463325252ull;
  if (d->order == kRandom) choose_group_stride();
  guard_enter(d);
  g.arguments = d->arguments;
  if (d->checked) checker_begin(d);
  g_item_known = true;
  bool start = true;
  if (d->blocking) start = begin_group() && advance();
  FloatMode mode = float_mode();
  if (d->flush_denormals) set_float_mode(flushing(mode));
  if (start) run_fibers(fiber_main);
  set_float_mode(mode); // also after a fault: the handler resets it
  if (d->checked) checker_end();
  guard_leave(d);
}
