// The defaults of descriptors. Host code changes none after use, so that a copy is the same object. Compiled with ARC.
#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>

#define COPIED_BY_REFERENCE \
  -(id)copyWithZone : (void*)zone { \
    return self; \
  }

@implementation MPSGraphConvolution2DOpDescriptor
COPIED_BY_REFERENCE
- (instancetype)init {
  _strideInX = _strideInY = _dilationRateInX = _dilationRateInY = _groups = 1;
  _weightsLayout = MPSGraphTensorNamedDataLayoutOIHW;
  return self;
}
@end

@implementation MPSGraphConvolution3DOpDescriptor
COPIED_BY_REFERENCE
- (instancetype)init {
  _strideInX = _strideInY = _strideInZ = _dilationRateInX = _dilationRateInY = _dilationRateInZ = _groups = 1;
  _dataLayout = MPSGraphTensorNamedDataLayoutNCDHW;
  _weightsLayout = MPSGraphTensorNamedDataLayoutOIDHW;
  return self;
}
@end

@implementation MPSGraphDepthwiseConvolution3DOpDescriptor
COPIED_BY_REFERENCE
- (instancetype)init {
  _strides = _dilationRates = @[ @1, @1, @1 ];
  _paddingValues = @[ @0, @0, @0, @0, @0, @0 ];
  _channelDimensionIndex = -4;
  return self;
}
@end

@implementation MPSGraphPooling2DOpDescriptor
COPIED_BY_REFERENCE
- (instancetype)init {
  _strideInX = _strideInY = _dilationRateInX = _dilationRateInY = 1;
  _returnIndicesDataType = MPSDataTypeInt32;
  return self;
}
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
                               dataLayout:(MPSGraphTensorNamedDataLayout)dataLayout {
  MPSGraphPooling2DOpDescriptor* descriptor = [self new];
  descriptor.kernelWidth = kernelWidth;
  descriptor.kernelHeight = kernelHeight;
  descriptor.strideInX = strideInX;
  descriptor.strideInY = strideInY;
  descriptor.dilationRateInX = dilationRateInX;
  descriptor.dilationRateInY = dilationRateInY;
  descriptor.paddingLeft = paddingLeft;
  descriptor.paddingRight = paddingRight;
  descriptor.paddingTop = paddingTop;
  descriptor.paddingBottom = paddingBottom;
  descriptor.paddingStyle = paddingStyle;
  descriptor.dataLayout = dataLayout;
  return descriptor;
}
@end

@implementation MPSGraphRandomOpDescriptor
COPIED_BY_REFERENCE
+ (instancetype)descriptorWithDistribution:(MPSGraphRandomDistribution)distribution dataType:(MPSDataType)dataType {
  MPSGraphRandomOpDescriptor* descriptor = [self new];
  descriptor.distribution = distribution;
  descriptor.dataType = dataType;
  descriptor.max = 1;
  descriptor.standardDeviation = 1;
  return descriptor;
}
@end

@implementation MPSGraphFFTDescriptor
COPIED_BY_REFERENCE
+ (instancetype)descriptor {
  return [self new];
}
@end

@implementation MPSGraphLSTMDescriptor
COPIED_BY_REFERENCE
+ (instancetype)descriptor {
  MPSGraphLSTMDescriptor* descriptor = [self new];
  descriptor.inputGateActivation = descriptor.forgetGateActivation = MPSGraphRNNActivationSigmoid;
  descriptor.outputGateActivation = MPSGraphRNNActivationSigmoid;
  descriptor.cellGateActivation = descriptor.activation = MPSGraphRNNActivationTanh;
  return descriptor;
}
@end
