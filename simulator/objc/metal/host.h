// What the classes of Metal's host side know of each other.
#pragma once
#import <Metal/Metal.h>

#include <atomic>
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

// How many mistakes were raised: what they leave unfinished is no mistake of its own.
extern std::atomic<int> mistakes_raised;

// What Metal's validation layer ends a process for is an error here.
inline void require(bool condition, const std::string& message) {
  if (!condition) {
    ++mistakes_raised;
    throw std::runtime_error("Metal, simulated: " + message);
  }
}

id<MTLDevice> simulated_device();
NSError* simulated_error(const char* domain, const std::string& message);

// What belongs to a device and has a label that its maker gives it.
@interface SimulatedObject : NSObject {
 @public
  NSString* label_;
}
- (id<MTLDevice>)device;
- (NSString*)label;
@end

// Most have one that everybody may change.
@interface SimulatedLabelledObject : SimulatedObject
- (void)setLabel:(NSString*)label;
@end

@interface SimulatedFunction : SimulatedLabelledObject {
 @public
  int64_t library_;
  NSString* name_;
  id owner_;
  MetalKernel kernel_; // once an argument encoder was asked for
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
  bool encoding_, committed_;
  int mistakes_before_;
  std::vector<std::function<void()>> commands_;
  std::vector<void (^)(id<MTLCommandBuffer>)> completed_, scheduled_;
}
- (id)simulatedEncoder:(SimulatedEncoder*)encoder;
- (void)simulatedCommand:(std::function<void()>)command;
@end

// Of torch's stream: its commands run when they are encoded, because torch commits before it looks at any result.
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

// Of a structure of pointers alone: the one with [[id(n)]] lies 8 n bytes from its begin.
@interface SimulatedArgumentEncoder : SimulatedLabelledObject
+ (id<MTLArgumentEncoder>)simulatedOf:(NSUInteger)length;
@end

@interface SimulatedEvent : SimulatedLabelledObject
@end
