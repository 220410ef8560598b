// The device, which creates all other objects of Metal. Compiled with ARC.
#include <cstring>

#include "../foundation/text.h"
#include "../foundation/values.h"
#include "host.h"

NSError* simulated_error(const char* domain, const std::string& message) {
  return [NSError simulatedErrorOf:string_of(domain) message:string_of(message)];
}

@interface SimulatedDevice : NSObject
@end
@implementation SimulatedDevice
METHOD(NSString*, name, @"Apple GPU, simulated by mpsmith")
METHOD(BOOL, hasUnifiedMemory, YES)
METHOD(BOOL, isHeadless, YES)
METHOD(BOOL, isLowPower, NO)
METHOD(uint64_t, registryID, 1)
METHOD(NSUInteger, maxBufferLength, 1ul << 34)
METHOD(uint64_t, recommendedMaxWorkingSetSize, 1ul << 34)
METHOD(NSUInteger, currentAllocatedSize, 0)
METHOD(NSUInteger, maxThreadgroupMemoryLength, 32768)
METHOD(MTLSize, maxThreadsPerThreadgroup, MTLSizeMake(1024, 1024, 1024))
// An M2: Apple 1 to 8, Mac 2, Common 1 to 3, Metal 3.
- (BOOL)supportsFamily:(MTLGPUFamily)family {
  return (family >= 1001 && family <= 1008) || family == 2002 || (family >= 3001 && family <= 3003) || family == 5001;
}
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options {
  return [SimulatedBuffer simulatedOf:length];
}
- (id<MTLBuffer>)newBufferWithBytes:(const void*)bytes length:(NSUInteger)length options:(MTLResourceOptions)options {
  id<MTLBuffer> buffer = [SimulatedBuffer simulatedOf:length];
  std::memcpy([buffer contents], bytes, length);
  return buffer;
}
- (id<MTLBuffer>)newBufferWithBytesNoCopy:(const void*)bytes
                                   length:(NSUInteger)length
                                  options:(MTLResourceOptions)options
                              deallocator:(void (^)(void*, NSUInteger))deallocator {
  return [SimulatedBuffer simulatedOver:const_cast<void*>(bytes) length:length deallocator:deallocator];
}
METHOD(id<MTLCommandQueue>, newCommandQueue, (id)[SimulatedCommandQueue new])
- (id<MTLCommandQueue>)newCommandQueueWithMaxCommandBufferCount:(NSUInteger)count {
  return [self newCommandQueue];
}
METHOD(id<MTLSharedEvent>, newSharedEvent, (id)[SimulatedEvent new])
METHOD(id<MTLEvent>, newEvent, (id)[SimulatedEvent new])
- (id<MTLLibrary>)newLibraryWithSource:(NSString*)source
                               options:(MTLCompileOptions*)options
                                 error:(NSError* __autoreleasing*)error {
  require(source != nil, "newLibraryWithSource: needs a source, not nil");
  std::string text;
  NSDictionary* macros = options.preprocessorMacros;
  for (NSString* name in macros) {
    text += "#define " + text_of(name) + " " + text_of([[macros objectForKey:name] description]) + "\n";
  }
  text += text.empty() ? "" : "#line 1\n";
  text += source.UTF8String;
  SimulatedLibrary* library = [SimulatedLibrary new];
  if (const char* problem = metal_programs.compile(text.data(), text.size(), &library->number_)) {
    if (error) {
      *error = simulated_error("MTLLibraryErrorDomain", problem);
    }
    return nil;
  }
  return (id)library;
}
// A .metallib, or for the compiled kernels of a release the name of a section of its binary (simulator/upstream/host).
- (id<MTLLibrary>)newLibraryWithData:(NSData*)data error:(NSError* __autoreleasing*)error {
  require(data != nil, "newLibraryWithData: needs data, not nil");
  SimulatedLibrary* library = [SimulatedLibrary new];
  if (const char* problem = metal_programs.load(data.bytes, data.length, &library->number_)) {
    if (error) {
      *error = simulated_error("MTLLibraryErrorDomain", problem);
    }
    return nil;
  }
  return (id)library;
}
- (id<MTLLibrary>)newLibraryWithURL:(NSURL*)url error:(NSError* __autoreleasing*)error {
  NSString* path = url.path;
  NSData* data = path == nil ? nil : [NSData dataWithContentsOfFile:path options:0 error:nil];
  if (data == nil) {
    if (error) {
      *error = simulated_error("MTLLibraryErrorDomain", "there is no library " + text_of(path ?: @"(nil)"));
    }
    return nil;
  }
  return [self newLibraryWithData:(id)data error:error];
}
- (id<MTLLibrary>)newLibraryWithFile:(NSString*)path error:(NSError* __autoreleasing*)error {
  return [self newLibraryWithURL:path == nil ? nil : [NSURL fileURLWithPath:path] error:error];
}
// The bundle of a Python program has no default.metallib.
METHOD(id<MTLLibrary>, newDefaultLibrary, nil)
- (id<MTLComputePipelineState>)newComputePipelineStateWithFunction:(id<MTLFunction>)function
                                                             error:(NSError* __autoreleasing*)error {
  require(function != nil, "newComputePipelineStateWithFunction: needs a function, not nil");
  SimulatedFunction* of = (SimulatedFunction*)function;
  SimulatedPipeline* pipeline = [SimulatedPipeline new];
  if (const char* problem = metal_programs.kernel(of->library_, of->name_.UTF8String, &pipeline->kernel_)) {
    if (error) {
      *error = simulated_error("AGXMetal", problem);
    }
    return nil;
  }
  pipeline->label_ = of->name_;
  return (id)pipeline;
}
- (id<MTLComputePipelineState>)
    newComputePipelineStateWithDescriptor:(MTLComputePipelineDescriptor*)descriptor
                                  options:(MTLPipelineOption)options
                               reflection:(const MTLAutoreleasedComputePipelineReflection*)reflection
                                    error:(NSError* __autoreleasing*)error {
  return [self newComputePipelineStateWithFunction:descriptor.computeFunction error:error];
}
@end

id<MTLDevice> simulated_device() {
  static auto* kept = (__bridge_retained void*)[SimulatedDevice new];
  return (__bridge id<MTLDevice>)kept;
}
extern "C" id<MTLDevice> MTLCreateSystemDefaultDevice() { return simulated_device(); }
extern "C" NSArray<id<MTLDevice>>* MTLCopyAllDevices() { return [NSArray arrayWithObject:simulated_device()]; }
// Devices neither come nor go. metal-cpp refers to these.
extern "C" NSArray<id<MTLDevice>>* MTLCopyAllDevicesWithObserver(id*, id) { return MTLCopyAllDevices(); }
extern "C" void MTLRemoveDeviceObserver(id) {}
