// The generated header, which leaves out what a class conforms to: host code passes torch's command buffer as Metal's.
// It has a double wherever the package that it is made of has a number, so Metal's declarations take the place of these.
#pragma once
#import <Metal/Metal.h>
#define encodeSignalEvent encodeSignalEventOfTheGenerated
#define encodeWaitForEvent encodeWaitForEventOfTheGenerated
#define useResidencySets useResidencySetsOfTheGenerated
#include_next <MetalPerformanceShaders/MetalPerformanceShaders.h>
#undef encodeSignalEvent
#undef encodeWaitForEvent
#undef useResidencySets
@interface MPSCommandBuffer (MTLCommandBuffer) <MTLCommandBuffer>
@end
