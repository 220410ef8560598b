// Graphs, their tensors and the data that is fed to them.
#pragma once
#include <MetalPerformanceShaders/MetalPerformanceShaders.h>

@class MPSGraph, MPSGraphOperation, MPSGraphTensor, MPSGraphTensorData;

typedef NSDictionary<MPSGraphTensor*, MPSGraphTensorData*> MPSGraphTensorDataDictionary;

typedef NS_ENUM(uint64_t, MPSGraphOptions) {
  MPSGraphOptionsNone = 0,
  MPSGraphOptionsSynchronizeResults = 1,
  MPSGraphOptionsVerbose = 2,
  MPSGraphOptionsDefault = MPSGraphOptionsSynchronizeResults,
};
typedef NS_ENUM(uint64_t, MPSGraphOptimization) {
  MPSGraphOptimizationLevel0 = 0,
  MPSGraphOptimizationLevel1 = 1,
};
typedef NS_OPTIONS(NSUInteger, MPSGraphReducedPrecisionFastMath) {
  MPSGraphReducedPrecisionFastMathNone = 0,
  MPSGraphReducedPrecisionFastMathAllowFP16Conv2DWinogradTransformIntermediate = 1 << 1,
  MPSGraphReducedPrecisionFastMathAllowFP16Intermediates = 1 << 1,
  MPSGraphReducedPrecisionFastMathDefault = 0,
};

@interface MPSGraphObject : NSObject
@end

@interface MPSGraphTensor : MPSGraphObject <NSCopying>
@property(readonly, nonatomic) MPSShape* shape;
@property(readonly, nonatomic) MPSDataType dataType;
@end

@interface MPSGraphOperation : MPSGraphObject
@end

@interface MPSGraphTensorData : MPSGraphObject
@property(readonly, copy, nonatomic) MPSShape* shape;
@property(readonly, nonatomic) MPSDataType dataType;
- (instancetype)initWithMTLBuffer:(id<MTLBuffer>)buffer shape:(MPSShape*)shape dataType:(MPSDataType)dataType;
- (instancetype)initWithMPSNDArray:(MPSNDArray*)ndarray;
- (MPSNDArray*)mpsndarray;
@end

@interface MPSGraphCompilationDescriptor : MPSGraphObject <NSCopying>
@property(readwrite, nonatomic) MPSGraphOptimization optimizationLevel;
@property(readwrite, nonatomic) MPSGraphReducedPrecisionFastMath reducedPrecisionFastMath;
@end

@interface MPSGraphExecutionDescriptor : MPSGraphObject <NSCopying>
@property(readwrite, atomic) BOOL waitUntilCompleted;
@property(readwrite, copy, atomic) void (^completionHandler)(MPSGraphTensorDataDictionary*, NSError*);
@property(readwrite, copy, atomic) MPSGraphCompilationDescriptor* compilationDescriptor;
@end

@interface MPSGraph : MPSGraphObject
@property(readwrite, nonatomic) MPSGraphOptions options;
@property(readonly, nonatomic) NSArray<MPSGraphTensor*>* placeholderTensors;
- (void)encodeToCommandBuffer:(MPSCommandBuffer*)commandBuffer
                        feeds:(MPSGraphTensorDataDictionary*)feeds
             targetOperations:(NSArray<MPSGraphOperation*>*)targetOperations
            resultsDictionary:(MPSGraphTensorDataDictionary*)resultsDictionary
          executionDescriptor:(MPSGraphExecutionDescriptor*)executionDescriptor;
@end
