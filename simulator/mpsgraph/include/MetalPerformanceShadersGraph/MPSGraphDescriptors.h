// What some operations take besides tensors.
#pragma once
#include "MPSGraphCore.h"

typedef NS_ENUM(NSUInteger, MPSGraphTensorNamedDataLayout) {
  MPSGraphTensorNamedDataLayoutNCHW = 0,
  MPSGraphTensorNamedDataLayoutNHWC = 1,
  MPSGraphTensorNamedDataLayoutOIHW = 2,
  MPSGraphTensorNamedDataLayoutHWIO = 3,
  MPSGraphTensorNamedDataLayoutCHW = 4,
  MPSGraphTensorNamedDataLayoutHWC = 5,
  MPSGraphTensorNamedDataLayoutHW = 6,
  MPSGraphTensorNamedDataLayoutNCDHW = 7,
  MPSGraphTensorNamedDataLayoutNDHWC = 8,
  MPSGraphTensorNamedDataLayoutOIDHW = 9,
  MPSGraphTensorNamedDataLayoutDHWIO = 10,
};
typedef NS_ENUM(NSUInteger, MPSGraphPaddingStyle) {
  MPSGraphPaddingStyleExplicit = 0,
  MPSGraphPaddingStyleTF_VALID = 1,
  MPSGraphPaddingStyleTF_SAME = 2,
  MPSGraphPaddingStyleExplicitOffset = 3,
  MPSGraphPaddingStyleONNX_SAME_LOWER = 4,
};
typedef NS_ENUM(NSInteger, MPSGraphPaddingMode) {
  MPSGraphPaddingModeConstant = 0,
  MPSGraphPaddingModeReflect = 1,
  MPSGraphPaddingModeSymmetric = 2,
  MPSGraphPaddingModeClampToEdge = 3,
  MPSGraphPaddingModeZero = 4,
  MPSGraphPaddingModePeriodic = 5,
  MPSGraphPaddingModeAntiPeriodic = 6,
};
typedef NS_ENUM(NSInteger, MPSGraphScatterMode) {
  MPSGraphScatterModeAdd = 0,
  MPSGraphScatterModeSub = 1,
  MPSGraphScatterModeMul = 2,
  MPSGraphScatterModeDiv = 3,
  MPSGraphScatterModeMin = 4,
  MPSGraphScatterModeMax = 5,
  MPSGraphScatterModeSet = 6,
};
typedef NS_ENUM(NSUInteger, MPSGraphResizeMode) {
  MPSGraphResizeNearest = 0,
  MPSGraphResizeBilinear = 1,
};
typedef NS_ENUM(NSUInteger, MPSGraphResizeNearestRoundingMode) {
  MPSGraphResizeNearestRoundingModeRoundPreferCeil = 0,
  MPSGraphResizeNearestRoundingModeRoundPreferFloor = 1,
  MPSGraphResizeNearestRoundingModeCeil = 2,
  MPSGraphResizeNearestRoundingModeFloor = 3,
  MPSGraphResizeNearestRoundingModeRoundToEven = 4,
  MPSGraphResizeNearestRoundingModeRoundToOdd = 5,
};
typedef NS_ENUM(NSUInteger, MPSGraphPoolingReturnIndicesMode) {
  MPSGraphPoolingReturnIndicesNone = 0,
  MPSGraphPoolingReturnIndicesGlobalFlatten1D = 1,
  MPSGraphPoolingReturnIndicesGlobalFlatten2D = 2,
  MPSGraphPoolingReturnIndicesGlobalFlatten3D = 3,
  MPSGraphPoolingReturnIndicesGlobalFlatten4D = 4,
  MPSGraphPoolingReturnIndicesLocalFlatten1D = 5,
  MPSGraphPoolingReturnIndicesLocalFlatten2D = 6,
  MPSGraphPoolingReturnIndicesLocalFlatten3D = 7,
  MPSGraphPoolingReturnIndicesLocalFlatten4D = 8,
};
typedef NS_ENUM(uint64_t, MPSGraphRandomDistribution) {
  MPSGraphRandomDistributionUniform = 0,
  MPSGraphRandomDistributionNormal = 1,
  MPSGraphRandomDistributionTruncatedNormal = 2,
};
typedef NS_ENUM(uint64_t, MPSGraphRandomNormalSamplingMethod) {
  MPSGraphRandomNormalSamplingInvCDF = 0,
  MPSGraphRandomNormalSamplingBoxMuller = 1,
};
typedef NS_ENUM(NSUInteger, MPSGraphFFTScalingMode) {
  MPSGraphFFTScalingModeNone = 0,
  MPSGraphFFTScalingModeSize = 1,
  MPSGraphFFTScalingModeUnitary = 2,
};
typedef NS_ENUM(NSUInteger, MPSGraphRNNActivation) {
  MPSGraphRNNActivationNone = 0,
  MPSGraphRNNActivationRelu = 1,
  MPSGraphRNNActivationTanh = 2,
  MPSGraphRNNActivationSigmoid = 3,
  MPSGraphRNNActivationHardSigmoid = 4,
};

// The window of a convolution or pooling in two dimensions.
#define MPSGRAPH_WINDOW_2D \
  @property(readwrite, nonatomic) NSUInteger strideInX; \
  @property(readwrite, nonatomic) NSUInteger strideInY; \
  @property(readwrite, nonatomic) NSUInteger dilationRateInX; \
  @property(readwrite, nonatomic) NSUInteger dilationRateInY; \
  @property(readwrite, nonatomic) NSUInteger paddingLeft; \
  @property(readwrite, nonatomic) NSUInteger paddingRight; \
  @property(readwrite, nonatomic) NSUInteger paddingTop; \
  @property(readwrite, nonatomic) NSUInteger paddingBottom; \
  @property(readwrite, nonatomic) MPSGraphPaddingStyle paddingStyle; \
  @property(readwrite, nonatomic) MPSGraphTensorNamedDataLayout dataLayout;

@interface MPSGraphConvolution2DOpDescriptor : MPSGraphObject <NSCopying>
MPSGRAPH_WINDOW_2D
@property(readwrite, nonatomic) MPSGraphTensorNamedDataLayout weightsLayout;
@property(readwrite, nonatomic) NSUInteger groups;
@end

@interface MPSGraphConvolution3DOpDescriptor : MPSGraphObject <NSCopying>
MPSGRAPH_WINDOW_2D
@property(readwrite, nonatomic) NSUInteger strideInZ;
@property(readwrite, nonatomic) NSUInteger dilationRateInZ;
@property(readwrite, nonatomic) NSUInteger paddingFront;
@property(readwrite, nonatomic) NSUInteger paddingBack;
@property(readwrite, nonatomic) MPSGraphTensorNamedDataLayout weightsLayout;
@property(readwrite, nonatomic) NSUInteger groups;
@end

@interface MPSGraphDepthwiseConvolution3DOpDescriptor : MPSGraphObject <NSCopying>
@property(readwrite, copy, nonatomic) NSArray<NSNumber*>* strides;
@property(readwrite, copy, nonatomic) NSArray<NSNumber*>* dilationRates;
@property(readwrite, copy, nonatomic) NSArray<NSNumber*>* paddingValues;
@property(readwrite, nonatomic) MPSGraphPaddingStyle paddingStyle;
@property(readwrite, nonatomic) NSInteger channelDimensionIndex;
@end

@interface MPSGraphPooling2DOpDescriptor : MPSGraphObject <NSCopying>
MPSGRAPH_WINDOW_2D
@property(readwrite, nonatomic) NSUInteger kernelWidth;
@property(readwrite, nonatomic) NSUInteger kernelHeight;
@property(readwrite, nonatomic) MPSGraphPoolingReturnIndicesMode returnIndicesMode;
@property(readwrite, nonatomic) MPSDataType returnIndicesDataType;
@property(readwrite, nonatomic) BOOL ceilMode;
@property(readwrite, nonatomic) BOOL includeZeroPadToAverage;
+ (instancetype)descriptorWithKernelWidth:(NSUInteger)kernelWidth
                             kernelHeight:(NSUInteger)kernelHeight
                                strideInX:(NSUInteger)strideInX
                                strideInY:(NSUInteger)strideInY
                          dilationRateInX:(NSUInteger)dilationRateInX
                          dilationRateInY:(NSUInteger)dilationRateInY
                              paddingLeft:(NSUInteger)paddingLeft
                             paddingRight:(NSUInteger)paddingRight
                               paddingTop:(NSUInteger)paddingTop
                            paddingBottom:(NSUInteger)paddingBottom
                             paddingStyle:(MPSGraphPaddingStyle)paddingStyle
                               dataLayout:(MPSGraphTensorNamedDataLayout)dataLayout;
@end
#undef MPSGRAPH_WINDOW_2D

@interface MPSGraphRandomOpDescriptor : MPSGraphObject <NSCopying>
@property(readwrite, nonatomic) MPSGraphRandomDistribution distribution;
@property(readwrite, nonatomic) MPSDataType dataType;
@property(readwrite, nonatomic) float min;
@property(readwrite, nonatomic) float max;
@property(readwrite, nonatomic) NSInteger minInteger;
@property(readwrite, nonatomic) NSInteger maxInteger;
@property(readwrite, nonatomic) float mean;
@property(readwrite, nonatomic) float standardDeviation;
@property(readwrite, nonatomic) MPSGraphRandomNormalSamplingMethod samplingMethod;
+ (instancetype)descriptorWithDistribution:(MPSGraphRandomDistribution)distribution dataType:(MPSDataType)dataType;
@end

@interface MPSGraphFFTDescriptor : MPSGraphObject <NSCopying>
@property(readwrite, nonatomic) BOOL inverse;
@property(readwrite, nonatomic) MPSGraphFFTScalingMode scalingMode;
@property(readwrite, nonatomic) BOOL roundToOddHermitean;
+ (instancetype)descriptor;
@end

@interface MPSGraphLSTMDescriptor : MPSGraphObject <NSCopying>
@property(readwrite, nonatomic) BOOL reverse;
@property(readwrite, nonatomic) BOOL bidirectional;
@property(readwrite, nonatomic) BOOL produceCell;
@property(readwrite, nonatomic) BOOL training;
@property(readwrite, nonatomic) BOOL forgetGateLast;
@property(readwrite, nonatomic) MPSGraphRNNActivation inputGateActivation;
@property(readwrite, nonatomic) MPSGraphRNNActivation forgetGateActivation;
@property(readwrite, nonatomic) MPSGraphRNNActivation cellGateActivation;
@property(readwrite, nonatomic) MPSGraphRNNActivation outputGateActivation;
@property(readwrite, nonatomic) MPSGraphRNNActivation activation;
+ (instancetype)descriptor;
@end
