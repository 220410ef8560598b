// Buffers with memory of their own, and over memory of the caller. Compiled with ARC.
#include <cstdlib>
#include <cstring>

#include "host.h"

@implementation SimulatedBuffer {
  void* memory_;
  NSUInteger length_;
  bool owned_;
  void (^deallocator_)(void*, NSUInteger);
  NSString* label_;
}
+ (id<MTLBuffer>)simulatedOf:(NSUInteger)length {
  constexpr NSUInteger kAlignment = 256;
  require(length > 0, "a buffer of 0 bytes cannot be made");
  SimulatedBuffer* buffer = [SimulatedBuffer new];
  const NSUInteger rounded = (length + kAlignment - 1) / kAlignment * kAlignment;
  buffer->memory_ = std::aligned_alloc(kAlignment, rounded);
  require(buffer->memory_ != nullptr, "no memory for a buffer of " + std::to_string(length) + " bytes");
  std::memset(buffer->memory_, 0, rounded);
  buffer->length_ = length;
  buffer->owned_ = true;
  return (id)buffer;
}
+ (id<MTLBuffer>)simulatedOver:(void*)memory
                        length:(NSUInteger)length
                   deallocator:(void (^)(void*, NSUInteger))deallocator {
  SimulatedBuffer* buffer = [SimulatedBuffer new];
  buffer->memory_ = memory;
  buffer->length_ = length;
  buffer->deallocator_ = [deallocator copy];
  return (id)buffer;
}
- (void)dealloc {
  if (owned_) {
    std::free(memory_);
  }
  if (deallocator_) {
    deallocator_(memory_, length_);
  }
}
- (void*)contents {
  return memory_;
}
- (NSUInteger)length {
  return length_;
}
- (NSUInteger)allocatedSize {
  return length_;
}
- (MTLGPUAddress)gpuAddress {
  return (MTLGPUAddress)memory_;
}
- (id<MTLDevice>)device {
  return simulated_device();
}
- (MTLStorageMode)storageMode {
  return MTLStorageModeShared;
}
- (MTLResourceOptions)resourceOptions {
  return MTLResourceStorageModeShared;
}
- (NSString*)label {
  return label_;
}
- (void)setLabel:(NSString*)label {
  label_ = label;
}
- (void)didModifyRange:(NSRange)range {
}
@end
