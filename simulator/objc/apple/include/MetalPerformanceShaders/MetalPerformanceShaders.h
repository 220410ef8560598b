// The generated header, which leaves out what a class conforms to: host code passes torch's command buffer as Metal's.
#pragma once
#include_next <MetalPerformanceShaders/MetalPerformanceShaders.h>
@interface MPSCommandBuffer (MTLCommandBuffer) <MTLCommandBuffer>
@end
