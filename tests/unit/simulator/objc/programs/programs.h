// Small programs by name: `run` answers what a program says, or the text of what it threw.
#pragma once
#import <Foundation/Foundation.h>
#import <Metal/Metal.h>

#include <functional>
#include <map>
#include <stdexcept>
#include <string>

inline std::map<std::string, std::function<std::string()>>& programs() {
  static std::map<std::string, std::function<std::string()>> all;
  return all;
}
struct Program {
  Program(const char* name, std::function<std::string()> body) { programs()[name] = body; }
};
// PROGRAM(name) { ...; return text; }
#define PROGRAM(NAME)                               \
  static std::string NAME##_program();              \
  static Program NAME##_row(#NAME, &NAME##_program); \
  static std::string NAME##_program()

inline std::string text(id object) { return object ? [[object description] UTF8String] : "nil"; }

// What most programs of Metal begin with.
struct Metal {
  id<MTLDevice> device = MTLCreateSystemDefaultDevice();
  id<MTLCommandQueue> queue = [device newCommandQueue];
  id<MTLCommandBuffer> commands = [queue commandBuffer];
  NSError* error = nil; // of what failed last

  id<MTLLibrary> library(const char* source) {
    NSError* problem = nil;
    id<MTLLibrary> built = [device newLibraryWithSource:[NSString stringWithUTF8String:source]
                                                options:nil
                                                  error:&problem];
    error = problem;
    return built;
  }
  id<MTLComputePipelineState> pipeline(const char* source, const char* name = "k") {
    id<MTLLibrary> built = library(source);
    if (built == nil) {
      throw std::runtime_error(text(error));
    }
    id<MTLFunction> function = [built newFunctionWithName:[NSString stringWithUTF8String:name]];
    return [device newComputePipelineStateWithFunction:function error:nil];
  }
  id<MTLBuffer> floats(NSUInteger count) {
    return [device newBufferWithLength:count * sizeof(float) options:MTLResourceStorageModeShared];
  }
};
inline const char* kCount = R"(
kernel void k(device float* out [[buffer(0)]], constant float& step [[buffer(1)]],
              uint i [[thread_position_in_grid]]) { out[i] = i * step; }
)";
inline float at(id<MTLBuffer> buffer, int i) { return ((const float*)[buffer contents])[i]; }
inline MTLSize size(NSUInteger width, NSUInteger height = 1) { return MTLSizeMake(width, height, 1); }
inline std::string number(double value) { return [[@(value) description] UTF8String]; }
