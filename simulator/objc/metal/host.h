// The classes of the simulated Metal framework.
#pragma once
#import <Metal/Metal.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "../foundation/methods.h"
#include "programs.h"

extern "C" {
void objc_simulator_note_misuse(const char* text);
void objc_simulator_raise_misuse();
}

// The number of raised errors: unfinished objects after an error are not another error.
extern std::atomic<int> mistakes_raised;

[[noreturn]] inline void raise_mistake(const std::string& message) {
  ++mistakes_raised;
  throw std::runtime_error("Metal, simulated: " + message);
}
// Raises an error where Metal's validation layer would abort. A macro, because most messages take longer than the call.
#define require(condition, ...) ((condition) ? void() : raise_mistake(__VA_ARGS__))

inline bool mode_is(const char* name) {
  const char* mode = std::getenv("MPSMITH_METAL_MODE");
  return mode != nullptr && std::strcmp(mode, name) == 0;
}
// What Metal's API validation alone refuses. `mpsmith try` collects it in a file, and the program goes on.
inline void note_invalid(const std::string& message) {
  const char* path = std::getenv("MPSMITH_METAL_FINDINGS");
  require(path != nullptr, message);
  std::ofstream(path, std::ios::app) << message << "\n";
}
#define require_valid(condition, ...) ((condition) ? void() : note_invalid(__VA_ARGS__))

id<MTLDevice> simulated_device();
// The number of the element type of the tensor whose memory starts here, or 0.
uint32_t simulated_element_type(const void* memory);
// The buffer of the tensor whose memory starts where storage() or data_ptr() said; nil for other addresses.
extern "C" __attribute__((visibility("default"))) id<MTLBuffer> simulated_tensor_memory(const void* pointer);
NSError* simulated_error(const char* domain, const std::string& message);

// An object of a device, with a read-only label.
@interface SimulatedObject : NSObject {
 @public
  NSString* label_;
}
- (id<MTLDevice>)device;
- (NSString*)label;
@end

// An object with a writable label.
@interface SimulatedLabelledObject : SimulatedObject
- (void)setLabel:(NSString*)label;
@end

@interface SimulatedFunction : SimulatedLabelledObject {
 @public
  int64_t library_;
  NSString* name_;
  id owner_;
  MetalKernel kernel_; // set for argument encoders
}
@end

@interface SimulatedLibrary : SimulatedLabelledObject {
 @public
  int64_t number_;
}
@end

@interface SimulatedPipeline : SimulatedObject {
 @public
  MetalKernel kernel_;
}
@end

@class SimulatedEncoder;

// Commands run at commit, in the order in which they were encoded.
@interface SimulatedCommandBuffer : SimulatedLabelledObject {
 @public
  id queue_;
  __weak SimulatedEncoder* encoder_; // that is encoding
  int encoding_; // since when
  bool committed_;
  int mistakes_before_;
  std::vector<std::function<void()>> commands_;
  std::vector<void (^)(id<MTLCommandBuffer>)> completed_, scheduled_;
}
- (id)simulatedEncoder:(SimulatedEncoder*)encoder;
- (bool)simulatedIsEncoding;
- (void)simulatedCommand:(std::function<void()>)command;
@end

// The command buffer of torch's stream. Commands run when they are encoded, because torch commits before it reads results.
@interface SimulatedStreamCommandBuffer : SimulatedCommandBuffer
@end

@interface SimulatedCommandQueue : SimulatedLabelledObject
- (id<MTLCommandBuffer>)simulatedStreamCommandBuffer;
@end

@interface SimulatedEncoder : SimulatedLabelledObject {
 @public
  SimulatedCommandBuffer* commands_;
  bool ended_;
}
- (void)simulatedOpen;
@end
@interface SimulatedComputeEncoder : SimulatedEncoder
@end
@interface SimulatedBlitEncoder : SimulatedEncoder
@end

@interface SimulatedBuffer : SimulatedLabelledObject
+ (id<MTLBuffer>)simulatedOf:(NSUInteger)length;
+ (id<MTLBuffer>)simulatedOver:(void*)memory
                        length:(NSUInteger)length
                   deallocator:(void (^)(void*, NSUInteger))deallocator;
@end

// For structures of pointers: the pointer with [[id(n)]] is at offset 8 n.
@interface SimulatedArgumentEncoder : SimulatedLabelledObject
+ (id<MTLArgumentEncoder>)simulatedOf:(NSUInteger)length;
@end

@interface SimulatedEvent : SimulatedLabelledObject
@end
