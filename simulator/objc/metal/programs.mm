// Libraries, functions, pipelines and function constants. Compiled with ARC.
#include <cmath>
#include <cstring>
#include <map>
#include <sstream>
#include <string>

#include "../foundation/text.h"
#include "host.h"

MetalPrograms metal_programs;

extern "C" __attribute__((visibility("default"))) void metal_host_install(const MetalPrograms* programs) {
  metal_programs = *programs;
}

// ------------------------------------------------------------------------------------------------ function constants
@interface MTLFunctionConstantValues (Simulated)
- (int64_t)simulatedSpecialized:(int64_t)library;
@end

@implementation MTLFunctionConstantValues {
  std::map<int64_t, std::string> by_index_;
  std::map<std::string, std::string> by_name_;
}
static std::string real(float value) {
  if (std::isnan(value)) {
    return "NAN";
  }
  if (std::isinf(value)) {
    return value > 0 ? "INFINITY" : "(-INFINITY)";
  }
  char text[32];
  snprintf(text, sizeof(text), "(%.9ef)", value);
  return text;
}
// A value of a type as Metal source.
static std::string literal(const void* value, MTLDataType type) {
  const auto read = [value](auto example) {
    std::memcpy(&example, value, sizeof(example));
    return example;
  };
  switch (type) {
    case MTLDataTypeBool:
      return read(uint8_t()) ? "true" : "false";
    case MTLDataTypeFloat:
      return real(read(float()));
    case MTLDataTypeHalf:
      return "half(" + real(float(read(_Float16()))) + ")";
    case MTLDataTypeInt:
      return "int(" + std::to_string(read(int32_t())) + ")";
    case MTLDataTypeUInt:
      return std::to_string(read(uint32_t())) + "u";
    case MTLDataTypeShort:
      return "short(" + std::to_string(read(int16_t())) + ")";
    case MTLDataTypeUShort:
      return "ushort(" + std::to_string(read(uint16_t())) + ")";
    case MTLDataTypeChar:
      return "char(" + std::to_string(read(int8_t())) + ")";
    case MTLDataTypeUChar:
      return "uchar(" + std::to_string(read(uint8_t())) + ")";
    case MTLDataTypeLong:
      return "long(" + std::to_string(read(int64_t())) + ")";
    case MTLDataTypeULong:
      return std::to_string(read(uint64_t())) + "ul";
    default:
      require(false, "a function constant of MTLDataType " + std::to_string(NSUInteger(type)) + " is not simulated");
      return "";
  }
}
static NSUInteger bytes_of(MTLDataType type) {
  switch (type) {
    case MTLDataTypeBool:
    case MTLDataTypeChar:
    case MTLDataTypeUChar:
      return 1;
    case MTLDataTypeHalf:
    case MTLDataTypeShort:
    case MTLDataTypeUShort:
      return 2;
    case MTLDataTypeLong:
    case MTLDataTypeULong:
      return 8;
    default:
      return 4;
  }
}
- (void)setConstantValue:(const void*)value type:(MTLDataType)type atIndex:(NSUInteger)index {
  by_index_[(int64_t)index] = literal(value, type);
}
- (void)setConstantValue:(const void*)value type:(MTLDataType)type withName:(NSString*)name {
  by_name_[text_of(name)] = literal(value, type);
}
- (void)setConstantValues:(const void*)values type:(MTLDataType)type withRange:(NSRange)range {
  for (NSUInteger i = 0; i < range.length; ++i) {
    by_index_[(int64_t)(range.location + i)] = literal((const char*)values + i * bytes_of(type), type);
  }
}
- (void)reset {
  by_index_.clear();
  by_name_.clear();
}
- (int64_t)simulatedSpecialized:(int64_t)library {
  std::vector<MetalConstant> constants;
  for (const auto& [index, value] : by_index_) {
    constants.push_back({index, "", value.c_str()});
  }
  for (const auto& [name, value] : by_name_) {
    constants.push_back({-1, name.c_str(), value.c_str()});
  }
  int64_t specialized = -1;
  const char* problem = metal_programs.specialize(library, constants.data(), constants.size(), &specialized);
  if (problem != nullptr) {
    throw std::runtime_error(problem);
  }
  return specialized;
}
@end

// ------------------------------------------------------------------------------------------------ programs
@implementation SimulatedFunction
METHOD(NSString*, name, name_)
METHOD(MTLFunctionType, functionType, MTLFunctionTypeKernel)
- (id<MTLArgumentEncoder>)newArgumentEncoderWithBufferIndex:(NSUInteger)index {
  if (kernel_.parameters == nullptr) {
    if (const char* problem = metal_programs.kernel(library_, name_.UTF8String, &kernel_)) {
      throw std::runtime_error(problem);
    }
  }
  for (uint64_t i = 0; i < kernel_.parameter_count; ++i) {
    if (kernel_.parameters[i].index == index && kernel_.parameters[i].size > 0) {
      return [SimulatedArgumentEncoder simulatedOf:kernel_.parameters[i].size];
    }
  }
  require(
      false,
      "the function '" + text_of(name_) + "' has no reference to a structure at buffer index " + std::to_string(index) +
          ", for which an argument encoder could be made");
  return nil;
}
@end

@implementation SimulatedLibrary
static NSArray* names_in(int64_t library) {
  const char* names = "";
  if (const char* problem = metal_programs.names(library, &names)) {
    throw std::runtime_error(problem);
  }
  NSMutableArray* found = [NSMutableArray array];
  std::istringstream lines(names);
  for (std::string name; std::getline(lines, name);) {
    [found addObject:string_of(name)];
  }
  return found;
}
static id<MTLFunction> function_in(int64_t library, NSString* name, id owner) {
  for (NSString* known in names_in(library)) {
    if ([known isEqualToString:name]) {
      SimulatedFunction* function = [SimulatedFunction new];
      function->library_ = library;
      function->name_ = function->label_ = known;
      function->owner_ = owner;
      return (id)function;
    }
  }
  return nil;
}
METHOD(NSArray<NSString*>*, functionNames, names_in(number_))
- (id<MTLFunction>)newFunctionWithName:(NSString*)name {
  require(name != nil, "newFunctionWithName: needs a name, not nil");
  return function_in(number_, name, self);
}
- (id<MTLFunction>)newFunctionWithName:(NSString*)name
                        constantValues:(MTLFunctionConstantValues*)values
                                 error:(NSError* __autoreleasing*)error {
  try {
    id<MTLFunction> function = function_in([values simulatedSpecialized:number_], name, self);
    if (function == nil && error) {
      *error = simulated_error("MTLLibraryErrorDomain", "Function " + text_of(name) + " was not found in the library");
    }
    return function;
  } catch (const std::exception& problem) {
    if (error) {
      *error = simulated_error("MTLLibraryErrorDomain", problem.what());
    }
    return nil;
  }
}
@end

@implementation SimulatedPipeline
METHOD(NSUInteger, maxTotalThreadsPerThreadgroup, kernel_.max_threads)
METHOD(NSUInteger, threadExecutionWidth, 32)
METHOD(NSUInteger, staticThreadgroupMemoryLength, kernel_.threadgroup_bytes)
@end

// ------------------------------------------------------------------------------------------------ options
@implementation MTLCompileOptions {
  BOOL fast_math_, logging_, invariance_;
  MTLLanguageVersion version_;
  MTLMathMode math_mode_;
  MTLMathFloatingPointFunctions functions_;
  MTLLibraryOptimizationLevel level_;
  NSDictionary* macros_;
}
PROPERTY(BOOL, fastMathEnabled, setFastMathEnabled, fast_math_)
PROPERTY(MTLLanguageVersion, languageVersion, setLanguageVersion, version_)
PROPERTY(MTLMathMode, mathMode, setMathMode, math_mode_)
PROPERTY(MTLMathFloatingPointFunctions, mathFloatingPointFunctions, setMathFloatingPointFunctions, functions_)
PROPERTY(MTLLibraryOptimizationLevel, optimizationLevel, setOptimizationLevel, level_)
PROPERTY(NSDictionary*, preprocessorMacros, setPreprocessorMacros, macros_)
PROPERTY(BOOL, enableLogging, setEnableLogging, logging_)
PROPERTY(BOOL, preserveInvariance, setPreserveInvariance, invariance_)
@end

@implementation MTLComputePipelineDescriptor {
  id<MTLFunction> function_;
  NSString* label_;
  NSUInteger max_threads_;
  BOOL multiple_;
}
PROPERTY(id<MTLFunction>, computeFunction, setComputeFunction, function_)
PROPERTY(NSString*, label, setLabel, label_)
PROPERTY(NSUInteger, maxTotalThreadsPerThreadgroup, setMaxTotalThreadsPerThreadgroup, max_threads_)
PROPERTY(
    BOOL,
    threadGroupSizeIsMultipleOfThreadExecutionWidth,
    setThreadGroupSizeIsMultipleOfThreadExecutionWidth,
    multiple_)
@end
