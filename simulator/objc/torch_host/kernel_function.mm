// MetalKernelFunction: one kernel with its arguments and launches. Compiled without ARC.
#define AT_PER_OPERATOR_HEADERS
#include <ATen/native/mps/OperationUtils.h>

#include <ATen/core/Tensor.h>
#include <ATen/mps/MPSStream.h>

extern "C" const void* mpsmith_storage_of(const void* tensor);

namespace at::native::mps {

void* get_tensor_gpu_address(const at::TensorBase& tensor) {
  return reinterpret_cast<void*>(
      [getMTLBufferStorage(tensor) gpuAddress] + tensor.storage_offset() * tensor.element_size());
}

// Owns what it is given.
MetalKernelFunction::MetalKernelFunction(MTLComputePipelineState_t state, MTLFunction_t function)
    : cps(state), func(function) {}
MetalKernelFunction::~MetalKernelFunction() {
  [cps release];
  [func release];
}

uint64_t MetalKernelFunction::getMaxThreadsPerThreadgroup() const { return [cps maxTotalThreadsPerThreadgroup]; }
uint64_t MetalKernelFunction::getThreadExecutionWidth() const { return [cps threadExecutionWidth]; }
uint64_t MetalKernelFunction::getStaticThreadGroupMemoryLength() const { return [cps staticThreadgroupMemoryLength]; }

void MetalKernelFunction::runCommandBlock(std::function<void(void)> run) {
  at::mps::dispatch_sync_with_rethrow(at::mps::getCurrentMPSStream()->queue(), ^() {
    @autoreleasepool {
      run();
    }
  });
}

void MetalKernelFunction::startEncoding() {
  encoder = at::mps::getCurrentMPSStream()->commandEncoder();
  [encoder setComputePipelineState:cps];
}

void MetalKernelFunction::setArg(unsigned index, const at::TensorBase& tensor) {
  mpsmith_storage_of(&tensor); // a kernel of another element type is found
  mtl_setBuffer(encoder, tensor, index);
}
void MetalKernelFunction::setArg(unsigned index, const void* bytes, uint64_t size) {
  TORCH_CHECK(size > 0, "a kernel's argument ", index, " has no bytes");
  [encoder setBytes:bytes length:size atIndex:index];
}
void MetalKernelFunction::setErrorBufferIndex(unsigned index) {
  [encoder setBuffer:at::mps::getCurrentMPSStream()->getErrorBuffer() offset:0 atIndex:index];
}

void MetalKernelFunction::dispatch(uint64_t length, std::optional<uint64_t> group) {
  const uint64_t most = getMaxThreadsPerThreadgroup();
  const uint64_t threads = group.value_or(std::min(length, most));
  TORCH_CHECK_VALUE(threads <= most, "Threadgroup size exceeds ", most, " limit");
  [encoder dispatchThreads:MTLSizeMake(length, 1, 1) threadsPerThreadgroup:MTLSizeMake(threads, 1, 1)];
}

void MetalKernelFunction::dispatch(c10::ArrayRef<uint64_t> length, c10::OptionalArrayRef<uint64_t> group) {
  TORCH_CHECK(!length.empty() && length.size() <= 3, "Metal's grids have 1 to 3 dimensions, not ", length.size());
  TORCH_CHECK(
      !group.has_value() || group->size() == length.size(),
      "length and group size must have the same number of dimensions");
  const uint64_t most = getMaxThreadsPerThreadgroup();
  const auto at = [](c10::ArrayRef<uint64_t> sizes, size_t i) { return i < sizes.size() ? sizes[i] : 1; };
  const auto threads = group.has_value() ? MTLSizeMake(at(*group, 0), at(*group, 1), at(*group, 2))
                                         : MTLSizeMake(std::min(length[0], most), 1, 1);
  TORCH_CHECK_VALUE(
      threads.width * threads.height * threads.depth <= most, "Threadgroup size exceeds ", most, " limit");
  [encoder dispatchThreads:MTLSizeMake(at(length, 0), at(length, 1), at(length, 2)) threadsPerThreadgroup:threads];
}

} // namespace at::native::mps
