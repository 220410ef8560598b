// The rest of PyTorch's mps backend, for host code of any release on the simulated device: allocator and empty tensors.
// Methods have no `override`, because the interface differs between releases. Compiled without ARC.
#include <mpsmith/host_prelude.h>
#include <ATen/native/mps/OperationUtils.h>

#include <ATen/mps/EmptyTensor.h>
#include <ATen/mps/MPSAllocatorInterface.h>
#include <ATen/mps/MPSDevice.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/Allocator.h>

#include <array>
#include <cstring>
#include <map>

namespace at::mps {

C10_DEFINE_REGISTRY(MPSAllocatorCallbacksRegistry, IMpsAllocatorCallback);

namespace {

at::Allocator* simulated_allocator() { return c10::GetAllocator(c10::DeviceType::MPS); }

class SimulatedAllocator final : public IMPSAllocator {
 public:
  // Host code drops what it allocates while commands still use it, which the pool of a Mac allows.
  c10::DataPtr allocate(size_t bytes) {
    c10::DataPtr& kept = kept_[next_++ % kept_.size()];
    kept = simulated_allocator()->allocate(bytes);
    return {kept.get(), kept.get(), [](void*) {}, kept.device()};
  }
  void copy_data(void* to, const void* from, size_t bytes) const { std::memcpy(to, from, bytes); }
  c10::DataPtr allocScalarBufferWithValue(void* value, size_t bytes) const {
    id<MTLBuffer> buffer = [MPSDevice::getInstance()->device() newBufferWithBytes:value length:bytes options:0];
    return {buffer, buffer, [](void* made) { [(id)made release]; }, c10::Device(c10::kMPS, 0)};
  }
  void emptyCache() const {}
  void freeInactiveBuffers() const {}
  ssize_t getUnalignedBufferSize(const void* pointer) const { return [(id<MTLBuffer>)pointer length]; }
  // Of the tensor whose views are taken. Memory of another length is another tensor's.
  IntArrayRef getBufferShape(const void* pointer) const {
    const auto found = shapes_.find({pointer, [(id<MTLBuffer>)pointer length]});
    return found == shapes_.end() ? IntArrayRef() : found->second;
  }
  void setBufferShape(const void* pointer, const IntArrayRef& shape) const {
    shapes_.try_emplace({pointer, [(id<MTLBuffer>)pointer length]}, shape.vec());
  }
  id_t getBufferId(const void*) const { return 0; }
  bool isSharedBuffer(const void*) const { return true; }
  bool isSharedStorageSupported() const { return true; }
  std::pair<const void*, uint32_t> getSharedBufferPtr(const void* pointer) const {
    return {[(id<MTLBuffer>)pointer contents], 0};
  }
  std::string formatSize(size_t size) const { return std::to_string(size) + " bytes"; }
  // As on a Mac with much memory: nothing commits early.
  ssize_t getLowWatermarkValue() const { return std::numeric_limits<ssize_t>::max(); }
  void setLowWatermarkRatio(double) const {}
  void setHighWatermarkRatio(double) const {}
  size_t getLowWatermarkLimit() const { return 0; }
  size_t getHighWatermarkLimit() const { return 0; }
  size_t getTotalAllocatedMemory() const { return 0; }
  size_t getCurrentAllocatedMemory() const { return 0; }
  size_t getDriverAllocatedMemory() const { return 0; }
  size_t getRecommendedMaxMemory() const { return 0; }
  bool recordEvents(c10::ArrayRef<const void*>) const { return false; }
  bool waitForEvents(c10::ArrayRef<const void*>) const { return false; }

 private:
  mutable std::map<std::pair<const void*, size_t>, std::vector<int64_t>> shapes_;
  std::array<c10::DataPtr, 4> kept_;
  size_t next_ = 0;
};

} // namespace

IMPSAllocator* getIMPSAllocator(bool) {
  static auto* allocator = new SimulatedAllocator;
  return allocator;
}
bool isMPSPinnedPtr(const void*) { return false; }
// As streams of older trees ask for the low watermark.
uint32_t get_adaptive_commit_threshold() { return std::numeric_limits<uint32_t>::max(); }

} // namespace at::mps

namespace at::detail {

TensorBase empty_mps(
    IntArrayRef size,
    std::optional<ScalarType> dtype,
    std::optional<Layout> layout,
    std::optional<Device>,
    std::optional<bool>,
    std::optional<c10::MemoryFormat> format) {
  return at::empty(size, at::TensorOptions().device(kMPS).dtype(dtype).layout(layout), format);
}
TensorBase empty_mps(IntArrayRef size, const TensorOptions& options) { return at::empty(size, options.device(kMPS)); }
TensorBase empty_strided_mps(IntArrayRef size, IntArrayRef stride, ScalarType dtype, std::optional<Device>) {
  return at::empty_strided(size, stride, at::TensorOptions().device(kMPS).dtype(dtype));
}
TensorBase empty_strided_mps(IntArrayRef size, IntArrayRef stride, const TensorOptions& options) {
  return at::empty_strided(size, stride, options.device(kMPS));
}

} // namespace at::detail

// As host code of older trees makes tensors.
namespace at::native {

Tensor empty_mps(
    IntArrayRef size,
    std::optional<ScalarType> dtype,
    std::optional<Layout> layout,
    std::optional<Device> device,
    std::optional<bool> pinned,
    std::optional<c10::MemoryFormat> format) {
  return Tensor(at::detail::empty_mps(size, dtype, layout, device, pinned, format));
}
Tensor empty_strided_mps(
    IntArrayRef size,
    IntArrayRef stride,
    std::optional<ScalarType> dtype,
    std::optional<Layout>,
    std::optional<Device>,
    std::optional<bool>) {
  return Tensor(at::detail::empty_strided_mps(size, stride, at::TensorOptions().dtype(dtype)));
}

} // namespace at::native
