// Base classes of objects that a device creates. Compiled with ARC.
#include "host.h"

@implementation SimulatedObject
METHOD(id<MTLDevice>, device, simulated_device())
METHOD(NSString*, label, label_)
@end

@implementation SimulatedLabelledObject
- (void)setLabel:(NSString*)label {
  label_ = label;
}
@end
