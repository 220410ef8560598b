// Command queues, command buffers and events. Compiled with ARC.
#import <MetalPerformanceShaders/MetalPerformanceShaders.h>

#include <utility>

#include "host.h"

std::atomic<int> mistakes_raised{0};

static std::atomic<int64_t> waits{0};
// How often host code waited for a command buffer in this process.
extern "C" __attribute__((visibility("default"))) int64_t metal_simulator_waits() { return waits; }

static std::atomic<int> era{1};
// Nobody ends an encoder of a call that raised.
extern "C" __attribute__((visibility("default"))) void metal_simulator_forget_encoders() { ++era; }
// Changes where encoders are forgotten: on a Mac a mistake would have ended the process.
static int moment() { return era + mistakes_raised; }

@implementation SimulatedCommandBuffer
- (id)simulatedEncoder:(SimulatedEncoder*)encoder {
  objc_simulator_raise_misuse();
  require(!committed_, "an encoder was asked of a command buffer that is committed");
  require(
      ![self simulatedIsEncoding],
      "a command encoder is already encoding to this command buffer: endEncoding is missing, or an exception passed "
      "over it; on a Mac this ends the process");
  encoder_ = encoder;
  encoding_ = moment();
  encoder->commands_ = self;
  return encoder;
}
- (bool)simulatedIsEncoding {
  return encoder_ != nil && encoding_ == moment();
}
- (void)simulatedCommand:(std::function<void()>)command {
  commands_.push_back(std::move(command));
}
- (instancetype)init {
  mistakes_before_ = mistakes_raised;
  return self;
}
- (void)dealloc {
  if (!committed_ && !commands_.empty() && mistakes_before_ == mistakes_raised) {
    const auto text = "Metal, simulated: a command buffer with " + std::to_string(commands_.size()) +
        " encoded command(s) was released without commit: none of them ran";
    objc_simulator_note_misuse(text.c_str());
  }
}
METHOD(id<MTLComputeCommandEncoder>, computeCommandEncoder, [self simulatedEncoder:[SimulatedComputeEncoder new]])
- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDispatchType:(MTLDispatchType)type {
  return [self computeCommandEncoder];
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDescriptor:(MTLComputePassDescriptor*)descriptor {
  return [self computeCommandEncoder];
}
METHOD(id<MTLBlitCommandEncoder>, blitCommandEncoder, [self simulatedEncoder:[SimulatedBlitEncoder new]])
- (id<MTLBlitCommandEncoder>)blitCommandEncoderWithDescriptor:(MTLBlitPassDescriptor*)descriptor {
  return [self blitCommandEncoder];
}
IGNORED(enqueue)
- (void)commit {
  objc_simulator_raise_misuse();
  require(![self simulatedIsEncoding], "commit was called while a command encoder is encoding: endEncoding is missing");
  require(!committed_, "commit was called twice on the same command buffer");
  committed_ = true;
  for (auto& block : std::exchange(scheduled_, {})) {
    block((id)self);
  }
  for (auto& command : std::exchange(commands_, {})) {
    command();
  }
  for (auto& block : std::exchange(completed_, {})) {
    block((id)self);
  }
}
- (void)waitUntilCompleted {
  ++waits;
  require(committed_, "waitUntilCompleted was called before commit: on a Mac this never returns");
}
- (void)waitUntilScheduled {
  require(committed_, "waitUntilScheduled was called before commit: on a Mac this never returns");
}
- (void)addCompletedHandler:(void (^)(id<MTLCommandBuffer>))block {
  require(!committed_, "addCompletedHandler: was called after commit");
  completed_.push_back([block copy]);
}
- (void)addScheduledHandler:(void (^)(id<MTLCommandBuffer>))block {
  require(!committed_, "addScheduledHandler: was called after commit");
  scheduled_.push_back([block copy]);
}
METHOD(MTLCommandBufferStatus, status, committed_ ? MTLCommandBufferStatusCompleted : MTLCommandBufferStatusNotEnqueued)
METHOD(NSError*, error, nil)
// No GPU time passes.
METHOD(double, GPUStartTime, 0)
METHOD(double, GPUEndTime, 0)
METHOD(double, kernelStartTime, 0)
METHOD(double, kernelEndTime, 0)
METHOD(id<MTLCommandQueue>, commandQueue, queue_)
IGNORED_WITH(pushDebugGroup, NSString*)
IGNORED(popDebugGroup)
METHOD(BOOL, retainedReferences, YES)
METHOD(MTLCommandBufferErrorOption, errorOptions, MTLCommandBufferErrorOptionNone)
METHOD(id<MTLLogContainer>, logs, nil)
// All memory is resident.
IGNORED_WITH(useResidencySet, id<MTLResidencySet>)
- (void)useResidencySets:(const id<MTLResidencySet>*)sets count:(NSUInteger)count {
}
- (void)encodeSignalEvent:(id<MTLEvent>)event value:(uint64_t)value {
  require(![self simulatedIsEncoding], "encodeSignalEvent: was called while a command encoder is encoding");
  [self simulatedCommand:[event, value] { [(id<MTLSharedEvent>)event setSignaledValue:value]; }];
}
// Command buffers run one after another, so an event that is not signalled now never will be.
- (void)encodeWaitForEvent:(id<MTLEvent>)event value:(uint64_t)value {
  require(![self simulatedIsEncoding], "encodeWaitForEvent: was called while a command encoder is encoding");
  [self simulatedCommand:[event, value] {
    const uint64_t now = [(id<MTLSharedEvent>)event signaledValue];
    require(
        now >= value,
        "a command buffer waits for an event at " + std::to_string(value) + ", which is at " + std::to_string(now) +
            ": commit the signalling command buffer first");
  }];
}
@end

@implementation SimulatedStreamCommandBuffer
- (void)simulatedCommand:(std::function<void()>)command {
  command();
}
@end

// torch's stream returns this: a command buffer that continues with a new one after each commit.
@implementation MPSCommandBuffer {
  SimulatedCommandBuffer* root_;
}
+ (instancetype)commandBufferFromCommandQueue:(id<MTLCommandQueue>)queue {
  return [[self alloc] initWithCommandBuffer:[queue commandBuffer]];
}
+ (instancetype)commandBufferWithCommandBuffer:(id<MTLCommandBuffer>)buffer {
  return [[self alloc] initWithCommandBuffer:buffer];
}
- (instancetype)initWithCommandBuffer:(id<MTLCommandBuffer>)buffer {
  root_ = (SimulatedCommandBuffer*)buffer;
  return self;
}
METHOD(id<MTLCommandBuffer>, commandBuffer, (id)root_)
METHOD(id<MTLCommandBuffer>, rootCommandBuffer, (id)root_)
- (void)commitAndContinue {
  [root_ commit];
  SimulatedCommandBuffer* next = [[root_ class] new];
  next->queue_ = root_->queue_;
  root_ = next;
}
FORWARDED(void, commit, root_)
IGNORED(enqueue)
FORWARDED(void, waitUntilCompleted, root_)
FORWARDED(void, waitUntilScheduled, root_)
FORWARDED_WITH(void, addCompletedHandler, id, root_)
FORWARDED_WITH(void, addScheduledHandler, id, root_)
FORWARDED(id<MTLComputeCommandEncoder>, computeCommandEncoder, root_)
- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDispatchType:(MTLDispatchType)type {
  return [root_ computeCommandEncoder];
}
FORWARDED_WITH(id<MTLComputeCommandEncoder>, computeCommandEncoderWithDescriptor, MTLComputePassDescriptor*, root_)
FORWARDED(id<MTLBlitCommandEncoder>, blitCommandEncoder, root_)
FORWARDED_WITH(id<MTLBlitCommandEncoder>, blitCommandEncoderWithDescriptor, MTLBlitPassDescriptor*, root_)
- (void)encodeSignalEvent:(id<MTLEvent>)event value:(uint64_t)value {
  [root_ encodeSignalEvent:event value:value];
}
- (void)encodeWaitForEvent:(id<MTLEvent>)event value:(uint64_t)value {
  [root_ encodeWaitForEvent:event value:value];
}
FORWARDED(MTLCommandBufferStatus, status, root_)
METHOD(NSError*, error, nil)
METHOD(double, GPUStartTime, 0)
METHOD(double, GPUEndTime, 0)
METHOD(double, kernelStartTime, 0)
METHOD(double, kernelEndTime, 0)
FORWARDED(id<MTLCommandQueue>, commandQueue, root_)
METHOD(id<MTLDevice>, device, simulated_device())
FORWARDED(NSString*, label, root_)
FORWARDED_WITH(void, setLabel, NSString*, root_)
IGNORED_WITH(pushDebugGroup, NSString*)
IGNORED(popDebugGroup)
FORWARDED(BOOL, retainedReferences, root_)
FORWARDED(MTLCommandBufferErrorOption, errorOptions, root_)
FORWARDED(id<MTLLogContainer>, logs, root_)
IGNORED_WITH(useResidencySet, id<MTLResidencySet>)
- (void)useResidencySets:(void*)sets count:(double)count {
}
IGNORED_WITH(prefetchHeapForWorkloadSize, double)
@end

@implementation SimulatedCommandQueue
- (id)simulatedBufferOf:(Class)kind {
  SimulatedCommandBuffer* buffer = [kind new];
  buffer->queue_ = self;
  return buffer;
}
METHOD(
    id<MTLCommandBuffer>, simulatedStreamCommandBuffer, [self simulatedBufferOf:[SimulatedStreamCommandBuffer class]])
METHOD(id<MTLCommandBuffer>, commandBuffer, [self simulatedBufferOf:[SimulatedCommandBuffer class]])
METHOD(id<MTLCommandBuffer>, commandBufferWithUnretainedReferences, [self commandBuffer])
- (id<MTLCommandBuffer>)commandBufferWithDescriptor:(MTLCommandBufferDescriptor*)descriptor {
  return [self commandBuffer];
}
IGNORED(insertDebugCaptureBoundary)
IGNORED_WITH(addResidencySet, id<MTLResidencySet>)
- (void)addResidencySets:(const id<MTLResidencySet>*)sets count:(NSUInteger)count {
}
IGNORED_WITH(removeResidencySet, id<MTLResidencySet>)
- (void)removeResidencySets:(const id<MTLResidencySet>*)sets count:(NSUInteger)count {
}
@end

@implementation SimulatedEvent {
  uint64_t value_;
}
PROPERTY(uint64_t, signaledValue, setSignaledValue, value_)
- (BOOL)waitUntilSignaledValue:(uint64_t)value timeoutMS:(uint64_t)milliseconds {
  return value_ >= value;
}
@end
