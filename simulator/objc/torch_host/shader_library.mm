// MetalShaderLibrary: a Metal program, its pipelines and its kernel functions. Compiled without ARC.
#define AT_PER_OPERATOR_HEADERS
#include <ATen/native/mps/OperationUtils.h>

#include <ATen/mps/MPSDevice.h>
#include <ATen/native/mps/MetalShaderLibrary.h>
#include <c10/util/Exception.h>
#include <fmt/args.h>
#include <fmt/format.h>

namespace at::native::mps {

namespace {

const char* text_of(NSError* error) { return error == nil ? "" : [[error description] UTF8String]; }
NSString* string_of(const std::string& text) { return [NSString stringWithUTF8String:text.c_str()]; }

} // namespace

MetalShaderLibrary::~MetalShaderLibrary() {
  for (const auto& [name, pair] : cplMap) {
    [pair.first release];
    [pair.second release];
  }
}
DynamicMetalShaderLibrary::~DynamicMetalShaderLibrary() = default;
PrecompiledMetalShaderLibrary::~PrecompiledMetalShaderLibrary() = default;

PrecompiledMetalShaderLibrary::PrecompiledMetalShaderLibrary(std::vector<uint8_t> data) : MetalShaderLibrary("") {
  NSError* error = nil;
  NSData* bytes = [NSData dataWithBytes:data.data() length:data.size()];
  library = [at::mps::MPSDevice::getInstance()->device() newLibraryWithData:(id)bytes error:&error];
  TORCH_CHECK(library != nil, "Failed to create Metal library from data: ", text_of(error));
}
PrecompiledMetalShaderLibrary::PrecompiledMetalShaderLibrary(const std::string& path) : MetalShaderLibrary("") {
  NSError* error = nil;
  library = [at::mps::MPSDevice::getInstance()->device() newLibraryWithFile:string_of(path) error:&error];
  TORCH_CHECK(library != nil, "Failed to create Metal library from ", path, ": ", text_of(error));
}

MTLLibrary_t MetalShaderLibrary::getLibrary() {
  if (library == nil) {
    TORCH_CHECK(nparams == 0, "this Metal program takes ", nparams, " parameters, and none were given");
    library = compileLibrary(shaderSource);
  }
  return library;
}

MTLLibrary_t MetalShaderLibrary::getLibrary(const std::initializer_list<std::string>& params) {
  TORCH_CHECK(params.size() == nparams, "this Metal program takes ", nparams, " parameters, not ", params.size());
  fmt::dynamic_format_arg_store<fmt::format_context> arguments;
  std::string key;
  for (const std::string& param : params) {
    arguments.push_back(param);
    key += param + ":";
  }
  MTLLibrary_t& known = libMap[key];
  if (known == nil) {
    known = compileLibrary(fmt::vformat(shaderSource, arguments));
  }
  return known;
}

MTLLibrary_t MetalShaderLibrary::compileLibrary(const std::string& source) {
  NSError* error = nil;
  MTLLibrary_t compiled = [at::mps::MPSDevice::getInstance()->device() newLibraryWithSource:string_of(source)
                                                                                    options:compile_options
                                                                                      error:&error];
  TORCH_CHECK(compiled != nil, "Failed to create metal library, error: ", text_of(error));
  return compiled;
}

std::pair<MTLComputePipelineState_t, MTLFunction_t> MetalShaderLibrary::getLibraryPipelineState(
    MTLLibrary_t of, const std::string& name) {
  const std::string key = fmt::format("{}:{}", static_cast<void*>(of), name);
  const auto known = cplMap.find(key);
  if (known != cplMap.end()) {
    return known->second;
  }
  NSError* error = nil;
  MTLFunction_t function = [of newFunctionWithName:string_of(name)];
  TORCH_CHECK(function != nil, "Failed to create function state object for: ", name);
  MTLComputePipelineState_t state =
      [at::mps::MPSDevice::getInstance()->device() newComputePipelineStateWithFunction:function error:&error];
  TORCH_CHECK(state != nil, "Failed to created pipeline state object, error: ", text_of(error));
  return cplMap.emplace(key, std::make_pair(state, function)).first->second;
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
    for (const std::string& known : getFunctionNames()) {
      functionNames.insert(known);
    }
    functionNamesPopulated = true;
  }
  return functionNames.count(name) > 0;
}

std::shared_ptr<MetalKernelFunction> MetalShaderLibrary::getKernelFunction(const std::string& name) {
  const auto [state, function] = getLibraryPipelineState(getLibrary(), name);
  return std::make_shared<MetalKernelFunction>([state retain], [function retain]);
}

MetalKernelFunction* MetalShaderLibrary::getCachedKernelFunctionPtr(const std::string& name) {
  auto& known = kernelCache[name];
  if (known == nullptr) {
    const auto [state, function] = getLibraryPipelineState(getLibrary(), name);
    known = std::make_unique<MetalKernelFunction>([state retain], [function retain]);
  }
  return known.get();
}

} // namespace at::native::mps

// The bundled library, which upstream's files use, comes from the source in another extension.
extern "C" __attribute__((weak)) const char* mpsmith_bundled_metal_source();

namespace at::native::mps {

MetalShaderLibrary& MetalShaderLibrary::getBundledLibrary() {
  TORCH_CHECK(
      &mpsmith_bundled_metal_source != nullptr,
      "there is no bundled Metal library here: define PYTORCH_JIT_COMPILE_SHADERS and give the source");
  static auto* bundled = new MetalShaderLibrary(mpsmith_bundled_metal_source());
  return *bundled;
}

} // namespace at::native::mps
