#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>
extern "C" id graph() { return [MPSGraph new]; }
