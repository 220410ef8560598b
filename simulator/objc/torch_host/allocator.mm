// The public allocator of torch's mps backend: memory of the simulated device, each tensor's as a buffer. Callbacks of
// MPSAllocatorCallbacksRegistry are not called, so the registry is not here. Compiled without ARC.
#define AT_PER_OPERATOR_HEADERS
#include <ATen/native/mps/OperationUtils.h>

#include <ATen/detail/MPSHooksInterface.h>
#include <ATen/mps/MPSAllocatorInterface.h>

#include <cstring>
#include <iomanip>
#include <map>
#include <mutex>
#include <sstream>

#include "../metal/host.h"

namespace at::mps {

namespace {

const MPSHooksInterface& hooks() { return at::detail::getMPSHooks(); }

// No `override`: releases add functions to the interface, and this source must compile with all of them.
class PublicAllocator final : public IMPSAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) { return GetMPSAllocator()->allocate(bytes); }
  void copy_data(void* to, const void* from, size_t bytes) const { default_copy_data(to, from, bytes); }
  bool initialized() { return true; }
  void emptyCache(c10::MempoolId_t = {0, 0}) {}
  void freeInactiveBuffers() const {}
  void recordStream(const c10::DataPtr&, c10::Stream) {}
  void resetAccumulatedStats(c10::DeviceIndex) {}
  void resetPeakStats(c10::DeviceIndex) {}
  // Only what is allocated now is counted.
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) {
    c10::CachingDeviceAllocator::DeviceStats stats;
    stats.allocated_bytes[0].current = static_cast<int64_t>(hooks().getCurrentAllocatedMemory());
    return stats;
  }

  // Of no tensor's start: what torch answers for memory that it does not know.
  ssize_t getUnalignedBufferSize(const void* pointer) const {
    id<MTLBuffer> buffer = simulated_tensor_memory(pointer);
    return buffer == nil ? -1 : static_cast<ssize_t>([buffer length]);
  }
  bool isSharedBuffer(const void* pointer) const { return simulated_tensor_memory(pointer) != nil; }
  std::pair<const void*, uint32_t> getSharedBufferPtr(const void* pointer) const {
    id<MTLBuffer> buffer = simulated_tensor_memory(pointer);
    return buffer == nil ? std::pair<const void*, uint32_t>{nullptr, 0}
                         : std::pair<const void*, uint32_t>{[buffer contents], [buffer retainCount]};
  }
  id_t getBufferId(const void* pointer) const {
    id<MTLBuffer> buffer = simulated_tensor_memory(pointer);
    const std::lock_guard<std::mutex> guard(mutex_);
    return buffer == nil ? 0 : numbers_.try_emplace(buffer, numbers_.size() + 1).first->second;
  }
  // Memory of another length is another tensor's.
  IntArrayRef getBufferShape(const void* pointer) const {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = shapes_.find({simulated_tensor_memory(pointer), getUnalignedBufferSize(pointer)});
    return found == shapes_.end() ? IntArrayRef() : IntArrayRef(found->second);
  }
  void setBufferShape(const void* pointer, const IntArrayRef& shape) const {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (id start = simulated_tensor_memory(pointer)) {
      shapes_[{start, getUnalignedBufferSize(pointer)}] = shape.vec();
    }
  }
  c10::DataPtr allocScalarBufferWithValue(void* value, size_t bytes) const {
    id<MTLBuffer> buffer = [MPSDevice::getInstance()->device() newBufferWithBytes:value length:bytes options:0];
    return {buffer, buffer, [](void* made) { [(id)made release]; }, c10::Device(c10::kMPS, 0)};
  }
  c10::Storage getHostAliasStorage(const c10::Storage& storage) const {
    id<MTLBuffer> buffer = simulated_tensor_memory(storage.data());
    TORCH_CHECK(buffer != nil, "the storage was not allocated by the MPS allocator");
    const auto forget = [](void* kept) { delete static_cast<c10::Storage*>(kept); };
    c10::DataPtr alias{[buffer contents], new c10::Storage(storage), forget, c10::Device(c10::kCPU)};
    return c10::Storage(c10::Storage::use_byte_size_t(), storage.nbytes(), std::move(alias), nullptr, false);
  }

  std::string formatSize(size_t size) const {
    std::ostringstream text;
    const char* unit = "KB";
    double shown = static_cast<double>(size) / 1024;
    for (const char* larger : {"MB", "GB"}) {
      if (shown > 1024) {
        shown /= 1024;
        unit = larger;
      }
    }
    text << std::fixed << std::setprecision(2);
    size <= 1024 ? text << size << " bytes" : text << shown << " " << unit;
    return text.str();
  }
  // As on a Mac with much memory: nothing commits early.
  ssize_t getLowWatermarkValue() const { return std::numeric_limits<ssize_t>::max(); }
  size_t getLowWatermarkLimit() const { return getRecommendedMaxMemory(); }
  size_t getHighWatermarkLimit() const { return getRecommendedMaxMemory(); }
  void setLowWatermarkRatio(double) const {}
  void setHighWatermarkRatio(double ratio) const { hooks().setMemoryFraction(ratio); }
  size_t getTotalAllocatedMemory() const { return hooks().getDriverAllocatedMemory(); }
  size_t getCurrentAllocatedMemory() const { return hooks().getCurrentAllocatedMemory(); }
  size_t getDriverAllocatedMemory() const { return hooks().getDriverAllocatedMemory(); }
  size_t getRecommendedMaxMemory() const { return hooks().getRecommendedMaxMemory(); }

  // Work is done in its order, so nothing is recorded: all of it is over after the wait.
  bool recordEvents(c10::ArrayRef<const void*> buffers) const {
    return std::any_of(buffers.begin(), buffers.end(), [this](const void* each) { return isSharedBuffer(each); });
  }
  bool waitForEvents(c10::ArrayRef<const void*> buffers) const {
    hooks().deviceSynchronize();
    return recordEvents(buffers);
  }

 private:
  mutable std::mutex mutex_;
  mutable std::map<id, id_t> numbers_;
  mutable std::map<std::pair<id, ssize_t>, std::vector<int64_t>> shapes_;
};

} // namespace

IMPSAllocator* getIMPSAllocator() {
  static auto* allocator = new PublicAllocator;
  return allocator;
}
bool isMPSPinnedPtr(const void* data) { return hooks().isPinnedPtr(data); }

} // namespace at::mps
