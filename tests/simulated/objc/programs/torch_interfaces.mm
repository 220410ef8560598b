#define AT_PER_OPERATOR_HEADERS
#include <ATen/mps/MPSAllocatorInterface.h>
#include <ATen/mps/MPSEvent.h>
#include <ATen/mps/MPSGeneratorImpl.h>
#include <ATen/native/mps/Copy.h>
#include <ATen/native/mps/OperationUtils.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/mps.h>

// Torch's mps backend from host code: each function is one way to launch a kernel. Compiled without ARC.

using namespace at::native::mps;

static const char* kScale = R"(
#include <metal_stdlib>
using namespace metal;
kernel void scale(device float* out [[buffer(0)]], constant float* in [[buffer(1)]],
                  constant float& by [[buffer(2)]], uint i [[thread_position_in_grid]]) { out[i] = in[i] * by; }
kernel void grid(device int* out [[buffer(0)]], uint2 i [[thread_position_in_grid]], uint2 n [[threads_per_grid]]) {
  out[i.y * n.x + i.x] = int(i.x + 10 * i.y);
}
)";
static MetalShaderLibrary& library() {
  static MetalShaderLibrary built(kScale);
  return built;
}

// As the talks do: an own pipeline, torch's command buffer and queue, a commit.
static at::Tensor by_command_buffer(const at::Tensor& in, double by) {
  at::Tensor out = at::empty_like(in);
  const float factor = static_cast<float>(by);
  @autoreleasepool {
    id<MTLComputePipelineState> state = library().getPipelineStateForFunc("scale");
    id<MTLCommandBuffer> commands = torch::mps::get_command_buffer();
    dispatch_sync(torch::mps::get_dispatch_queue(), ^() {
      id<MTLComputeCommandEncoder> encoder = [commands computeCommandEncoder];
      [encoder setComputePipelineState:state];
      [encoder setBuffer:getMTLBufferStorage(out) offset:out.storage_offset() * out.element_size() atIndex:0];
      [encoder setBuffer:getMTLBufferStorage(in) offset:in.storage_offset() * in.element_size() atIndex:1];
      [encoder setBytes:&factor length:sizeof(factor) atIndex:2];
      const NSUInteger group = std::min<NSUInteger>(state.maxTotalThreadsPerThreadgroup, in.numel());
      [encoder dispatchThreads:MTLSizeMake(in.numel(), 1, 1) threadsPerThreadgroup:MTLSizeMake(group, 1, 1)];
      [encoder endEncoding];
      torch::mps::commit();
    });
  }
  return out;
}

// As upstream's files do: the stream's encoder and mtl_setArgs.
static at::Tensor by_stream(const at::Tensor& in, double by) {
  at::Tensor out = at::empty_like(in);
  MPSStream* stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      auto encoder = stream->commandEncoder();
      auto state = library().getPipelineStateForFunc("scale");
      getMPSProfiler().beginProfileKernel(state, "scale", {in});
      [encoder setComputePipelineState:state];
      mtl_setArgs(encoder, out, in, static_cast<float>(by));
      mtl_dispatch1DJob(encoder, state, in.numel());
      getMPSProfiler().endProfileKernel(state);
    }
  });
  return out;
}

static at::Tensor by_kernel_function(const at::Tensor& in, double by) {
  at::Tensor out = at::empty_like(in);
  auto kernel = library().getKernelFunction("scale");
  kernel->runCommandBlock([&] {
    kernel->startEncoding();
    kernel->setArg(0, out);
    kernel->setArg(1, in);
    kernel->setArg(2, static_cast<float>(by));
    kernel->dispatch(in.numel());
  });
  return out;
}

static at::Tensor grid_of(int64_t width, int64_t height) {
  at::Tensor out = at::empty({height, width}, at::device(at::kMPS).dtype(at::kInt));
  auto* kernel = library().getCachedKernelFunctionPtr("grid");
  const uint64_t length[] = {uint64_t(width), uint64_t(height)};
  kernel->runCommandBlock([&] {
    kernel->startEncoding();
    kernel->setArg(0, out);
    kernel->dispatch(length);
  });
  return out;
}

// A program with parameters, as older releases have them.
static at::Tensor parametrized(const at::Tensor& in) {
  static MetalShaderLibrary programs(
      "kernel void add(device {0}* out [[buffer(0)]], constant {0}* in [[buffer(1)]],"
      " uint i [[thread_position_in_grid]]) {{ out[i] = in[i] + {1}; }}",
      2);
  at::Tensor out = at::empty_like(in);
  auto state = programs.getPipelineStateForFunc("add", {scalarToMetalTypeString(in), "5"});
  MPSStream* stream = getCurrentMPSStream();
  dispatch_sync(stream->queue(), ^() {
    auto encoder = stream->commandEncoder();
    [encoder setComputePipelineState:state];
    mtl_setArgs(encoder, out, in);
    mtl_dispatch1DJob(encoder, state, in.numel());
  });
  return out;
}

// Reports an error from inside the kernel, which torch raises when it synchronises.
static void report_error(const at::Tensor& in) {
  static MetalShaderLibrary programs(R"(
#include <metal_stdlib>
using namespace metal;
struct Message { char file[128]; char function[128]; char text[250]; uint line; }; // as c10/metal/error.h has them
struct Messages { atomic_uint count; Message all[30]; };
kernel void k(constant float* in [[buffer(0)]], device Messages* errors [[buffer(1)]],
              uint i [[thread_position_in_grid]]) {
  if (in[i] >= 0) return;
  device Message& message = errors->all[atomic_fetch_add_explicit(&errors->count, 1, memory_order_relaxed)];
  message.text[0] = 'n'; message.text[1] = 'o'; message.text[2] = '0' + char(i);
}
)");
  auto kernel = programs.getKernelFunction("k");
  kernel->runCommandBlock([&] {
    kernel->startEncoding();
    kernel->setArg(0, in);
    kernel->setErrorBufferIndex(1);
    kernel->dispatch(in.numel());
  });
}

// The host reads a tensor through the public allocator: its first number and its bytes; -1 for unknown memory.
static std::pair<float, ssize_t> read_shared(const at::Tensor& tensor) {
  const auto* allocator = at::mps::getIMPSAllocator();
  const void* shared = allocator->getSharedBufferPtr(tensor.data_ptr()).first;
  TORCH_CHECK((shared != nullptr) == allocator->isSharedBuffer(tensor.storage().data()) || tensor.storage_offset());
  return {shared ? *static_cast<const float*>(shared) : -1, allocator->getUnalignedBufferSize(tensor.data_ptr())};
}
static at::Tensor host_alias(const at::Tensor& tensor) {
  const c10::Storage alias = at::mps::getIMPSAllocator()->getHostAliasStorage(tensor.storage());
  return at::from_blob(alias.mutable_data(), tensor.sizes(), [alias](void*) {}, at::kFloat);
}
// Whether an event behind a launch has happened, and the milliseconds since the one before it.
static std::pair<bool, double> events_around(const at::Tensor& in) {
  auto pool = at::mps::getMPSEventPool();
  const auto before = pool->acquireEvent(true), after = pool->acquireEvent(true);
  pool->recordEvent(before, true);
  by_stream(in, 2.0);
  pool->recordEvent(after, false);
  pool->synchronizeEvent(after);
  const bool happened = pool->queryEvent(after);
  const double elapsed = pool->elapsedTime(before, after);
  pool->releaseEvent(before);
  pool->releaseEvent(after);
  return {happened, elapsed};
}
// An event that was not recorded has nothing to wait for, and no time.
static double time_of_nothing() {
  auto pool = at::mps::getMPSEventPool();
  at::mps::MPSEventPtr own = pool->acquireEvent(false, getCurrentMPSStream());
  TORCH_CHECK(own->query() && !own->wait(true) && !own->synchronize());
  own->record(true, true);
  TORCH_CHECK(own->wait(true) && own->synchronize() && own->getCompletionTime() == 0);
  return pool->elapsedTime(pool->acquireEvent(true), pool->acquireEvent(true));
}

// A buffer that is retained keeps the memory of its tensor.
static float outlives_tensor() {
  id<MTLBuffer> kept = nil;
  {
    at::Tensor tensor = at::ones({1000}, at::device(at::kMPS));
    kept = [getMTLBufferStorage(tensor) retain];
  }
  at::Tensor other = at::zeros({1000}, at::device(at::kMPS));
  const float value = static_cast<const float*>([kept contents])[999];
  [kept release];
  return value;
}

// One that is not is gone with it.
static void used_after_tensor() {
  id<MTLBuffer> forgotten = nil;
  {
    at::Tensor tensor = at::ones({1000}, at::device(at::kMPS));
    forgotten = getMTLBufferStorage(tensor);
  }
  [forgotten contents];
}

static void copy_on_stream(const at::Tensor& from, const at::Tensor& to) {
  getCurrentMPSStream()->copy(
      getMTLBufferStorage(from), getMTLBufferStorage(to), from.nbytes(), 0, 0, 0, SyncType::COMMIT_AND_WAIT);
}

// A view gathered, stored into every other element of a tensor, and that on the CPU.
static at::Tensor copied(const at::Tensor& from) {
  at::Tensor fresh, spread = at::ones({2 * from.numel()}, from.options());
  const at::Tensor gathered = gatherViewTensor(from, fresh);
  at::Tensor view = spread.slice(0, 0, std::nullopt, 2), host = spread.to(at::kCPU).zero_();
  scatterViewTensor(gathered, view);
  return mps_copy_(host, spread, false);
}

// The offsets of an output and two inputs, element by element, in both widths.
static std::vector<uint64_t> offsets(const at::Tensor& out, const at::Tensor& left, const at::Tensor& right) {
  const auto iterator = at::TensorIteratorConfig()
                            .add_output(out)
                            .add_const_input(left)
                            .add_const_input(right)
                            .check_all_same_dtype(false)
                            .build();
  const auto* narrow = (const uint32_t*)[generateKernelDataOffsets(nil, iterator) contents];
  const auto* wide = (const uint64_t*)[generateKernelDataOffsets(nil, iterator, true) contents];
  std::vector<uint64_t> read;
  for (int64_t i = 0; i < iterator.numel(); ++i) {
    for (int operand = 0; operand < 3; ++operand) {
      TORCH_CHECK(narrow[4 * i + operand] == wide[4 * i + operand]);
      read.push_back(wide[4 * i + operand]);
    }
  }
  return read;
}

static void throw_in_block() {
  dispatch_sync_with_rethrow(getCurrentMPSStream()->queue(), ^() {
    TORCH_CHECK_VALUE(false, "thrown in a block");
  });
}

// On a Mac the next command buffer that anybody commits ends the process.
static void forget_end_encoding(const at::Tensor& out) {
  @autoreleasepool {
    id<MTLCommandBuffer> commands = torch::mps::get_command_buffer();
    [commands computeCommandEncoder];
  }
}

static bool asks_first() {
  id device = MPSDevice::getInstance()->device();
  return [device respondsToSelector:@selector(methodOfAFutureMac)];
}

// Torch commits its command buffer and continues with it.
static bool continues_after_commit() {
  id<MTLCommandBuffer> buffer = torch::mps::get_command_buffer();
  torch::mps::commit();
  id<MTLComputeCommandEncoder> encoder = [buffer computeCommandEncoder];
  [encoder endEncoding];
  return encoder != nil;
}

// Torch's command buffer is one of Metal's.
static bool has_a_command_buffer() {
  id<MTLCommandBuffer> buffer = getCurrentMPSStream()->commandBuffer();
  return buffer != nil;
}

// Whether a block is called once its event is recorded and the work committed, and not before it is recorded.
static std::vector<bool> notified() {
  auto event = getMPSEventPool()->acquireEvent(false, nullptr);
  __block bool called = false;
  MTLSharedEventNotificationBlock block = ^(id<MTLSharedEvent> shared, uint64_t value) {
    called = shared.signaledValue >= value;
  };
  const bool early = event->notify(true, block);
  event->record(true);
  const bool taken = event->notify(true, block);
  getCurrentMPSStream()->synchronize(SyncType::COMMIT_AND_WAIT);
  return {early, taken, called};
}

static std::vector<uint64_t> seeds() {
  return {
      at::mps::detail::createMPSGenerator(7).current_seed(),
      at::mps::detail::getDefaultMPSGenerator().current_seed()};
}

static std::vector<uint32_t> next_state(const at::Generator& generator) {
  auto* of_mps = generator.get<at::MPSGeneratorImpl>();
  const std::lock_guard<std::mutex> lock(of_mps->mutex_);
  of_mps->update_philox_counters();
  return {of_mps->state_data(), of_mps->state_data() + at::mps::detail::PHILOX_STATE_N};
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("has_a_command_buffer", &has_a_command_buffer);
  m.def("by_command_buffer", &by_command_buffer);
  m.def("by_stream", &by_stream);
  m.def("read_shared", &read_shared);
  m.def("host_alias", &host_alias);
  m.def("events_around", &events_around);
  m.def("time_of_nothing", &time_of_nothing);
  m.def("by_kernel_function", &by_kernel_function);
  m.def("grid_of", &grid_of);
  m.def("parametrized", &parametrized);
  m.def("report_error", &report_error);
  m.def("outlives_tensor", &outlives_tensor);
  m.def("used_after_tensor", &used_after_tensor);
  m.def("copy_on_stream", &copy_on_stream);
  m.def("copied", &copied);
  m.def("offsets", &offsets);
  m.def("throw_in_block", &throw_in_block);
  m.def("forget_end_encoding", &forget_end_encoding);
  m.def("asks_first", &asks_first);
  m.def("continues_after_commit", &continues_after_commit);
  m.def("make_texture", [] { [MPSDevice::getInstance()->device() newTextureWithDescriptor:nil]; });
  m.def("notified", &notified);
  m.def("seeds", &seeds);
  m.def("next_state", &next_state);
  m.def("key_of", &to_hex_key);
  m.def("too_large", [](const at::Tensor& t) { return isTooLargeForMPSGraph(t); });
}
