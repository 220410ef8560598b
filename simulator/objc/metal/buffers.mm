// Buffers with their own memory, and over memory of the caller; argument encoders. Compiled with ARC.
#include <cstdlib>
#include <cstring>

#include "host.h"

@implementation SimulatedBuffer {
  void* memory_;
  NSUInteger length_;
  bool owned_;
  void (^deallocator_)(void*, NSUInteger);
}
+ (id<MTLBuffer>)simulatedOf:(NSUInteger)length {
  constexpr NSUInteger kAlignment = 256;
  require_valid(length > 0 || mode_is("fast"), "newBufferWithLength: a buffer of 0 bytes cannot be made");
  if (length == 0) {
    return nil;
  }
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
METHOD(void*, contents, memory_)
METHOD(NSUInteger, length, length_)
METHOD(NSUInteger, allocatedSize, length_)
METHOD(MTLGPUAddress, gpuAddress, (MTLGPUAddress)memory_)
METHOD(MTLStorageMode, storageMode, MTLStorageModeShared)
METHOD(MTLResourceOptions, resourceOptions, MTLResourceStorageModeShared)
IGNORED_WITH(didModifyRange, NSRange)
@end

@implementation SimulatedArgumentEncoder {
  NSUInteger length_, offset_;
  id<MTLBuffer> arguments_;
}
+ (id<MTLArgumentEncoder>)simulatedOf:(NSUInteger)length {
  SimulatedArgumentEncoder* encoder = [SimulatedArgumentEncoder new];
  encoder->length_ = length;
  return (id)encoder;
}
METHOD(NSUInteger, encodedLength, length_)
METHOD(NSUInteger, alignment, sizeof(MTLGPUAddress))
- (void)setArgumentBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset {
  require(
      buffer == nil || offset + length_ <= [buffer length],
      "setArgumentBuffer: takes " + std::to_string(length_) + " bytes from the offset " + std::to_string(offset) +
          ", beyond the buffer's length of " + std::to_string([buffer length]));
  arguments_ = buffer;
  offset_ = offset;
}
- (void)setArgumentBuffer:(id<MTLBuffer>)buffer startOffset:(NSUInteger)start arrayElement:(NSUInteger)element {
  [self setArgumentBuffer:buffer offset:start + element * length_];
}
- (void)setBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index {
  require(arguments_ != nil, "setBuffer: of an argument encoder was called before setArgumentBuffer:offset:");
  const NSUInteger place = index * sizeof(MTLGPUAddress);
  require(
      place + sizeof(MTLGPUAddress) <= length_,
      "setBuffer: has the index " + std::to_string(index) + ", and the structure of the arguments holds " +
          std::to_string(length_ / sizeof(MTLGPUAddress)) + " pointers");
  require(
      buffer == nil || offset <= [buffer length],
      "setBuffer: has the offset " + std::to_string(offset) + " beyond the buffer's length of " +
          std::to_string([buffer length]) + " at index " + std::to_string(index) + " of an argument encoder");
  const MTLGPUAddress address = buffer == nil ? 0 : [buffer gpuAddress] + offset;
  std::memcpy((char*)[arguments_ contents] + offset_ + place, &address, sizeof(address));
}
- (void)setBuffers:(const id<MTLBuffer>*)buffers offsets:(const NSUInteger*)offsets withRange:(NSRange)range {
  for (NSUInteger i = 0; i < range.length; ++i) {
    [self setBuffer:buffers[i] offset:offsets[i] atIndex:range.location + i];
  }
}
@end
