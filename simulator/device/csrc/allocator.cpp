#include "allocator.h"

#include "device.h"
#include "held_memory.h"

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iomanip>
#include <sstream>
#include <string>

namespace mpsmith {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kUnlimited = SIZE_MAX;
constexpr int kUnwritten = 0xFF;

std::atomic<size_t> bytes_in_use{0};
std::atomic<size_t> byte_limit{kUnlimited};
std::atomic<bool> fills_fresh_memory{false};

struct Block {
  void* data;
  size_t bytes;
};

void give_back_block(void* context) {
  auto* block = static_cast<Block*>(context);
  std::free(block->data);
  delete block;
}

void free_block(void* context) {
  auto* block = static_cast<Block*>(context);
  bytes_in_use -= block->bytes;
  forget_start(block->data, &give_back_block, block);
}

struct BorrowedStorage {
  c10::Storage storage;
  size_t counted_bytes;
  const void* start; // registered as the start of a tensor's memory, or null
};

void release_host_pointer(void* context) { delete static_cast<BorrowedStorage*>(context); }

void release_device_pointer(void* context) {
  auto* borrowed = static_cast<BorrowedStorage*>(context);
  bytes_in_use -= borrowed->counted_bytes;
  forget_start(borrowed->start, &release_host_pointer, borrowed);
}

std::string readable(size_t bytes) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(2);
  if (bytes >= size_t(1) << 30) {
    text << static_cast<double>(bytes) / (size_t(1) << 30) << " GiB";
  } else if (bytes >= size_t(1) << 20) {
    text << static_cast<double>(bytes) / (size_t(1) << 20) << " MiB";
  } else {
    text << static_cast<double>(bytes) / (size_t(1) << 10) << " KiB";
  }
  return text.str();
}

void check_fits(bool fits, size_t bytes) {
  TORCH_CHECK_WITH(
      OutOfMemoryError, fits, "MPS backend out of memory (MPS allocated: ", readable(bytes_in_use),
      ", max allowed: ", byte_limit == kUnlimited ? "unlimited" : readable(byte_limit), "). Tried to allocate ",
      readable(bytes), " on the simulated device.");
}

class HostMemory final : public c10::Allocator {
 public:
  explicit HostMemory(c10::Device label) : label_(label) {}

  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) {
      return {nullptr, nullptr, &c10::detail::deleteNothing, label_};
    }
    // A size close to SIZE_MAX would wrap around when rounded up, and allocate a tiny block.
    check_fits(bytes <= PTRDIFF_MAX - kAlignment, bytes);
    const size_t limit = byte_limit;
    const size_t used = bytes_in_use;
    check_fits(bytes <= limit && used <= limit - bytes, bytes);
    void* data = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
    check_fits(data != nullptr, bytes);
    if (fills_fresh_memory) {
      std::memset(data, kUnwritten, bytes);
    }
    bytes_in_use += bytes;
    // Also the memory of aliases: an operator may grow one, and the mps tensor then takes its memory.
    note_start(data, bytes);
    return {data, new Block{data, bytes}, &free_block, label_};
  }

  void copy_data(void* destination, const void* source, std::size_t bytes) const override {
    default_copy_data(destination, source, bytes);
  }

 private:
  c10::Device label_;
};

} // namespace

// Both allocators are leaked on purpose: tensors may outlive every static object.
c10::Allocator* device_allocator() {
  static auto* allocator = new HostMemory(simulated_device());
  return allocator;
}

c10::Allocator* alias_allocator() {
  static auto* allocator = new HostMemory(host_device());
  return allocator;
}

c10::DataPtr device_pointer_to(const c10::Storage& host) {
  auto* storage = host.unsafeGetStorageImpl();
  const size_t bytes = storage->nbytes();
  bytes_in_use += bytes;
  void* data = storage->_mutable_data_ptr_no_checks().get();
  if (data != nullptr) {
    note_start(data, bytes);
  }
  return {data, new BorrowedStorage{host, bytes, data}, &release_device_pointer, simulated_device()};
}

c10::DataPtr host_pointer_to(const c10::Storage& device) {
  void* data = device.unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get();
  return {data, new BorrowedStorage{device, 0, nullptr}, &release_host_pointer, host_device()};
}

size_t allocated_bytes() { return bytes_in_use; }

size_t recommended_max_bytes() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGE_SIZE));
}

void set_memory_fraction(double fraction) {
  byte_limit =
      fraction == 0.0 ? kUnlimited : static_cast<size_t>(fraction * static_cast<double>(recommended_max_bytes()));
}

void fill_fresh_memory(bool enabled) { fills_fresh_memory = enabled; }

} // namespace mpsmith
