// Operations on each element, and what feeds them: placeholders and constants. Compiled with ARC.
#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>
#include <ATen/ATen.h>

#include "graph.h"

using namespace mpsgraph;

static Tensor filled(double value, const Shape& shape, MPSDataType type) {
  return at::scalar_tensor(value, at::kDouble).to(scalar_type(type)).expand(shape);
}
static Tensor filled(c10::complex<double> value, const Shape& shape, MPSDataType type) {
  return at::scalar_tensor(value, at::kComplexDouble).to(scalar_type(type)).expand(shape);
}

@implementation MPSGraph (MPSGraphMemoryOps)
- (MPSGraphTensor*)placeholderWithShape:(MPSShape*)shape dataType:(MPSDataType)dataType name:(NSString*)name {
  return placeholder(self, scalar_type(dataType), shape == nil ? std::nullopt : std::optional(numbers(shape)));
}
- (MPSGraphTensor*)placeholderWithShape:(MPSShape*)shape name:(NSString*)name {
  return [self placeholderWithShape:shape dataType:MPSDataTypeFloat32 name:name];
}
- (MPSGraphTensor*)constantWithScalar:(double)scalar shape:(MPSShape*)shape dataType:(MPSDataType)dataType {
  return constant(self, filled(scalar, numbers(shape), dataType));
}
- (MPSGraphTensor*)constantWithScalar:(double)scalar dataType:(MPSDataType)dataType {
  return constant(self, filled(scalar, {1}, dataType)); // a scalar has rank 1
}
- (MPSGraphTensor*)constantWithRealPart:(double)realPart
                          imaginaryPart:(double)imaginaryPart
                               dataType:(MPSDataType)dataType {
  return constant(self, filled(c10::complex<double>(realPart, imaginaryPart), {1}, dataType));
}
- (MPSGraphTensor*)constantWithRealPart:(double)realPart
                          imaginaryPart:(double)imaginaryPart
                                  shape:(MPSShape*)shape
                               dataType:(MPSDataType)dataType {
  return constant(self, filled(c10::complex<double>(realPart, imaginaryPart), numbers(shape), dataType));
}
- (MPSGraphTensor*)constantWithData:(NSData*)data shape:(MPSShape*)shape dataType:(MPSDataType)dataType {
  const Shape sizes = numbers(shape);
  const auto type = scalar_type(dataType);
  if (c10::multiply_integers(sizes) * c10::elementSize(type) != data.length) {
    refuse("a constant of shape " + text_of(sizes) + " was given " + std::to_string(data.length) + " bytes");
  }
  return constant(self, at::from_blob(const_cast<void*>(data.bytes), sizes, at::dtype(type)).clone());
}
@end

// Half away from zero.
static Tensor rounded(const Tensor& x) {
  return is_whole(x) ? x : at::where(x < 0, (x - 0.5).ceil(), (x + 0.5).floor());
}
static Tensor quotient(const Tensor& x, const Tensor& y) {
  return is_whole(x) ? at::div(x, y, "trunc").to(x.scalar_type()) : at::div(x, y);
}
static Tensor zero_like(const Tensor& x) { return at::zeros({}, x.options()); }

static Tensor product(const Tensor& x, const Tensor& y) {
  is_beyond("matrixMultiplication", "rank", std::max(x.dim(), y.dim()));
  const Tensor z = at::matmul(x, y);
  const bool tiled = z.dim() > 1 && z.size(-1) >= 16 && z.size(-2) >= 16;
  const bool long_rows =
      tiled && is_beyond("matrixMultiplication", "inner dimension of a tile of 16 or more", x.size(-1));
  return long_rows ? at::full_like(z, NAN) : z;
}

#define UNARY(METHOD, ...) \
  -(MPSGraphTensor*)METHOD : (MPSGraphTensor*)tensor name : (NSString*)name { \
    return unary(self, #METHOD, tensor, [](const Tensor& x) -> Tensor { return __VA_ARGS__; }); \
  }
#define BINARY(METHOD, ...) \
  -(MPSGraphTensor*)METHOD##WithPrimaryTensor : (MPSGraphTensor*)primaryTensor secondaryTensor \
      : (MPSGraphTensor*)secondaryTensor name : (NSString*)name { \
    return binary(self, #METHOD, primaryTensor, secondaryTensor, [](const Tensor& x, const Tensor& y) -> Tensor { \
      return __VA_ARGS__; \
    }); \
  }

@implementation MPSGraph (MPSGraphArithmeticOps)
UNARY(identityWithTensor, x)
UNARY(exponentWithTensor, x.exp())
UNARY(exponentBase2WithTensor, x.exp2())
UNARY(exponentBase10WithTensor, at::pow(10, x))
UNARY(logarithmWithTensor, x.log())
UNARY(logarithmBase2WithTensor, x.log2())
UNARY(logarithmBase10WithTensor, x.log10())
UNARY(squareWithTensor, x* x)
UNARY(squareRootWithTensor, x.sqrt())
UNARY(reciprocalSquareRootWithTensor, x.rsqrt())
UNARY(reverseSquareRootWithTensor, x.rsqrt())
UNARY(reciprocalWithTensor, x.reciprocal())
UNARY(absoluteWithTensor, x.scalar_type() == at::kBool ? x : x.abs())
UNARY(absoluteSquareWithTensor, x.abs() * x.abs())
UNARY(negativeWithTensor, x.neg())
UNARY(signWithTensor, x.sgn())
UNARY(signbitWithTensor, x.signbit())
UNARY(ceilWithTensor, x.ceil())
UNARY(floorWithTensor, x.floor())
UNARY(roundWithTensor, rounded(x))
UNARY(rintWithTensor, x.round())
UNARY(sinWithTensor, x.sin())
UNARY(cosWithTensor, x.cos())
UNARY(tanWithTensor, x.tan())
UNARY(sinhWithTensor, x.sinh())
UNARY(coshWithTensor, x.cosh())
UNARY(tanhWithTensor, x.tanh())
UNARY(asinWithTensor, x.asin())
UNARY(acosWithTensor, x.acos())
UNARY(atanWithTensor, x.atan())
UNARY(asinhWithTensor, x.asinh())
UNARY(acoshWithTensor, x.acosh())
UNARY(atanhWithTensor, x.atanh())
UNARY(notWithTensor, x.logical_not())
UNARY(isInfiniteWithTensor, x.isinf())
UNARY(isFiniteWithTensor, x.isfinite())
UNARY(isNaNWithTensor, x.isnan())
UNARY(erfWithTensor, x.erf())
UNARY(truncateWithTensor, x.trunc())
UNARY(bitwiseNOTWithTensor, x.bitwise_not())
UNARY(conjugateWithTensor, x.conj().resolve_conj())
UNARY(reLUWithTensor, x.relu())
UNARY(sigmoidWithTensor, x.sigmoid())
UNARY(realPartOfTensor, at::real(x))
UNARY(imaginaryPartOfTensor, at::imag(x))

BINARY(addition, x + y)
// tril of bools, which passes on Macs, takes the difference of two; torch has none.
BINARY(subtraction, x.scalar_type() == at::kBool ? x ^ y : x - y)
BINARY(multiplication, x* y)
BINARY(division, quotient(x, y))
BINARY(modulo, at::fmod(x, y))
BINARY(floorModulo, at::remainder(x, y))
BINARY(divisionNoNaN, at::where(y == 0, zero_like(x), at::div(x, y)))
BINARY(power, at::pow(x, y))
// Without NaN propagation the other operand is the result.
BINARY(minimum, at::fmin(x, y))
BINARY(maximum, at::fmax(x, y))
BINARY(minimumWithNaNPropagation, at::minimum(x, y))
BINARY(maximumWithNaNPropagation, at::maximum(x, y))
BINARY(equal, x == y)
BINARY(notEqual, x != y)
BINARY(lessThan, x < y)
BINARY(lessThanOrEqualTo, x <= y)
BINARY(greaterThan, x > y)
BINARY(greaterThanOrEqualTo, x >= y)
BINARY(logicalAND, at::logical_and(x, y))
BINARY(logicalOR, at::logical_or(x, y))
BINARY(logicalXOR, at::logical_xor(x, y))
BINARY(logicalNAND, at::logical_and(x, y).logical_not())
BINARY(logicalNOR, at::logical_or(x, y).logical_not())
BINARY(logicalXNOR, at::logical_xor(x, y).logical_not())
BINARY(atan2, at::atan2(x, y))
BINARY(bitwiseAND, x& y)
BINARY(bitwiseOR, x | y)
BINARY(bitwiseXOR, x ^ y)
BINARY(bitwiseLeftShift, at::bitwise_left_shift(x, y))
BINARY(bitwiseRightShift, at::bitwise_right_shift(x, y))
// Attention of PyTorch in half precision multiplies Float by halves: MPSGraph takes them, though no other two types.
- (MPSGraphTensor*)matrixMultiplicationWithPrimaryTensor:(MPSGraphTensor*)primary
                                         secondaryTensor:(MPSGraphTensor*)secondary
                                                    name:(NSString*)name {
  const bool halves = secondary->type_ == at::kHalf || secondary->type_ == at::kBFloat16;
  MPSGraphTensor* widened = halves && primary->type_ == at::kFloat
      ? [self castTensor:secondary toType:MPSDataTypeFloat32 name:nil]
      : secondary;
  return binary(self, "matrixMultiplication", primary, widened, product);
}

- (MPSGraphTensor*)complexTensorWithRealTensor:(MPSGraphTensor*)realTensor
                               imaginaryTensor:(MPSGraphTensor*)imaginaryTensor
                                          name:(NSString*)name {
  return binary(self, "complexTensor", realTensor, imaginaryTensor, [](const Tensor& real, const Tensor& imaginary) {
    return at::complex(real, imaginary);
  });
}
- (MPSGraphTensor*)selectWithPredicateTensor:(MPSGraphTensor*)predicateTensor
                         truePredicateTensor:(MPSGraphTensor*)truePredicateTensor
                        falsePredicateTensor:(MPSGraphTensor*)falseSelectTensor
                                        name:(NSString*)name {
  require_one_type("select", {truePredicateTensor, falseSelectTensor});
  return result_of(
      self, "select", {predicateTensor, truePredicateTensor, falseSelectTensor},
      [](const Tensors& inputs) { return at::where(inputs[0].to(at::kBool), inputs[1], inputs[2]); });
}
- (MPSGraphTensor*)clampWithTensor:(MPSGraphTensor*)tensor
                    minValueTensor:(MPSGraphTensor*)minValueTensor
                    maxValueTensor:(MPSGraphTensor*)maxValueTensor
                              name:(NSString*)name {
  require_one_type("clamp", {tensor, minValueTensor, maxValueTensor});
  return result_of(self, "clamp", {tensor, minValueTensor, maxValueTensor}, [](const Tensors& inputs) {
    return at::minimum(at::maximum(inputs[0], inputs[1]), inputs[2]);
  });
}
@end
