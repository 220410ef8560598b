// Encoders: what is bound, and the commands that use it. Compiled with ARC.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "../foundation/text.h"
#include "host.h"

@implementation SimulatedEncoder
- (void)endEncoding {
  require(!ended_, "endEncoding was called twice on the same encoder");
  ended_ = true;
  if (commands_->encoder_ == self) {
    commands_->encoder_ = nil;
  }
}
- (void)dealloc {
  if (ended_ || commands_ == nil) {
    return;
  }
  if (commands_->mistakes_before_ == mistakes_raised) {
    objc_simulator_note_misuse(
        "Metal, simulated: a command encoder was released without endEncoding; on a Mac this ends the process");
  }
}
- (void)simulatedOpen {
  require(!ended_, "a command was encoded after endEncoding");
}
IGNORED_WITH(pushDebugGroup, NSString*)
IGNORED(popDebugGroup)
IGNORED_WITH(insertDebugSignpost, NSString*)
@end

namespace {

constexpr NSUInteger kBufferSlots = 31;
constexpr char kNoThreads[] = // as NO_THREADS of simulator/metal/binding.py
    "no threads: Metal's API validation (MTL_DEBUG_LAYER=1) refuses an empty grid or threadgroup; return before the "
    "launch if nothing is to do";
constexpr NSUInteger kInlineBytes = 4096;
constexpr NSUInteger kThreadgroupMemory = 32768;
constexpr size_t kAlignment = 32; // of long4, the largest of any type

// Bytes of setBytes, aligned for any type.
class InlineBytes {
 public:
  InlineBytes(const void* bytes, size_t length) : memory_(new char[length + kAlignment]), length_(length) {
    std::memcpy(reinterpret_cast<void*>(address()), bytes, length);
  }
  uint64_t address() const {
    return (reinterpret_cast<uint64_t>(memory_.get()) + kAlignment - 1) / kAlignment * kAlignment;
  }
  uint64_t length() const { return length_; }

 private:
  std::unique_ptr<char[]> memory_;
  size_t length_;
};

// The binding of a buffer index: a buffer with an offset, bytes, or nothing.
struct Slot {
  __strong id<MTLBuffer> buffer;
  uint64_t offset = 0;
  std::shared_ptr<const InlineBytes> bytes;
  uint64_t element_type = 0;

  bool is_set() const { return buffer != nil || bytes != nullptr; }
  MetalBinding binding(uint64_t index) const {
    if (bytes != nullptr) {
      return {index, bytes->address(), bytes->address(), bytes->length(), element_type, 1};
    }
    const auto base = (uint64_t)[buffer contents];
    return {index, base + offset, base, [buffer length], element_type, 0};
  }
};

uint64_t threads_in(const MTLSize& size) { return size.width * size.height * size.depth; }

std::string argument_text(const MetalParameter& parameter) {
  return "buffer " + std::to_string(parameter.index) + " ('" + parameter.name + "')";
}

// A dispatch with all objects that it needs.
struct Dispatch {
  int64_t kernel;
  MetalLaunch launch;
  std::vector<MetalBinding> bindings;
  std::vector<Slot> held;

  void run() {
    launch.bindings = bindings.data();
    launch.binding_count = bindings.size();
    if (const char* problem = metal_programs.launch(kernel, &launch)) {
      ++mistakes_raised;
      throw std::runtime_error(problem);
    }
  }
};

} // namespace

@implementation SimulatedComputeEncoder {
  SimulatedPipeline* pipeline_;
  std::array<Slot, kBufferSlots> slots_;
  std::array<uint64_t, kThreadgroupSlots> threadgroup_bytes_;
}
- (void)setComputePipelineState:(id<MTLComputePipelineState>)state {
  [self simulatedOpen];
  require(state != nil, "setComputePipelineState: needs a pipeline, not nil");
  require([state isKindOfClass:[SimulatedPipeline class]], "setComputePipelineState: was given something else");
  pipeline_ = (SimulatedPipeline*)state;
}
- (Slot*)simulatedSlot:(NSUInteger)index {
  [self simulatedOpen];
  require(index < kBufferSlots, "buffer index " + std::to_string(index) + " is beyond 30, Metal's last");
  return &slots_[index];
}
- (void)setBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index {
  Slot* slot = [self simulatedSlot:index];
  require(
      buffer == nil || offset <= [buffer length],
      "setBuffer: has the offset " + std::to_string(offset) + " beyond the buffer's length of " +
          std::to_string([buffer length]) + " at index " + std::to_string(index));
  *slot = {buffer, offset, nullptr, buffer == nil ? 0 : simulated_element_type([buffer contents])};
}
- (void)setBufferOffset:(NSUInteger)offset atIndex:(NSUInteger)index {
  Slot* slot = [self simulatedSlot:index];
  require(slot->buffer != nil, "setBufferOffset: has no buffer at index " + std::to_string(index));
  [self setBuffer:slot->buffer offset:offset atIndex:index];
}
- (void)setBuffers:(const id<MTLBuffer>*)buffers offsets:(const NSUInteger*)offsets withRange:(NSRange)range {
  for (NSUInteger i = 0; i < range.length; ++i) {
    [self setBuffer:buffers[i] offset:offsets[i] atIndex:range.location + i];
  }
}
- (void)setBytes:(SimulatedBytes)bytes length:(NSUInteger)length atIndex:(NSUInteger)index {
  [self simulatedBytes:bytes.address() ofType:bytes.element_type() length:length atIndex:index];
}
- (void)simulatedBytes:(const void*)bytes ofType:(uint64_t)type length:(NSUInteger)length atIndex:(NSUInteger)index {
  Slot* slot = [self simulatedSlot:index];
  require(
      length <= kInlineBytes,
      "setBytes: takes at most 4096 bytes, not " + std::to_string(length) + ": use a buffer at index " +
          std::to_string(index));
  require(length > 0 && bytes != nullptr, "setBytes: has no bytes at index " + std::to_string(index));
  *slot = {nil, 0, std::make_shared<InlineBytes>(bytes, length), type};
}
- (void)setThreadgroupMemoryLength:(NSUInteger)length atIndex:(NSUInteger)index {
  require_valid(
      length % 16 == 0 || mode_is("fast"),
      "setThreadgroupMemoryLength: needs a multiple of 16, not " + std::to_string(length));
  [self simulatedThreadgroupBytes:(length + 15) / 16 * 16 atIndex:index];
}
- (void)simulatedThreadgroupBytes:(NSUInteger)length atIndex:(NSUInteger)index {
  [self simulatedOpen];
  require(index < kThreadgroupSlots, "threadgroup index " + std::to_string(index) + " is beyond Metal's last");
  threadgroup_bytes_[index] = length;
}
- (void)simulatedCheckBuffers {
  const MetalKernel& kernel = pipeline_->kernel_;
  const auto name = [&] { return "the kernel '" + text_of(pipeline_->label_) + "' "; };
  for (uint64_t i = 0; i < kernel.parameter_count; ++i) {
    const MetalParameter& parameter = kernel.parameters[i];
    const Slot& slot = slots_[parameter.index];
    if (parameter.size == 0 && !slot.is_set()) {
      continue; // a pointer that the kernel may never dereference; a run detects it
    }
    require(slot.is_set(), name() + "reads " + argument_text(parameter) + ", and nothing is bound there");
    const MetalBinding bound = slot.binding(parameter.index);
    const uint64_t available = bound.base + bound.size - bound.address;
    require(
        parameter.size <= available,
        name() + "reads " + std::to_string(parameter.size) + " bytes of " + argument_text(parameter) +
            ", which holds " + std::to_string(available));
  }
}
- (void)simulatedCheckGroup:(MTLSize)group {
  const MetalKernel& kernel = pipeline_->kernel_;
  const uint64_t threads = threads_in(group);
  require(
      threads <= kernel.max_threads,
      "a threadgroup of " + std::to_string(threads) + " threads is larger than the " +
          std::to_string(kernel.max_threads) + " of maxTotalThreadsPerThreadgroup");
  uint64_t memory = kernel.threadgroup_bytes;
  for (uint64_t bytes : threadgroup_bytes_) {
    memory += bytes;
  }
  require(
      memory <= kThreadgroupMemory,
      "a threadgroup takes " + std::to_string(memory) + " bytes of threadgroup memory; the limit is 32768");
}
- (void)dispatchThreads:(MTLSize)grid threadsPerThreadgroup:(MTLSize)group {
  [self simulatedOpen];
  require(pipeline_ != nil, "dispatchThreads: was called before setComputePipelineState:");
  // The validation alone refuses both; torch's own host code, which runs without it, may ask for an empty grid.
  require_valid(threads_in(group) > 0 || mode_is("fast"), kNoThreads);
  require_valid(threads_in(grid) > 0 || !mode_is("checked"), kNoThreads);
  if (threads_in(grid) == 0 || threads_in(group) == 0) {
    return;
  }
  [self simulatedCheckGroup:group];
  [self simulatedCheckBuffers];
  auto dispatch = std::make_shared<Dispatch>();
  dispatch->kernel = pipeline_->kernel_.number;
  dispatch->launch = {{grid.width, grid.height, grid.depth}, {group.width, group.height, group.depth}, {}, 0, nullptr};
  std::copy(threadgroup_bytes_.begin(), threadgroup_bytes_.end(), dispatch->launch.threadgroup_bytes);
  for (uint64_t i = 0; i < pipeline_->kernel_.parameter_count; ++i) {
    const uint64_t index = pipeline_->kernel_.parameters[i].index;
    if (slots_[index].is_set()) { // other indices may have bindings of an earlier kernel
      dispatch->bindings.push_back(slots_[index].binding(index));
      dispatch->held.push_back(slots_[index]);
    }
  }
  [commands_ simulatedCommand:[dispatch] { dispatch->run(); }];
}
- (void)dispatchThreadgroups:(MTLSize)groups threadsPerThreadgroup:(MTLSize)group {
  const auto grid = MTLSizeMake(groups.width * group.width, groups.height * group.height, groups.depth * group.depth);
  [self dispatchThreads:grid threadsPerThreadgroup:group];
}
- (void)dispatchThreadgroupsWithIndirectBuffer:(id<MTLBuffer>)buffer
                          indirectBufferOffset:(NSUInteger)offset
                         threadsPerThreadgroup:(MTLSize)group {
  require(offset + 3 * sizeof(uint32_t) <= [buffer length], "the indirect buffer is too small for three counts");
  uint32_t counts[3];
  std::memcpy(counts, (const char*)[buffer contents] + offset, sizeof(counts));
  if (counts[0] * counts[1] * counts[2] > 0) { // the validation does not read the buffer
    [self dispatchThreadgroups:MTLSizeMake(counts[0], counts[1], counts[2]) threadsPerThreadgroup:group];
  }
}
METHOD(MTLDispatchType, dispatchType, MTLDispatchTypeSerial)
// Dispatches run one after another, so barriers do nothing.
IGNORED_WITH(memoryBarrierWithScope, MTLBarrierScope)
- (void)memoryBarrierWithResources:(const id<MTLResource>*)resources count:(NSUInteger)count {
}
- (void)useResource:(id<MTLResource>)resource usage:(MTLResourceUsage)usage {
}
- (void)useResources:(const id<MTLResource>*)resources count:(NSUInteger)count usage:(MTLResourceUsage)usage {
}
@end

@implementation SimulatedBlitEncoder
- (void)fillBuffer:(id<MTLBuffer>)buffer range:(NSRange)range value:(uint8_t)value {
  [self simulatedOpen];
  require(buffer != nil, "fillBuffer: needs a buffer, not nil");
  require(range.location + range.length <= [buffer length], "fillBuffer: goes beyond the buffer's length");
  [commands_ simulatedCommand:[buffer, range, value] {
    std::memset((char*)[buffer contents] + range.location, value, range.length);
  }];
}
- (void)copyFromBuffer:(id<MTLBuffer>)from
          sourceOffset:(NSUInteger)source
              toBuffer:(id<MTLBuffer>)to
     destinationOffset:(NSUInteger)destination
                  size:(NSUInteger)size {
  [self simulatedOpen];
  require(from != nil && to != nil, "copyFromBuffer: needs two buffers, not nil");
  require(source + size <= [from length], "copyFromBuffer: goes beyond the length of the source");
  require(destination + size <= [to length], "copyFromBuffer: goes beyond the length of the destination");
  [commands_ simulatedCommand:[from, source, to, destination, size] {
    std::memmove((char*)[to contents] + destination, (const char*)[from contents] + source, size);
  }];
}
IGNORED_WITH(synchronizeResource, id<MTLResource>)
@end
