// What all objects that a device makes have in common. Compiled with ARC.
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
