// What all objects that a device makes have in common. Compiled with ARC.
#include "host.h"

@implementation SimulatedObject
- (id<MTLDevice>)device {
  return simulated_device();
}
- (NSString*)label {
  return label_;
}
@end

@implementation SimulatedLabelledObject
- (void)setLabel:(NSString*)label {
  label_ = label;
}
@end
