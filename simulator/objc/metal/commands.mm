// Command queues, command buffers and events. Compiled with ARC.
#import <MetalPerformanceShaders/MetalPerformanceShaders.h>

#include <utility>

#include "host.h"

std::atomic<int> mistakes_raised{0};

@implementation SimulatedCommandBuffer
- (id)simulatedEncoder:(SimulatedEncoder*)encoder {
  objc_simulator_raise_misuse();
  require(!committed_, "an encoder was asked of a command buffer that is committed");
  require(!encoding_, "a command encoder is already encoding to this command buffer");
  encoding_ = true;
  encoder->commands_ = self;
  return encoder;
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
- (id<MTLComputeCommandEncoder>)computeCommandEncoder {
  return [self simulatedEncoder:[SimulatedComputeEncoder new]];
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDispatchType:(MTLDispatchType)type {
  return [self computeCommandEncoder];
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDescriptor:(MTLComputePassDescriptor*)descriptor {
  return [self computeCommandEncoder];
}
- (id<MTLBlitCommandEncoder>)blitCommandEncoder {
  return [self simulatedEncoder:[SimulatedBlitEncoder new]];
}
- (id<MTLBlitCommandEncoder>)blitCommandEncoderWithDescriptor:(MTLBlitPassDescriptor*)descriptor {
  return [self blitCommandEncoder];
}
- (void)enqueue {
}
- (void)commit {
  objc_simulator_raise_misuse();
  require(!encoding_, "commit was called while a command encoder is encoding: endEncoding is missing");
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
- (MTLCommandBufferStatus)status {
  return committed_ ? MTLCommandBufferStatusCompleted : MTLCommandBufferStatusNotEnqueued;
}
- (NSError*)error {
  return nil;
}
// Nothing here takes a GPU's time.
- (double)GPUStartTime {
  return 0;
}
- (double)GPUEndTime {
  return 0;
}
- (double)kernelStartTime {
  return 0;
}
- (double)kernelEndTime {
  return 0;
}
- (id<MTLCommandQueue>)commandQueue {
  return queue_;
}
- (void)pushDebugGroup:(NSString*)name {
}
- (void)popDebugGroup {
}
- (BOOL)retainedReferences {
  return YES;
}
- (MTLCommandBufferErrorOption)errorOptions {
  return MTLCommandBufferErrorOptionNone;
}
- (id<MTLLogContainer>)logs {
  return nil;
}
// All memory is resident.
- (void)useResidencySet:(id<MTLResidencySet>)set {
}
- (void)useResidencySets:(const id<MTLResidencySet>*)sets count:(NSUInteger)count {
}
- (void)encodeSignalEvent:(id<MTLEvent>)event value:(uint64_t)value {
  require(!encoding_, "encodeSignalEvent: was called while a command encoder is encoding");
  [self simulatedCommand:[event, value] { [(id<MTLSharedEvent>)event setSignaledValue:value]; }];
}
// Command buffers run one after the other, so that an event which was not signalled by now never will be.
- (void)encodeWaitForEvent:(id<MTLEvent>)event value:(uint64_t)value {
  require(!encoding_, "encodeWaitForEvent: was called while a command encoder is encoding");
  [self simulatedCommand:[event, value] {
    const uint64_t now = [(id<MTLSharedEvent>)event signaledValue];
    require(
        now >= value,
        "a command buffer waits for an event at " + std::to_string(value) + ", which stands at " + std::to_string(now) +
            ": what signals it has to be committed first");
  }];
}
@end

@implementation SimulatedStreamCommandBuffer
- (void)simulatedCommand:(std::function<void()>)command {
  command();
}
@end

// What torch's stream hands out: a command buffer that goes on with a new one after each commit.
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
- (id<MTLCommandBuffer>)commandBuffer {
  return (id)root_;
}
- (id<MTLCommandBuffer>)rootCommandBuffer {
  return (id)root_;
}
- (void)commitAndContinue {
  [root_ commit];
  SimulatedCommandBuffer* next = [[root_ class] new];
  next->queue_ = root_->queue_;
  root_ = next;
}
- (void)commit {
  [root_ commit];
}
- (void)enqueue {
}
- (void)waitUntilCompleted {
  [root_ waitUntilCompleted];
}
- (void)waitUntilScheduled {
  [root_ waitUntilScheduled];
}
- (void)addCompletedHandler:(id)block {
  [root_ addCompletedHandler:block];
}
- (void)addScheduledHandler:(id)block {
  [root_ addScheduledHandler:block];
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoder {
  return [root_ computeCommandEncoder];
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDispatchType:(MTLDispatchType)type {
  return [root_ computeCommandEncoder];
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDescriptor:(MTLComputePassDescriptor*)descriptor {
  return [root_ computeCommandEncoderWithDescriptor:descriptor];
}
- (id<MTLBlitCommandEncoder>)blitCommandEncoder {
  return [root_ blitCommandEncoder];
}
- (id<MTLBlitCommandEncoder>)blitCommandEncoderWithDescriptor:(MTLBlitPassDescriptor*)descriptor {
  return [root_ blitCommandEncoderWithDescriptor:descriptor];
}
- (void)encodeSignalEvent:(id<MTLEvent>)event value:(uint64_t)value {
  [root_ encodeSignalEvent:event value:value];
}
- (void)encodeWaitForEvent:(id<MTLEvent>)event value:(uint64_t)value {
  [root_ encodeWaitForEvent:event value:value];
}
- (MTLCommandBufferStatus)status {
  return [root_ status];
}
- (NSError*)error {
  return nil;
}
- (double)GPUStartTime {
  return 0;
}
- (double)GPUEndTime {
  return 0;
}
- (double)kernelStartTime {
  return 0;
}
- (double)kernelEndTime {
  return 0;
}
- (id<MTLCommandQueue>)commandQueue {
  return [root_ commandQueue];
}
- (id<MTLDevice>)device {
  return simulated_device();
}
- (NSString*)label {
  return [root_ label];
}
- (void)setLabel:(NSString*)label {
  [root_ setLabel:label];
}
- (void)pushDebugGroup:(NSString*)name {
}
- (void)popDebugGroup {
}
- (BOOL)retainedReferences {
  return [root_ retainedReferences];
}
- (MTLCommandBufferErrorOption)errorOptions {
  return [root_ errorOptions];
}
- (id<MTLLogContainer>)logs {
  return [root_ logs];
}
- (void)useResidencySet:(id<MTLResidencySet>)set {
}
- (void)useResidencySets:(void*)sets count:(double)count {
}
- (void)prefetchHeapForWorkloadSize:(double)size {
}
@end

@implementation SimulatedCommandQueue
- (id)simulatedBufferOf:(Class)kind {
  SimulatedCommandBuffer* buffer = [kind new];
  buffer->queue_ = self;
  return buffer;
}
- (id<MTLCommandBuffer>)simulatedStreamCommandBuffer {
  return [self simulatedBufferOf:[SimulatedStreamCommandBuffer class]];
}
- (id<MTLCommandBuffer>)commandBuffer {
  return [self simulatedBufferOf:[SimulatedCommandBuffer class]];
}
- (id<MTLCommandBuffer>)commandBufferWithUnretainedReferences {
  return [self commandBuffer];
}
- (id<MTLCommandBuffer>)commandBufferWithDescriptor:(MTLCommandBufferDescriptor*)descriptor {
  return [self commandBuffer];
}
- (void)insertDebugCaptureBoundary {
}
- (void)addResidencySet:(id<MTLResidencySet>)set {
}
- (void)addResidencySets:(const id<MTLResidencySet>*)sets count:(NSUInteger)count {
}
- (void)removeResidencySet:(id<MTLResidencySet>)set {
}
- (void)removeResidencySets:(const id<MTLResidencySet>*)sets count:(NSUInteger)count {
}
@end

@implementation SimulatedEvent {
  uint64_t value_;
}
- (uint64_t)signaledValue {
  return value_;
}
- (void)setSignaledValue:(uint64_t)value {
  value_ = value;
}
- (BOOL)waitUntilSignaledValue:(uint64_t)value timeoutMS:(uint64_t)milliseconds {
  return value_ >= value;
}
@end
