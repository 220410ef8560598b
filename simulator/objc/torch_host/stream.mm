// The stream of torch's mps backend and its command buffer. Compiled without ARC.
#define AT_PER_OPERATOR_HEADERS
#include <ATen/native/mps/OperationUtils.h>

#include <ATen/mps/MPSStream.h>
#include <c10/metal/error.h>

#include <cstring>

#include "../metal/host.h"

namespace at::mps {

namespace {

MPSCommandBuffer* new_command_buffer(id<MTLCommandQueue> queue) {
  id<MTLCommandBuffer> root = [(SimulatedCommandQueue*)queue simulatedStreamCommandBuffer];
  return [[MPSCommandBuffer alloc] initWithCommandBuffer:root];
}

} // namespace

MPSStream* MPSStreamImpl::_stream;
MPSStream* MPSStreamImpl::getInstance() {
  static auto* stream = new MPSStream(c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::DeviceType::MPS, 0), 0));
  return stream;
}
MPSStreamImpl::MPSStreamImpl() = default;
MPSStream* getCurrentMPSStream() { return MPSStreamImpl::getInstance(); }
MPSStream* getDefaultMPSStream() { return MPSStreamImpl::getInstance(); }

MPSStream::MPSStream(Stream stream) : _stream(stream) {
  _commandQueue = [MPSDevice::getInstance()->device() newCommandQueue];
  _serialQueue = dispatch_queue_create("metal gpu stream", nullptr);
  _errorBuffer = [MPSDevice::getInstance()->device() newBufferWithLength:sizeof(c10::metal::ErrorMessages)
                                                                 options:MTLResourceStorageModeShared];
}
MPSStream::~MPSStream() = default;

MTLDevice_t MPSStream::device() const { return MPSDevice::getInstance()->device(); }
MPSCommandBuffer_t MPSStream::commandBuffer() {
  if (_commandBuffer == nil) {
    _commandBuffer = new_command_buffer(_commandQueue);
  }
  return _commandBuffer;
}
MTLComputeCommandEncoder_t MPSStream::commandEncoder() {
  if (_commandEncoder == nil) {
    _commandEncoder = [[commandBuffer() computeCommandEncoder] retain];
  }
  return _commandEncoder;
}
void MPSStream::endKernelCoalescing() {
  if (_commandEncoder != nil) {
    [_commandEncoder endEncoding];
    [_commandEncoder release];
    _commandEncoder = nil;
  }
}
// As on a Mac, an extension may go on encoding into the command buffer that it holds.
void MPSStream::commit() { [_commandBuffer commitAndContinue]; }
void MPSStream::commitAndWait() { flush(); }
void MPSStream::commitAndContinue() { commit(); }
void MPSStream::flush() {
  if (_commandBuffer != nil) {
    [_commandBuffer commit];
    [_commandBuffer release];
    _commandBuffer = nil;
  }
}
void MPSStream::synchronize(SyncType type) {
  endKernelCoalescing();
  if (type == SyncType::COMMIT_AND_WAIT) {
    commitAndWait();
    checkLastError();
  } else if (type != SyncType::NONE) {
    commit();
  }
}
void MPSStream::addCompletedHandler(MTLCommandBufferHandler block) { [commandBuffer() addCompletedHandler:block]; }

void MPSStream::copy(
    MTLBuffer_t from,
    MTLBuffer_t to,
    size_t length,
    size_t source,
    size_t destination,
    uint64_t profile,
    SyncType type) {
  endKernelCoalescing();
  id<MTLBlitCommandEncoder> encoder = [commandBuffer() blitCommandEncoder];
  [encoder copyFromBuffer:from sourceOffset:source toBuffer:to destinationOffset:destination size:length];
  [encoder endEncoding];
  synchronize(type);
}
void MPSStream::copy_and_sync(
    MTLBuffer_t from, MTLBuffer_t to, size_t length, size_t source, size_t destination, bool, uint64_t profile) {
  copy(from, to, length, source, destination, profile, SyncType::COMMIT_AND_WAIT);
}

MTLBuffer_t MPSStream::getErrorBuffer() { return _errorBuffer; }
// Raises the first error of TORCH_REPORT_ERROR, and drops the rest.
void MPSStream::checkLastError() {
  auto* errors = static_cast<c10::metal::ErrorMessages*>([_errorBuffer contents]);
  if (errors->count == 0) {
    return;
  }
  const c10::metal::ErrorMessage first = errors->msg[0];
  std::memset(errors, 0, sizeof(*errors));
  throw c10::AcceleratorError({first.func, first.file, first.line}, 1, first.message);
}

// Blocks run in the calling thread, so exceptions propagate.
void dispatch_sync_with_rethrow(dispatch_queue_t queue, void (^block)()) { dispatch_sync(queue, block); }

} // namespace at::mps

namespace {

void* command_buffer() {
  at::mps::getDefaultMPSStream()->endKernelCoalescing();
  return at::mps::getDefaultMPSStream()->commandBuffer();
}
void* dispatch_queue() { return at::mps::getDefaultMPSStream()->queue(); }
void commit() { at::mps::getDefaultMPSStream()->synchronize(at::mps::SyncType::COMMIT); }
void synchronize() { at::mps::getDefaultMPSStream()->synchronize(at::mps::SyncType::COMMIT_AND_WAIT); }

} // namespace

// struct MetalHost of the simulated device's metal_host.h, for torch::mps::get_command_buffer and so on.
extern "C" __attribute__((visibility("default"))) void* const mpsmith_metal_host[4] = {
    (void*)&command_buffer, (void*)&dispatch_queue, (void*)&commit, (void*)&synchronize};
