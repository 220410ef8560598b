// at::native::mps::MetalShaderLibrary, as far as kernels written by hand need it: a program from source, its pipelines,
// its kernel functions. Compiled without ARC.
#include <ATen/core/Tensor.h>
#include <ATen/mps/MPSDevice.h>
#include <ATen/mps/MPSStream.h>
#include <ATen/native/mps/OperationUtils.h>

namespace at::native::mps {

std::string scalarToMetalTypeString(const c10::ScalarType& type) {
  switch (type) {
    case kFloat:
      return "float";
    case kHalf:
      return "half";
    case kBFloat16:
      return "bfloat";
    case kLong:
      return "long";
    case kInt:
      return "int";
    case kShort:
      return "short";
    case kChar:
      return "char";
    case kByte:
      return "uchar";
    case kBool:
      return "bool";
    case kComplexFloat:
      return "float2";
    case kComplexHalf:
      return "half2";
    case kUInt64:
      return "ulong";
    case kUInt32:
      return "uint";
    case kUInt16:
      return "ushort";
    default:
      TORCH_CHECK(false, "no Metal type for ", type);
  }
}

MetalShaderLibrary::~MetalShaderLibrary() = default;
DynamicMetalShaderLibrary::~DynamicMetalShaderLibrary() = default;

MetalShaderLibrary& MetalShaderLibrary::getBundledLibrary() {
  TORCH_CHECK(false, "there is no bundled Metal library here: define PYTORCH_JIT_COMPILE_SHADERS and give the source");
}
MTLLibrary_t MetalShaderLibrary::getLibrary() {
  if (library == nil) {
    library = compileLibrary(shaderSource);
  }
  return library;
}
MTLLibrary_t MetalShaderLibrary::getLibrary(const std::initializer_list<std::string>&) {
  TORCH_CHECK(false, "Metal programs with text parameters are not simulated");
}
MTLLibrary_t MetalShaderLibrary::compileLibrary(const std::string& source) {
  NSError* error = nil;
  MTLLibrary_t result =
      [at::mps::MPSDevice::getInstance()->device() newLibraryWithSource:[NSString stringWithUTF8String:source.c_str()]
                                                                options:compile_options
                                                                  error:&error];
  TORCH_CHECK(result != nil, "Failed to create metal library, error: ", [[error description] UTF8String]);
  return result;
}
std::pair<MTLComputePipelineState_t, MTLFunction_t> MetalShaderLibrary::getLibraryPipelineState(
    MTLLibrary_t of, const std::string& name) {
  auto [place, is_new] = cplMap.try_emplace(name);
  if (is_new) {
    NSError* error = nil;
    MTLFunction_t function = [of newFunctionWithName:[NSString stringWithUTF8String:name.c_str()]];
    MTLComputePipelineState_t state = function == nil
        ? nil
        : [at::mps::MPSDevice::getInstance()->device() newComputePipelineStateWithFunction:function error:&error];
    if (state == nil) {
      cplMap.erase(place);
      TORCH_CHECK(
          false, "Failed to create function state object for: ", name, error ? [[error description] UTF8String] : "");
    }
    place->second = {state, function};
  }
  return place->second;
}
std::vector<std::string> MetalShaderLibrary::getFunctionNames() {
  std::vector<std::string> names;
  for (NSString* name in [getLibrary() functionNames]) {
    names.emplace_back([name UTF8String]);
  }
  return names;
}
bool MetalShaderLibrary::hasFunction(const std::string& name) {
  if (!functionNamesPopulated) {
    for (auto& known : getFunctionNames()) {
      functionNames.insert(known);
    }
    functionNamesPopulated = true;
  }
  return functionNames.count(name) > 0;
}
std::shared_ptr<MetalKernelFunction> MetalShaderLibrary::getKernelFunction(const std::string& name) {
  auto [state, function] = getLibraryPipelineState(getLibrary(), name);
  return std::make_shared<MetalKernelFunction>(state, function);
}
MetalKernelFunction* MetalShaderLibrary::getCachedKernelFunctionPtr(const std::string& name) {
  auto& known = kernelCache[name];
  if (!known) {
    auto [state, function] = getLibraryPipelineState(getLibrary(), name);
    known = std::make_unique<MetalKernelFunction>(state, function);
  }
  return known.get();
}

MetalKernelFunction::MetalKernelFunction(MTLComputePipelineState_t state, MTLFunction_t function)
    : cps([state retain]), func([function retain]) {}
MetalKernelFunction::~MetalKernelFunction() {
  [cps release];
  [func release];
}
uint64_t MetalKernelFunction::getMaxThreadsPerThreadgroup() const { return [cps maxTotalThreadsPerThreadgroup]; }
uint64_t MetalKernelFunction::getThreadExecutionWidth() const { return [cps threadExecutionWidth]; }
uint64_t MetalKernelFunction::getStaticThreadGroupMemoryLength() const { return [cps staticThreadgroupMemoryLength]; }
void MetalKernelFunction::runCommandBlock(std::function<void(void)> run) {
  at::mps::dispatch_sync_with_rethrow(at::mps::getCurrentMPSStream()->queue(), ^() {
    @autoreleasepool {
      run();
    }
  });
}
void MetalKernelFunction::startEncoding() {
  encoder = at::mps::getCurrentMPSStream()->commandEncoder();
  [encoder setComputePipelineState:cps];
}
void MetalKernelFunction::setArg(unsigned index, const at::TensorBase& tensor) {
  mtl_setBuffer(encoder, tensor, index);
}
void MetalKernelFunction::setArg(unsigned index, const void* bytes, uint64_t size) {
  [encoder setBytes:bytes length:size atIndex:index];
}
void MetalKernelFunction::dispatch(uint64_t length, std::optional<uint64_t> group) {
  const uint64_t size = group.value_or(std::min<uint64_t>(length, getMaxThreadsPerThreadgroup()));
  [encoder dispatchThreads:MTLSizeMake(length, 1, 1) threadsPerThreadgroup:MTLSizeMake(size, 1, 1)];
}

} // namespace at::native::mps
