// In front of each file of a PyTorch tree: what the macOS SDK defines, and what torch removed since older releases.
#pragma once
#define __MAC_13_0 130000
#define __MAC_13_2 130200
#define __MAC_13_3 130300
#define __MAC_14_0 140000
#define __MAC_15_0 150000
#define MAC_OS_X_VERSION_13_0 130000
#define MAC_OS_X_VERSION_13_2 130200
#define MAC_OS_X_VERSION_14_0 140000
#define MAC_OS_X_VERSION_15_0 150000
#define API_AVAILABLE(...)
#ifndef TRUE
#define TRUE 1
#define FALSE 0
#endif
#include <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>
#include <dispatch/dispatch.h>
#include <sys/param.h>

#include <limits>

#define PAGE_SIZE 16384
#define vm_page_size 16384
typedef unsigned int simd_uint3 __attribute__((ext_vector_type(3)));
typedef unsigned long simd_ulong3 __attribute__((ext_vector_type(3)));

// Commands of this buffer run when they are encoded (simulator/objc/metal).
@interface NSObject (SimulatedCommandQueue)
- (id<MTLCommandBuffer>)simulatedStreamCommandBuffer;
@end

// Of the errors of a library that does not compile.
#define MTLLibraryErrorDomain @"MTLLibraryErrorDomain"

// Of the stand-in: compares the graph that a cache gives a call with the one that this call would make.
#ifdef __cplusplus
extern "C" {
#endif
BOOL mpsgraph_simulator_compares(MPSGraph* cached);
void mpsgraph_simulator_compare(MPSGraph* cached, MPSGraph* fresh);
#ifdef __cplusplus
}
#include <ATen/NamedTensorUtils.h>
namespace std {
// int64_t is long here and long long on macOS, where host code mixes the two names.
inline long max(long a, long long b) { return a > b ? a : static_cast<long>(b); }
inline long min(long a, long long b) { return a < b ? a : static_cast<long>(b); }
} // namespace std
#endif
