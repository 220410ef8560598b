// What command buffers and encoders are asked for with. Compiled with ARC.
#include "host.h"

// Commands run one after the other, whatever the type of their dispatch is.
@implementation MTLComputePassDescriptor {
  MTLDispatchType type_;
}
+ (MTLComputePassDescriptor*)computePassDescriptor {
  return [self new];
}
- (MTLDispatchType)dispatchType {
  return type_;
}
- (void)setDispatchType:(MTLDispatchType)type {
  type_ = type;
}
@end

@implementation MTLBlitPassDescriptor
+ (MTLBlitPassDescriptor*)blitPassDescriptor {
  return [self new];
}
@end

@implementation MTLCommandBufferDescriptor {
  MTLCommandBufferErrorOption errors_;
  BOOL unretained_;
}
- (MTLCommandBufferErrorOption)errorOptions {
  return errors_;
}
- (void)setErrorOptions:(MTLCommandBufferErrorOption)options {
  errors_ = options;
}
- (BOOL)retainedReferences {
  return !unretained_;
}
- (void)setRetainedReferences:(BOOL)retained {
  unretained_ = !retained;
}
@end
