// torch's C interface to Metal kernels (aoti_torch_mps_*), which its stable ABI and Inductor use. Compiled without ARC.
#define AT_PER_OPERATOR_HEADERS
#include <ATen/native/mps/OperationUtils.h>

#include <ATen/mps/MPSStream.h>
#include <ATen/native/mps/MetalShaderLibrary.h>
#include <torch/csrc/inductor/aoti_torch/c/shim_mps.h>
#include <torch/csrc/inductor/aoti_torch/utils.h>

#include <cstring>

namespace {

using at::native::mps::DynamicMetalShaderLibrary;
using at::native::mps::MetalKernelFunction;
using at::native::mps::MetalShaderLibrary;

MetalKernelFunction* function_of(AOTIMetalKernelFunctionHandle handle) {
  return reinterpret_cast<MetalKernelFunction*>(handle);
}
MetalShaderLibrary* library_of(AOTIMetalShaderLibraryHandle handle) {
  return reinterpret_cast<MetalShaderLibrary*>(handle);
}

} // namespace

AOTITorchError aoti_torch_mps_create_shader_library(const char* source, AOTIMetalShaderLibraryHandle* library) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE(
      { *library = reinterpret_cast<AOTIMetalShaderLibraryHandle>(new DynamicMetalShaderLibrary(source)); });
}
AOTITorchError aoti_torch_mps_delete_shader_library(AOTIMetalShaderLibraryHandle library) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE({ delete library_of(library); });
}
AOTITorchError aoti_torch_mps_get_kernel_function(
    AOTIMetalShaderLibraryHandle library, const char* name, AOTIMetalKernelFunctionHandle* function) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE({
    *function = reinterpret_cast<AOTIMetalKernelFunctionHandle>(library_of(library)->getCachedKernelFunctionPtr(name));
  });
}
AOTITorchError aoti_torch_mps_start_encoding(AOTIMetalKernelFunctionHandle function) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE({ function_of(function)->startEncoding(); });
}
AOTITorchError aoti_torch_mps_set_arg_tensor(
    AOTIMetalKernelFunctionHandle function, unsigned index, AtenTensorHandle tensor) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE(
      { function_of(function)->setArg(index, *torch::aot_inductor::tensor_handle_to_tensor_pointer(tensor)); });
}
AOTITorchError aoti_torch_mps_set_arg_int(AOTIMetalKernelFunctionHandle function, unsigned index, int64_t value) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE({ function_of(function)->setArg(index, value); });
}
AOTITorchError aoti_torch_mps_dispatch_single(AOTIMetalKernelFunctionHandle function, uint64_t length) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE({ function_of(function)->dispatch(length); });
}
AOTITorchError aoti_torch_mps_dispatch_single_with_group_size(
    AOTIMetalKernelFunctionHandle function, uint64_t length, uint64_t group) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE({ function_of(function)->dispatch(length, group); });
}
AOTITorchError aoti_torch_mps_dispatch_array(
    AOTIMetalKernelFunctionHandle function, const uint64_t* length, size_t count) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE(
      { function_of(function)->dispatch(c10::ArrayRef<uint64_t>(length, count)); });
}
AOTITorchError aoti_torch_mps_dispatch_array_with_group_size(
    AOTIMetalKernelFunctionHandle function,
    const uint64_t* length,
    size_t count,
    const uint64_t* group,
    size_t group_count) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE({
    function_of(function)->dispatch(
        c10::ArrayRef<uint64_t>(length, count), c10::ArrayRef<uint64_t>(group, group_count));
  });
}
AOTITorchError aoti_torch_mps_malloc(void** buffer, size_t bytes) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE({
    *buffer = bytes == 0
        ? nil
        : [at::mps::MPSDevice::getInstance()->device() newBufferWithLength:bytes options:MTLResourceStorageModeShared];
  });
}
AOTITorchError aoti_torch_mps_free(void* buffer) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE({ [(id<MTLBuffer>)buffer release]; });
}
AOTITorchError aoti_torch_mps_memcpy(void* buffer, size_t offset, size_t read, size_t bytes, uint8_t* constants) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE(
      { std::memcpy(static_cast<char*>([(id<MTLBuffer>)buffer contents]) + offset, constants + read, bytes); });
}
AOTITorchError aoti_torch_mps_copy_buffer(void* from, void* to, size_t bytes, size_t source, size_t destination) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE({
    at::mps::getCurrentMPSStream()->copy(
        (id<MTLBuffer>)from, (id<MTLBuffer>)to, bytes, source, destination, 0, at::mps::SyncType::COMMIT_AND_WAIT);
  });
}
void aoti_torch_mps_shared_callback(AOTIMetalKernelFunctionHandle function, void* user_data) {
  (*static_cast<std::function<void(AOTIMetalKernelFunctionHandle)>*>(user_data))(function);
}
AOTITorchError aoti_torch_mps_run_command_block(
    AOTIMetalKernelFunctionHandle function, aoti_torch_mps_command_block_callback_t callback, void* user_data) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE(
      { function_of(function)->runCommandBlock([&] { callback(function, user_data); }); });
}
