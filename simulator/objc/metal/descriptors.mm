// Descriptors of command buffers and encoders. Compiled with ARC.
#include "host.h"

// Commands run one after another for any dispatch type.
@implementation MTLComputePassDescriptor {
  MTLDispatchType type_;
}
CLASS_METHOD(MTLComputePassDescriptor*, computePassDescriptor, [self new])
PROPERTY(MTLDispatchType, dispatchType, setDispatchType, type_)
@end

@implementation MTLBlitPassDescriptor
CLASS_METHOD(MTLBlitPassDescriptor*, blitPassDescriptor, [self new])
@end

@implementation MTLCommandBufferDescriptor {
  MTLCommandBufferErrorOption errors_;
  BOOL unretained_;
}
PROPERTY(MTLCommandBufferErrorOption, errorOptions, setErrorOptions, errors_)
METHOD(BOOL, retainedReferences, !unretained_)
- (void)setRetainedReferences:(BOOL)retained {
  unretained_ = !retained;
}
@end
