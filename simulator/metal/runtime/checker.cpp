// The `checked` mode: every load and store of an instrumented kernel comes here.
//
// Each four bytes of shared memory have a record of their last accesses; each two bytes or each byte, once a kernel
// accesses so few. Two accesses conflict if at least one writes, they are by different items, they are not both atomic
// and they are not ordered. A threadgroup_barrier with the right mem_flags orders accesses within a threadgroup, a
// simdgroup_barrier those within a SIMD group. An exchange of values in a SIMD group, such as simd_sum, orders loads
// before it and stores after it. Accesses of two threadgroups are never ordered. Two stores of equal bytes are not a
// race. A hook runs before its store, so the next hook compares the bytes.
#include "checker.h"

#include "errors.h"
#include "fibers.h"
#include "guard.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct Access {
  uint32_t group; // threadgroup in turn + 1; 0: none yet
  uint32_t item;
  uint32_t barrier_epoch; // threadgroup barriers passed, of the matching mem_flags
  uint32_t simdgroup_epoch;
  uint32_t exchange; // the last one in which the item took part
  uint32_t place; // of the instruction in the kernel's library
};
struct Record {
  Access write;
  Access atomic;
  Access read;
  Access other_read; // by another item than `read`
  Access far_read; // by an item of another SIMD group than `read`
};
struct Memory {
  const uint8_t* base;
  uint64_t size;
  Record* records;
  uint32_t shift; // a record is of 1 << shift bytes
  const char* name; // of a threadgroup variable; null for an argument
  uint32_t argument;
  bool shared;
};

enum { kMaxVariables = 64, kMaxRecorded = 4 << 20 };
static Memory s_memory[kMaxRegions + kMaxVariables];
static uint32_t s_memory_count;
static bool s_running;
static uint64_t s_kernel_base;
static uint32_t s_turn;
static uint32_t s_device_epoch, s_shared_epoch;
static uint32_t s_device_simd_epoch[kMaxThreads / kSimdWidth], s_shared_simd_epoch[kMaxThreads / kSimdWidth];
static uint32_t s_exchange, s_exchange_of_item[kMaxThreads];
static const uint8_t* s_shared_begin;
static const uint8_t* s_shared_end;

// A store over bytes of another item's unordered store: a race if it changes one of them.
enum { kLargestAccess = 16 };
struct StoreOverStore {
  Memory* memory; // null: there is none
  uint64_t offset;
  uint32_t size;
  uint64_t instruction;
  Access now;
  Access before[kLargestAccess]; // by record; group 0: no conflict
  uint8_t bytes[kLargestAccess];
};
static StoreOverStore s_unsettled;

// A load of unwritten threadgroup memory. If another item writes there before the next barrier, it is reported as a
// race; so the report waits until then.
struct UnwrittenLoad {
  const Memory* memory; // null: it is a race
  uint64_t offset;
  uint32_t size;
  uint32_t item;
  uint64_t instruction;
};
static UnwrittenLoad s_unwritten[kMaxMessages];
static uint32_t s_unwritten_count;

static void add_memory(const uint8_t* base, uint64_t size, const char* name, uint32_t argument, bool shared) {
  if (s_memory_count == kMaxRegions + kMaxVariables) return;
  Memory& m = s_memory[s_memory_count++];
  m.base = base;
  m.size = size;
  // A record takes 120 bytes: large buffers are only checked for bounds.
  m.shift = 2;
  m.records = size <= kMaxRecorded ? (Record*)calloc((size >> 2) + 1, sizeof(Record)) : nullptr;
  m.name = name;
  m.argument = argument;
  m.shared = shared;
}

static void split_records(Memory& m, uint32_t shift) {
  uint64_t count = (m.size >> shift) + 1;
  auto* split = (Record*)calloc(count, sizeof(Record));
  for (uint64_t k = 0; k < count; k++) {
    const Record& whole = m.records[k << shift >> m.shift];
    if (whole.write.group || whole.atomic.group || whole.read.group) split[k] = whole;
  }
  free(m.records);
  m.records = split;
  m.shift = shift;
}

void checker_begin(Dispatch* d) {
  s_running = true;
  Dl_info kernel;
  s_kernel_base = dladdr((void*)d->kernel, &kernel) ? (uint64_t)kernel.dli_fbase : 0;
  s_memory_count = 0;
  s_turn = 0;
  s_unwritten_count = 0;
  s_exchange = 0;
  memset(s_exchange_of_item, 0, sizeof s_exchange_of_item);
  s_device_epoch = s_shared_epoch = 1;
  for (uint32_t k = 0; k < d->region_count; k++)
    add_memory(d->regions[k].guarded, d->regions[k].size, nullptr, d->regions[k].argument, d->regions[k].threadgroup);
  for (uint64_t k = 0; k < d->variable_count; k++)
    if (d->variables[k].address)
      add_memory(d->variables[k].address, d->variables[k].size, d->variables[k].name, 0, true);
  s_shared_begin = d->shared;
  s_shared_end = d->shared + d->shared_size;
}
static void settle_store();
static void settle_loads(uint32_t first_item, uint32_t end_item);
void checker_group_end() {
  settle_store();
  settle_loads(0, kMaxThreads);
}
void checker_group_begin() {
  s_turn++;
  s_device_epoch++;
  s_shared_epoch++;
}
void checker_threadgroup_barrier(uint32_t flags) {
  settle_loads(0, kMaxThreads);
  if (flags & 1) s_device_epoch++;
  if (flags & 2) s_shared_epoch++;
}
void checker_simdgroup_barrier(uint32_t simdgroup, uint32_t flags) {
  settle_loads(simdgroup * kSimdWidth, (simdgroup + 1) * kSimdWidth);
  if (flags & 1) s_device_simd_epoch[simdgroup]++;
  if (flags & 2) s_shared_simd_epoch[simdgroup]++;
}
void checker_exchange(uint32_t simdgroup, uint32_t lanes) {
  s_exchange++;
  for (uint32_t m = lanes; m; m &= m - 1) s_exchange_of_item[simdgroup * kSimdWidth + __builtin_ctz(m)] = s_exchange;
}
void checker_end() {
  settle_store();
  s_running = false;
  for (uint32_t k = 0; k < s_memory_count; k++) free(s_memory[k].records);
  s_memory_count = 0;
}

static void name_memory(char* buffer, size_t size, const Memory& m) {
  if (m.name) snprintf(buffer, size, "threadgroup variable '%s'", m.name);
  else snprintf(buffer, size, "argument %u", m.argument);
}

static Memory* memory_at(const uint8_t* p) {
  for (uint32_t k = 0; k < s_memory_count; k++)
    if (p >= s_memory[k].base && p < s_memory[k].base + s_memory[k].size) return &s_memory[k];
  return nullptr;
}

static bool conflict(const Access& before, const Access& now, bool shared) {
  if (!before.group) return false;
  if (before.group != now.group) return !shared;
  if (before.item == now.item || before.barrier_epoch != now.barrier_epoch) return false;
  return before.item / kSimdWidth != now.item / kSimdWidth || before.simdgroup_epoch == now.simdgroup_epoch;
}

// Whether both items took part in an exchange after a load of one of them, and before the other's store.
static bool exchanged_since(const Access& load, const Access& store) {
  return load.group == store.group && load.item / kSimdWidth == store.item / kSimdWidth &&
      load.exchange < store.exchange && store.exchange <= s_exchange_of_item[load.item];
}

static void report_race(
    const Memory& m,
    uint64_t offset,
    const char* before_kind,
    const Access& before,
    const char* now_kind,
    const Access& now) {
  for (uint32_t k = 0; k < s_unwritten_count; k++) {
    UnwrittenLoad& load = s_unwritten[k];
    if (load.memory == &m && offset - load.offset < load.size) load.memory = nullptr;
  }
  char where[96], who[160];
  name_memory(where, sizeof where, m);
  describe_item(who, sizeof who, now.item);
  // Python turns @PLACE into the line of the source.
  if (before.group == now.group)
    report(
        "data race on byte %lu of %s: %s by %s, %s by thread %u of the same threadgroup@%x, and no barrier with the "
        "matching mem_flags between",
        (unsigned long)offset, where, now_kind, who, before_kind, before.item, before.place);
  else
    report(
        "data race on byte %lu of %s: %s by %s, %s by thread %u of another threadgroup@%x; nothing orders "
        "threadgroups",
        (unsigned long)offset, where, now_kind, who, before_kind, before.item, before.place);
}

// Checks whether the last store, which has happened by now, changed bytes that another item had stored.
static void settle_store() {
  StoreOverStore& store = s_unsettled;
  if (!store.memory) return;
  const Memory& m = *store.memory;
  store.memory = nullptr;
  for (uint32_t i = 0; i < store.size; i++) {
    const Access& before = store.before[i >> m.shift];
    if (!before.group || m.base[store.offset + i] == store.bytes[i]) continue;
    g_instruction = store.instruction;
    report_race(m, store.offset + i, "a store", before, "a store", store.now);
    memset(&m.records[(store.offset + i) >> m.shift], 0, sizeof(Record));
    return;
  }
}

// Whether the byte is unwritten in this threadgroup. Stores of 32 bytes have no hook; they change the fill bytes.
static bool is_unwritten(const Memory& m, uint64_t offset) {
  const Record& r = m.records[offset >> m.shift];
  return r.write.group != s_turn && r.atomic.group != s_turn && m.base[offset] == unwritten_byte(offset);
}
static bool all_unwritten(const Memory& m, uint64_t begin, uint64_t end) {
  for (uint64_t i = begin; i < end; i++)
    if (!is_unwritten(m, i)) return false;
  return true;
}
static void check_written(const Memory& m, uint64_t offset, uint32_t size, bool copy) {
  if (!g_dispatch->refuse_unwritten || !m.shared || !m.records) return;
  // A copied structure may have padding, and a vector unused elements.
  uint32_t part = copy || size < 4 ? size : 4;
  uint64_t begin = offset, end = offset + size;
  while (begin < end && !all_unwritten(m, begin, begin + part)) begin += part;
  if (begin >= end || s_unwritten_count == kMaxMessages) return;
  for (uint32_t k = 0; k < s_unwritten_count; k++)
    if (s_unwritten[k].instruction == g_instruction) return;
  s_unwritten[s_unwritten_count++] = {&m, offset, size, g_item, g_instruction};
}
static void settle_loads(uint32_t first_item, uint32_t end_item) {
  uint32_t kept = 0;
  for (uint32_t k = 0; k < s_unwritten_count; k++) {
    const UnwrittenLoad load = s_unwritten[k];
    if (load.item < first_item || load.item >= end_item) {
      s_unwritten[kept++] = load;
      continue;
    }
    if (!load.memory) continue;
    char where[96], who[160];
    name_memory(where, sizeof where, *load.memory);
    describe_item(who, sizeof who, load.item);
    g_instruction = load.instruction;
    report(
        "load of %u bytes at byte %lu of %s, which nothing in the threadgroup wrote, by %s", load.size,
        (unsigned long)load.offset, where, who);
  }
  s_unwritten_count = kept;
}

enum Use : uint32_t { kLoads = 1, kStores = 2, kCopies = 4 }; // same values as in include/msl/atomic.h
static void check(const uint8_t* p, uint32_t size, uint32_t use, bool atomic, void* instruction) {
  bool write = use & kStores;
  if (!s_running) return;
  settle_store();
  if (is_fiber_stack(p)) return;
  g_instruction = (uint64_t)instruction - 1; // a return address is after the call
  Memory* m = memory_at(p);
  char who[160];
  if (!m) {
    if (p >= s_shared_begin && p < s_shared_end) {
      const Memory* near = nullptr; // the variable that ends before the address
      for (uint32_t k = 0; k < s_memory_count; k++)
        if (s_memory[k].shared && s_memory[k].base <= p && (!near || s_memory[k].base > near->base))
          near = &s_memory[k];
      describe_item(who, sizeof who, g_item);
      report(
          "out of bounds %s %lu bytes past the end of threadgroup variable '%s' (%lu bytes) by %s",
          write ? "store" : "load", near ? (unsigned long)(p - near->base - near->size) : 0ul, near ? near->name : "?",
          near ? (unsigned long)near->size : 0ul, who);
      abandon();
    }
    if (const Region* region = nearest_region(p)) {
      report_out_of_bounds(write ? "store" : "load", *region, p);
      abandon();
    }
    return; // a constant of the program
  }
  uint64_t offset = p - m->base;
  // Atomic operations on bytes and halves access the word around them. On a device the whole word is allocated; the
  // guard detects changes of the rest of the word.
  if (atomic && size == 4 && !m->shared && offset < m->size && offset % size == 0) {
    size = m->size - offset < size ? (uint32_t)(m->size - offset) : size;
  }
  if (offset + size > m->size) {
    char where[96];
    name_memory(where, sizeof where, *m);
    describe_item(who, sizeof who, g_item);
    report(
        "out of bounds %s of %u bytes at byte %lu of %s (%lu bytes) by %s", write ? "store" : "load", size,
        (unsigned long)offset, where, (unsigned long)m->size, who);
    abandon();
  }
  uint32_t simdgroup = g_item / kSimdWidth;
  Access now = {
      s_turn,
      g_item,
      m->shared ? s_shared_epoch : s_device_epoch,
      m->shared ? s_shared_simd_epoch[simdgroup] : s_device_simd_epoch[simdgroup],
      s_exchange_of_item[g_item],
      (uint32_t)(g_instruction - s_kernel_base)};
  if (!m->records) return;
  if (use & kLoads && !(use & kCopies)) check_written(*m, offset, size, false);
  const char* kind = atomic ? "an atomic access" : write ? "a store" : "a load";
  bool plain_store = write && !atomic, over_store = false;
  uint32_t shift = (offset | size) % 4 == 0 ? 2 : (offset | size) % 2 == 0 ? 1 : 0;
  if (shift < m->shift) split_records(*m, shift);
  for (uint32_t i = 0; i < size >> m->shift; i++) {
    Record& r = m->records[(offset >> m->shift) + i];
    struct {
      const Access& access;
      const char* kind;
      bool matters;
    } former[] = {
        {r.write, "a store", !plain_store},
        {r.atomic, "an atomic access", !atomic},
        {r.read, "a load", (write || atomic) && !exchanged_since(r.read, now)},
        {r.other_read, "a load", (write || atomic) && !exchanged_since(r.other_read, now)},
        {r.far_read, "a load", (write || atomic) && !exchanged_since(r.far_read, now)},
    };
    for (const auto& before : former)
      if (before.matters && conflict(before.access, now, m->shared)) {
        report_race(*m, offset + (i << m->shift), before.kind, before.access, kind, now);
        memset(&r, 0, sizeof r);
        return;
      }
    if (plain_store) {
      bool conflicts = conflict(r.write, now, m->shared);
      s_unsettled.before[i] = conflicts ? r.write : Access{};
      over_store |= conflicts;
    }
    if (atomic) {
      r.atomic = now;
    } else if (write) {
      r.write = now;
    } else {
      if (r.read.group != now.group || r.read.item != now.item) r.other_read = r.read;
      if (r.read.group != now.group || r.read.item / kSimdWidth != simdgroup) r.far_read = r.read;
      r.read = now;
    }
  }
  if (over_store) {
    s_unsettled.memory = m;
    s_unsettled.offset = offset;
    s_unsettled.size = size;
    s_unsettled.instruction = g_instruction;
    s_unsettled.now = now;
    memcpy(s_unsettled.bytes, p, size);
  }
}

#define HOOK extern "C" __attribute__((visibility("default")))
#define HOOKS(n) \
  HOOK void __sanitizer_cov_load##n(const uint8_t* p) { check(p, n, kLoads, false, __builtin_return_address(0)); } \
  HOOK void __sanitizer_cov_store##n(const uint8_t* p) { check(p, n, kStores, false, __builtin_return_address(0)); }
HOOKS(1) HOOKS(2) HOOKS(4) HOOKS(8) HOOKS(16) HOOK void __sanitizer_cov_trace_pc_guard(void*) {}
HOOK void __sanitizer_cov_trace_pc_guard_init(void*, void*) {}
// Copies of whole structs, in pieces of at most kLargestAccess bytes.
static void check_range(const void* begin, size_t size, uint32_t use, void* instruction) {
  const uint8_t* p = (const uint8_t*)begin;
  for (size_t i = 0; i < size; i += kLargestAccess)
    check(p + i, size - i < kLargestAccess ? size - i : kLargestAccess, use | kCopies, false, instruction);
  const Memory* m = use & kLoads && s_running ? memory_at(p) : nullptr;
  if (m) check_written(*m, p - m->base, size, true);
}
HOOK void* __tsan_memmove(void* to, const void* from, size_t size) {
  check_range(from, size, kLoads, __builtin_return_address(0));
  check_range(to, size, kStores, __builtin_return_address(0));
  return memmove(to, from, size);
}
HOOK void* __tsan_memcpy(void* to, const void* from, size_t size) {
  check_range(from, size, kLoads, __builtin_return_address(0));
  check_range(to, size, kStores, __builtin_return_address(0));
  return memmove(to, from, size);
}
HOOK void* __tsan_memset(void* to, int byte, size_t size) {
  check_range(to, size, kStores, __builtin_return_address(0));
  return memset(to, byte, size);
}
HOOK void __tsan_init() {}
// Records where a kernel reads an inactive lane. undefined_lanes.py finds out whether results depend on it.
HOOK void msl_inactive_read(const char* operation) {
  Dispatch& d = *g_dispatch;
  uint64_t place = (uint64_t)__builtin_return_address(0) - 1 - s_kernel_base;
  for (uint32_t k = 0; k < d.lane_read_count; k++)
    if (d.lane_reads[k].place == place) return;
  if (d.lane_read_count < kMaxLaneReads) d.lane_reads[d.lane_read_count++] = {place, operation};
}
HOOK void msl_atomic_access(const uint8_t* p, uint32_t size, uint32_t use) {
  g_instruction = (uint64_t)__builtin_return_address(0) - 1;
  if (p && (uintptr_t)p % size) {
    char who[160];
    report("misaligned atomic access of %u bytes by %s", size, describe_item(who, sizeof who, g_item));
  }
  check(p, size, use, true, __builtin_return_address(0));
}
