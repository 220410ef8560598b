#include "held_memory.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace mpsmith {
namespace {

struct Release {
  void (*function)(void*);
  void* context;
};
struct Start {
  size_t bytes = 0;
  size_t owners = 0;
  int64_t holders = 0;
  uint32_t element_types = 0; // a bit for each that host code has seen here
  std::vector<Release> held_back;
};
// Leaked: tensors may outlive every static object.
std::mutex& starts_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}
std::unordered_map<const void*, Start>& starts() {
  static auto* table = new std::unordered_map<const void*, Start>;
  return *table;
}

// The start addresses of freed tensor memory, while nothing else begins there: using such an address as a buffer is a
// missing retain.
constexpr size_t kRemembered = 1 << 16;
std::unordered_set<const void*>& gone() {
  static auto* addresses = new std::unordered_set<const void*>;
  return *addresses;
}
void remember_gone(const void* data) {
  if (gone().size() >= kRemembered) {
    gone().clear();
  }
  gone().insert(data);
}

// Objects of the Objective-C runtime begin 16 bytes after a multiple of 64, and tensor memory at a multiple. If some
// tensor's does not, the runtime must search the table for each message.
constexpr uintptr_t kBlock = 64;
constexpr uintptr_t kObject = 16;
std::atomic<bool> starts_like_an_object{false};

} // namespace

void note_start(const void* data, size_t bytes) {
  if (reinterpret_cast<uintptr_t>(data) % kBlock == kObject) {
    starts_like_an_object = true;
  }
  const std::lock_guard<std::mutex> guard(starts_mutex());
  gone().erase(data);
  Start& start = starts()[data];
  start.bytes = std::max(start.bytes, bytes);
  ++start.owners;
}

void forget_start(const void* data, void (*release)(void*), void* context) {
  {
    const std::lock_guard<std::mutex> guard(starts_mutex());
    const auto found = starts().find(data);
    if (found != starts().end()) {
      --found->second.owners;
      if (found->second.holders > 0) {
        found->second.held_back.push_back({release, context});
        return;
      }
      if (found->second.owners == 0) {
        starts().erase(found);
        remember_gone(data);
      }
    }
  }
  release(context);
}

// Called by the Metal framework: the size of the tensor memory that starts at an address, or 0.
extern "C" __attribute__((visibility("default"))) uint64_t mpsmith_storage_bytes(const void* data) {
  const std::lock_guard<std::mutex> guard(starts_mutex());
  const auto found = starts().find(data);
  return found == starts().end() ? 0 : found->second.bytes;
}

// Host code takes the memory of a tensor: the number of its element type, 0 for bytes.
extern "C" __attribute__((visibility("default"))) void mpsmith_storage_seen_as(const void* data, uint32_t type) {
  const std::lock_guard<std::mutex> guard(starts_mutex());
  const auto found = starts().find(data);
  if (found != starts().end()) {
    found->second.element_types |= uint32_t(1) << type;
  }
}

// The number of the only element type that host code has seen here, or 0.
extern "C" __attribute__((visibility("default"))) uint32_t mpsmith_storage_element_type(const void* data) {
  const std::lock_guard<std::mutex> guard(starts_mutex());
  const auto found = starts().find(data);
  const uint32_t seen = found == starts().end() ? 0 : found->second.element_types;
  return seen == 0 || (seen & (seen - 1)) != 0 ? 0 : __builtin_ctz(seen);
}

// Whether freed tensor memory started here.
extern "C" __attribute__((visibility("default"))) bool mpsmith_storage_gone(const void* data) {
  const std::lock_guard<std::mutex> guard(starts_mutex());
  return gone().count(data) != 0;
}

// Retains (+1) or releases (-1) the memory that starts here.
extern "C" __attribute__((visibility("default"))) void mpsmith_storage_hold(const void* data, int64_t change) {
  std::vector<Release> released;
  {
    const std::lock_guard<std::mutex> guard(starts_mutex());
    const auto found = starts().find(data);
    if (found == starts().end()) {
      return;
    }
    Start& start = found->second;
    start.holders += change;
    if (start.holders <= 0) {
      released.swap(start.held_back);
      if (start.owners == 0) {
        starts().erase(found);
        remember_gone(data);
      }
    }
  }
  for (const Release& release : released) {
    release.function(release.context);
  }
}

extern "C" __attribute__((visibility("default"))) const std::atomic<bool>* mpsmith_storage_anywhere() {
  return &starts_like_an_object;
}

} // namespace mpsmith
