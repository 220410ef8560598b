// Element types, shapes and errors. Compiled with ARC.
#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>
#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <exception>
#include <stdexcept>

#include "graph.h"

namespace mpsgraph {

namespace {

struct TypePair {
  MPSDataType graph;
  c10::ScalarType torch;
};
constexpr std::array kTypes = {
    TypePair{MPSDataTypeFloat32, at::kFloat},
    TypePair{MPSDataTypeFloat16, at::kHalf},
    TypePair{MPSDataTypeBFloat16, at::kBFloat16},
    TypePair{MPSDataTypeComplexFloat32, at::kComplexFloat},
    TypePair{MPSDataTypeComplexFloat16, at::kComplexHalf},
    TypePair{MPSDataTypeInt8, at::kChar},
    TypePair{MPSDataTypeInt16, at::kShort},
    TypePair{MPSDataTypeInt32, at::kInt},
    TypePair{MPSDataTypeInt64, at::kLong},
    TypePair{MPSDataTypeUInt8, at::kByte},
    TypePair{MPSDataTypeUInt16, at::kUInt16},
    TypePair{MPSDataTypeUInt32, at::kUInt32},
    TypePair{MPSDataTypeUInt64, at::kUInt64},
    TypePair{MPSDataTypeBool, at::kBool},
};

} // namespace

void refuse(const std::string& message) { throw std::runtime_error("MPSGraph, simulated: " + message); }

std::string message_of(const std::exception& error) {
  const auto* known = dynamic_cast<const c10::Error*>(&error);
  return known != nullptr ? known->what_without_backtrace() : error.what();
}

c10::ScalarType scalar_type(MPSDataType type) {
  for (const TypePair& pair : kTypes) {
    if (pair.graph == type) {
      return pair.torch;
    }
  }
  refuse("MPSDataType " + std::to_string(static_cast<uint32_t>(type)) + " is not simulated");
}

MPSDataType data_type(c10::ScalarType type) {
  for (const TypePair& pair : kTypes) {
    if (pair.torch == type) {
      return pair.graph;
    }
  }
  refuse(std::string("there is no MPSDataType for ") + c10::toString(type));
}

Shape numbers(NSArray* array) {
  Shape numbers;
  for (NSNumber* number in array) {
    numbers.push_back(number.longLongValue);
  }
  return numbers;
}

NSArray<NSNumber*>* array_of(at::IntArrayRef numbers) {
  NSMutableArray* array = [NSMutableArray arrayWithCapacity:numbers.size()];
  for (const int64_t number : numbers) {
    [array addObject:[NSNumber numberWithLongLong:number]];
  }
  return array;
}

std::string text_of(at::IntArrayRef shape) { return "[" + c10::Join(", ", shape) + "]"; }

Shape elements(const Tensor& tensor) {
  const Tensor whole = tensor.to(at::kLong).contiguous();
  const auto* first = static_cast<const int64_t*>(whole.const_data_ptr()); // 2.6.0 exports no typed one
  return Shape(first, first + whole.numel());
}

int64_t wrapped(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }

void copy_wrapped(const Tensor& destination, const Tensor& source, int64_t dim) {
  for (int64_t from = 0; from < source.size(dim); from += kWrap) {
    const int64_t count = std::min(kWrap, source.size(dim) - from);
    destination.narrow(dim, 0, count).copy_(source.narrow(dim, from, count));
  }
}

bool is_whole(const Tensor& x) { return !x.is_floating_point() && !x.is_complex(); }

} // namespace mpsgraph
