#include "programs.h"

#include <simd/simd.h>

std::string as_metal_cpp();

PROGRAM(kernel) {
  Metal metal;
  id<MTLComputePipelineState> state = metal.pipeline(kCount);
  id<MTLBuffer> out = metal.floats(100);
  id<MTLComputeCommandEncoder> encoder = [metal.commands computeCommandEncoder];
  const float step = 0.5f;
  [encoder setComputePipelineState:state];
  [encoder setBuffer:out offset:0 atIndex:0];
  [encoder setBytes:&step length:sizeof(step) atIndex:1];
  [encoder dispatchThreads:size(100) threadsPerThreadgroup:size(state.threadExecutionWidth)];
  [encoder endEncoding];
  const float before = at(out, 99);
  __block int completed = 0;
  [metal.commands addCompletedHandler:^(id<MTLCommandBuffer> commands) {
    completed += commands.status == MTLCommandBufferStatusCompleted;
  }];
  [metal.commands commit];
  [metal.commands waitUntilCompleted];
  return number(before) + " then " + number(at(out, 99)) + ", completed " + std::to_string(completed);
}
PROGRAM(descriptors) {
  Metal metal;
  id<MTLComputePipelineState> state = metal.pipeline(kCount);
  id<MTLBuffer> out = metal.floats(8), copy = metal.floats(8);
  MTLCommandBufferDescriptor* descriptor = [MTLCommandBufferDescriptor new];
  descriptor.errorOptions = MTLCommandBufferErrorOptionEncoderExecutionStatus;
  id<MTLCommandBuffer> commands = [metal.queue commandBufferWithDescriptor:descriptor];
  MTLComputePassDescriptor* pass = [MTLComputePassDescriptor computePassDescriptor];
  pass.dispatchType = MTLDispatchTypeConcurrent;
  id<MTLComputeCommandEncoder> encoder = [commands computeCommandEncoderWithDescriptor:pass];
  const float step = 2;
  [encoder setComputePipelineState:state];
  [encoder setBuffer:out offset:0 atIndex:0];
  [encoder setBytes:&step length:sizeof(step) atIndex:1];
  [encoder dispatchThreads:size(8) threadsPerThreadgroup:size(8)];
  [encoder endEncoding];
  id<MTLBlitCommandEncoder> blit =
      [commands blitCommandEncoderWithDescriptor:[MTLBlitPassDescriptor blitPassDescriptor]];
  [blit copyFromBuffer:out sourceOffset:0 toBuffer:copy destinationOffset:0 size:8 * sizeof(float)];
  [blit endEncoding];
  [commands commit];
  return number(at(copy, 7)) + (commands.retainedReferences ? " retained" : "") + (commands.logs == nil ? "" : " logs");
}
PROGRAM(threadgroups) {
  Metal metal;
  id<MTLComputePipelineState> state = metal.pipeline(R"(
    kernel void k(device float* out [[buffer(0)]], threadgroup float* shared [[threadgroup(0)]],
                  uint i [[thread_position_in_threadgroup]], uint g [[threadgroup_position_in_grid]],
                  uint n [[threads_per_threadgroup]]) {
      shared[i] = i + g;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (i == 0) { float sum = 0; for (uint j = 0; j < n; ++j) sum += shared[j]; out[g] = sum; }
    })");
  id<MTLBuffer> out = metal.floats(3);
  id<MTLComputeCommandEncoder> encoder = [metal.commands computeCommandEncoder];
  [encoder setComputePipelineState:state];
  [encoder setBuffer:out offset:0 atIndex:0];
  [encoder setThreadgroupMemoryLength:64 * sizeof(float) atIndex:0];
  [encoder dispatchThreadgroups:size(3) threadsPerThreadgroup:size(64)];
  [encoder endEncoding];
  [metal.commands commit];
  return number(at(out, 0)) + " " + number(at(out, 2));
}
PROGRAM(function_constants) {
  Metal metal;
  id<MTLLibrary> library = metal.library(R"(
    constant int step [[function_constant(0)]];
    constant float scale [[function_constant(1)]];
    constant bool given = is_function_constant_defined(scale);
    kernel void k(device float* out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
      out[i] = i * step + (given ? scale : 0.0f);
    })");
  std::string said;
  for (int with_scale = 0; with_scale < 2; ++with_scale) {
    MTLFunctionConstantValues* values = [MTLFunctionConstantValues new];
    const int step = 10 + with_scale;
    const float scale = 0.25f;
    [values setConstantValue:&step type:MTLDataTypeInt atIndex:0];
    if (with_scale) {
      [values setConstantValue:&scale type:MTLDataTypeFloat withName:@"scale"];
    }
    NSError* error = nil;
    id<MTLFunction> function = [library newFunctionWithName:@"k" constantValues:values error:&error];
    id<MTLComputePipelineState> state = [metal.device newComputePipelineStateWithFunction:function error:&error];
    id<MTLCommandBuffer> commands = [metal.queue commandBuffer];
    id<MTLComputeCommandEncoder> encoder = [commands computeCommandEncoder];
    id<MTLBuffer> out = metal.floats(4);
    [encoder setComputePipelineState:state];
    [encoder setBuffer:out offset:0 atIndex:0];
    [encoder dispatchThreads:size(4) threadsPerThreadgroup:size(4)];
    [encoder endEncoding];
    [commands commit];
    said += number(at(out, 3)) + " ";
  }
  return said;
}
// Two arrays of pointers and one more, as torch's optimizers pass the tensors of many parameters.
static const char* const kPointers = R"(
struct Arguments {
  metal::array<device float*, 2> to [[id(0)]];
  metal::array<device const float*, 2> from [[id(2)]];
  device float* by [[id(4)]];
};
kernel void k(constant Arguments& all [[buffer(0)]], uint2 i [[thread_position_in_grid]]) {
  all.to[i.y][i.x] = all.from[i.y][i.x] * *all.by;
})";
PROGRAM(argument_encoder) {
  Metal metal;
  id<MTLFunction> function = [metal.library(kPointers) newFunctionWithName:@"k"];
  id<MTLComputePipelineState> state = [metal.device newComputePipelineStateWithFunction:function error:nil];
  id<MTLArgumentEncoder> pointers = [function newArgumentEncoderWithBufferIndex:0];
  id<MTLBuffer> arguments = [metal.device newBufferWithLength:pointers.encodedLength options:0];
  [pointers setArgumentBuffer:arguments offset:0];
  id<MTLBuffer> to[2] = {metal.floats(2), metal.floats(3)};
  const float values[] = {1, 2, 3, 4, 5};
  id<MTLBuffer> from = [metal.device newBufferWithBytes:values length:sizeof(values) options:0];
  NSUInteger offsets[2] = {0, sizeof(float)};
  [pointers setBuffers:to offsets:offsets withRange:NSMakeRange(0, 2)];
  [pointers setBuffer:from offset:0 atIndex:2];
  [pointers setBuffer:from offset:2 * sizeof(float) atIndex:3];
  [pointers setBuffer:from offset:4 * sizeof(float) atIndex:4];
  id<MTLComputeCommandEncoder> encoder = [metal.commands computeCommandEncoder];
  [encoder setComputePipelineState:state];
  [encoder setBuffer:arguments offset:0 atIndex:0];
  for (id<MTLBuffer> used : {to[0], to[1], from}) {
    [encoder useResource:used usage:MTLResourceUsageRead | MTLResourceUsageWrite];
  }
  [encoder dispatchThreads:size(2, 2) threadsPerThreadgroup:size(2, 2)];
  [encoder endEncoding];
  [metal.commands commit];
  return std::to_string(pointers.encodedLength) + " bytes: " + number(at(to[0], 0)) + " " + number(at(to[0], 1)) + " " +
      number(at(to[1], 1)) + " " + number(at(to[1], 2));
}
PROGRAM(blit) {
  Metal metal;
  const char bytes[] = "abcdefgh";
  id<MTLBuffer> from = [metal.device newBufferWithBytes:bytes length:8 options:MTLResourceStorageModeShared];
  id<MTLBuffer> to = [metal.device newBufferWithLength:8 options:MTLResourceStorageModeShared];
  id<MTLBlitCommandEncoder> encoder = [metal.commands blitCommandEncoder];
  [encoder fillBuffer:to range:NSMakeRange(0, 8) value:'-'];
  [encoder copyFromBuffer:from sourceOffset:2 toBuffer:to destinationOffset:1 size:4];
  [encoder endEncoding];
  [metal.commands commit];
  return std::string((const char*)[to contents], 8);
}
PROGRAM(no_copy) {
  Metal metal;
  static float memory[4] = {1, 2, 3, 4};
  __block std::string said;
  @autoreleasepool {
    id<MTLBuffer> buffer = [metal.device newBufferWithBytesNoCopy:memory
                                                           length:sizeof(memory)
                                                          options:MTLResourceStorageModeShared
                                                      deallocator:^(void* pointer, NSUInteger length) {
                                                        said += pointer == memory ? " given back" : " wrong";
                                                      }];
    said = [buffer contents] == memory ? "same" : "copied";
  }
  return said;
}
PROGRAM(events) {
  Metal metal;
  id<MTLSharedEvent> event = [metal.device newSharedEvent];
  id<MTLCommandBuffer> waits = [metal.queue commandBuffer];
  [metal.commands encodeSignalEvent:event value:3];
  [waits encodeWaitForEvent:event value:3];
  const uint64_t before = event.signaledValue;
  [metal.commands commit];
  [waits commit];
  return std::to_string(before) + " then " + std::to_string(event.signaledValue);
}
PROGRAM(macros) {
  Metal metal;
  MTLCompileOptions* options = [MTLCompileOptions new];
  options.preprocessorMacros = @{@"NAME" : @"from_macro", @"VALUE" : @7};
  id<MTLLibrary> library =
      [metal.device newLibraryWithSource:@"kernel void NAME(device int* o [[buffer(0)]]) { *o = VALUE; }"
                                 options:options
                                   error:nil];
  return text(library.functionNames);
}
PROGRAM(metal_error) {
  Metal metal;
  id<MTLLibrary> library = metal.library("kernel void k(\n  device flot* o [[buffer(0)]]) {}");
  return std::string(library == nil ? "nil: " : "built: ") + text(metal.error.localizedDescription);
}
PROGRAM(no_such_function) {
  Metal metal;
  return text([metal.library(kCount) newFunctionWithName:@"other"]);
}
PROGRAM(metallib) {
  Metal metal;
  NSError* error = nil;
  id<MTLLibrary> library = [metal.device newLibraryWithURL:[NSURL fileURLWithPath:@"x.metallib"] error:&error];
  return text(library) + " " + text([metal.device newDefaultLibrary]) + ": " + text(error);
}
PROGRAM(labels) {
  Metal metal;
  id<MTLFunction> function = [metal.library(kPointers) newFunctionWithName:@"k"];
  id<MTLComputePipelineState> state = [metal.device newComputePipelineStateWithFunction:function error:nil];
  std::string said = text(function.label) + " " + text(state.label) + ":";
  id<MTLComputeCommandEncoder> encoder = [metal.commands computeCommandEncoder];
  NSArray* objects = @[
    metal.queue, metal.commands, encoder, metal.library(kCount), function, metal.floats(1),
    [function newArgumentEncoderWithBufferIndex:0], [metal.device newSharedEvent]
  ];
  int labelled = 0;
  for (id object in objects) {
    NSString* label = [NSString stringWithFormat:@"label %d", labelled];
    [object setLabel:label];
    labelled += [[object label] isEqualToString:label] && [object device] == metal.device;
  }
  [encoder endEncoding];
  said += " " + std::to_string(labelled) + " of " + std::to_string(objects.count);
  return said + ([state respondsToSelector:@selector(setLabel:)] ? ", a pipeline too" : "") +
      ([state device] == metal.device ? "" : ", of no device");
}
PROGRAM(device) {
  Metal metal;
  return text(metal.device.name) + ([metal.device supportsFamily:MTLGPUFamilyApple7] ? " Apple7 " : " ") +
      std::to_string(metal.device.maxThreadgroupMemoryLength);
}

// ------------------------------------------------------------------------------------------------ misuse
PROGRAM(argument_of_no_structure) {
  Metal metal;
  [[metal.library(kCount) newFunctionWithName:@"k"] newArgumentEncoderWithBufferIndex:0];
  return "ran";
}
PROGRAM(argument_without_a_buffer) {
  Metal metal;
  id<MTLFunction> function = [metal.library(kPointers) newFunctionWithName:@"k"];
  [[function newArgumentEncoderWithBufferIndex:0] setBuffer:metal.floats(1) offset:0 atIndex:0];
  return "ran";
}
PROGRAM(argument_beyond_the_structure) {
  Metal metal;
  id<MTLFunction> function = [metal.library(kPointers) newFunctionWithName:@"k"];
  id<MTLArgumentEncoder> pointers = [function newArgumentEncoderWithBufferIndex:0];
  [pointers setArgumentBuffer:metal.floats(10) offset:0];
  [pointers setBuffer:metal.floats(1) offset:0 atIndex:5];
  return "ran";
}
PROGRAM(argument_buffer_too_small) {
  Metal metal;
  id<MTLFunction> function = [metal.library(kPointers) newFunctionWithName:@"k"];
  [[function newArgumentEncoderWithBufferIndex:0] setArgumentBuffer:metal.floats(10) offset:4];
  return "ran";
}
// An encoder that has everything bound for kCount.
struct Encoding : Metal {
  id<MTLComputePipelineState> state = pipeline(kCount);
  id<MTLBuffer> out = floats(4);
  id<MTLComputeCommandEncoder> encoder = [commands computeCommandEncoder];
  float step = 1;
  Encoding() {
    [encoder setComputePipelineState:state];
    [encoder setBuffer:out offset:0 atIndex:0];
    [encoder setBytes:&step length:sizeof(step) atIndex:1];
  }
  void run(NSUInteger threads, NSUInteger group) {
    [encoder dispatchThreads:size(threads) threadsPerThreadgroup:size(group)];
    [encoder endEncoding];
    [commands commit];
  }
};
PROGRAM(second_encoder) {
  Encoding metal;
  [metal.commands blitCommandEncoder];
  return "ran";
}
PROGRAM(commit_while_encoding) {
  Encoding metal;
  [metal.commands commit];
  return "ran";
}
PROGRAM(committed_twice) {
  Encoding metal;
  metal.run(4, 4);
  [metal.commands commit];
  return "ran";
}
PROGRAM(encoder_after_commit) {
  Encoding metal;
  metal.run(4, 4);
  [metal.commands computeCommandEncoder];
  return "ran";
}
PROGRAM(wait_before_commit) {
  Metal metal;
  [metal.commands waitUntilCompleted];
  return "ran";
}
PROGRAM(never_committed) {
  @autoreleasepool {
    Encoding metal;
    [metal.encoder dispatchThreads:size(4) threadsPerThreadgroup:size(4)];
    [metal.encoder endEncoding];
  }
  Metal next;
  [next.commands computeCommandEncoder];
  return "ran";
}
PROGRAM(never_ended) {
  @autoreleasepool {
    Encoding metal;
  }
  Metal next;
  [next.commands computeCommandEncoder];
  return "ran";
}
PROGRAM(command_after_end) {
  Encoding metal;
  [metal.encoder endEncoding];
  [metal.encoder setBuffer:metal.out offset:0 atIndex:0];
  return "ran";
}
PROGRAM(ended_twice) {
  Encoding metal;
  [metal.encoder endEncoding];
  [metal.encoder endEncoding];
  return "ran";
}
PROGRAM(no_pipeline) {
  Metal metal;
  [[metal.commands computeCommandEncoder] dispatchThreads:size(4) threadsPerThreadgroup:size(4)];
  return "ran";
}
PROGRAM(unset_bytes) {
  Encoding metal;
  [metal.encoder setBuffer:nil offset:0 atIndex:1];
  metal.run(4, 4);
  return "ran";
}
PROGRAM(unset_pointer) {
  Encoding metal;
  [metal.encoder setBuffer:nil offset:0 atIndex:0];
  metal.run(4, 4);
  return "ran";
}
PROGRAM(too_few_bytes) {
  Encoding metal;
  const short small = 1;
  [metal.encoder setBytes:&small length:sizeof(small) atIndex:1];
  metal.run(4, 4);
  return "ran";
}
PROGRAM(store_beyond_buffer) {
  Encoding metal;
  metal.run(64, 64);
  return "ran";
}
PROGRAM(index_beyond_30) {
  Encoding metal;
  [metal.encoder setBuffer:metal.out offset:0 atIndex:31];
  return "ran";
}
PROGRAM(offset_beyond_buffer) {
  Encoding metal;
  [metal.encoder setBuffer:metal.out offset:17 atIndex:0];
  return "ran";
}
PROGRAM(large_set_bytes) {
  Encoding metal;
  static char bytes[4097];
  [metal.encoder setBytes:bytes length:sizeof(bytes) atIndex:1];
  return "ran";
}
PROGRAM(large_group) {
  Encoding metal;
  metal.run(2048, 2048);
  return "ran";
}
PROGRAM(empty_group) {
  Encoding metal;
  metal.run(4, 0);
  return "ran";
}
PROGRAM(empty_grid) {
  Encoding metal;
  metal.run(0, 4);
  return "ran";
}
PROGRAM(simd) {
  const simd_float3 a = simd_make_float3(1, 2, 3), c = simd_cross(a, simd_float3{4, 5, 6});
  return std::to_string(sizeof(a)) + ": " + std::to_string(int(c.x)) + " " + std::to_string(int(c.y)) + " " +
      std::to_string(int(simd_dot(a, a))) + " " + std::to_string(int(simd_length(simd_make_float2(3, 4))));
}
PROGRAM(empty_indirect_grid) { // the validation does not read the buffer
  Encoding metal;
  id<MTLBuffer> counts = [metal.device newBufferWithLength:12 options:MTLResourceStorageModeShared];
  [metal.encoder dispatchThreadgroupsWithIndirectBuffer:counts
                                   indirectBufferOffset:0
                                  threadsPerThreadgroup:size(4)];
  [metal.encoder endEncoding];
  [metal.commands commit];
  [metal.commands waitUntilCompleted];
  return "completed " + std::to_string(metal.commands.status == MTLCommandBufferStatusCompleted);
}
PROGRAM(cxx_alone) { return as_metal_cpp(); }
PROGRAM(much_threadgroup_memory) {
  Encoding metal;
  [metal.encoder setThreadgroupMemoryLength:32768 + 16 atIndex:0];
  metal.run(4, 4);
  return "ran";
}
PROGRAM(uneven_threadgroup_memory) {
  Encoding metal;
  [metal.encoder setThreadgroupMemoryLength:24 atIndex:0];
  metal.run(4, 4);
  return "ran";
}
PROGRAM(empty_buffer) {
  Metal metal;
  id<MTLBuffer> buffer = [metal.device newBufferWithLength:0 options:MTLResourceStorageModeShared];
  return buffer == nil ? "ran" : "a buffer";
}
PROGRAM(fill_beyond_buffer) {
  Metal metal;
  [[metal.commands blitCommandEncoder] fillBuffer:metal.floats(1) range:NSMakeRange(2, 3) value:0];
  return "ran";
}
PROGRAM(copy_beyond_buffer) {
  Metal metal;
  [[metal.commands blitCommandEncoder] copyFromBuffer:metal.floats(4)
                                         sourceOffset:0
                                             toBuffer:metal.floats(1)
                                    destinationOffset:0
                                                 size:8];
  return "ran";
}
PROGRAM(event_never_signalled) {
  Metal metal;
  [metal.commands encodeWaitForEvent:[metal.device newSharedEvent] value:1];
  [metal.commands commit];
  return "ran";
}
PROGRAM(buffer_after_release) {
  Metal metal;
  void* address;
  @autoreleasepool {
    address = (__bridge void*)metal.floats(4);
  }
  [[metal.commands computeCommandEncoder] setBuffer:(__bridge id<MTLBuffer>)address offset:0 atIndex:0];
  return "ran";
}

extern "C" void objc_simulator_raise_misuse();
extern "C" const char* run(const char* name) {
  static std::string said;
  @autoreleasepool {
    try {
      said = programs().at(name)();
    } catch (const std::exception& error) {
      said = std::string("threw: ") + error.what();
    }
  }
  try {
    objc_simulator_raise_misuse(); // one program's is not the next one's
  } catch (const std::exception&) {
  }
  return said.c_str();
}
