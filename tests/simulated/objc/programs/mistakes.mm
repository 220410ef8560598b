#define AT_PER_OPERATOR_HEADERS
#include <ATen/native/mps/OperationUtils.h>
#include <ATen/mps/MPSAllocatorInterface.h>
#include <ATen/ops/full.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/mps.h>

// Mistakes of host code that a compiler cannot see: a launch that is right, and one that differs from it by the mistake
// that it is asked for. Compiled without ARC.

using namespace at::native::mps;

static const char* kKernels = R"(
#include <metal_stdlib>
using namespace metal;
kernel void scale(device float* out [[buffer(0)]], device const float* in [[buffer(1)]],
                  constant float& by [[buffer(2)]], constant float& plus [[buffer(3)]],
                  uint i [[thread_position_in_grid]]) { out[i] = in[i] * by + plus; }
kernel void negate(device float* out [[buffer(0)]], device const float* in [[buffer(1)]],
                   uint i [[thread_position_in_grid]]) { out[i] = -in[i]; }
kernel void scale_half(device half* out [[buffer(0)]], device const half* in [[buffer(1)]],
                       constant float& by [[buffer(2)]], constant float& plus [[buffer(3)]],
                       uint i [[thread_position_in_grid]]) { out[i] = in[i] * by + plus; }
kernel void scale_int(device float* out [[buffer(0)]], device const float* in [[buffer(1)]],
                      constant int& by [[buffer(2)]], constant float& plus [[buffer(3)]],
                      uint i [[thread_position_in_grid]]) { out[i] = in[i] * by + plus; }
)";
static MetalShaderLibrary& library() {
  static MetalShaderLibrary built(kKernels);
  return built;
}

using Mistake = const std::string&;

static NSUInteger offset_of(const at::Tensor& x, Mistake mistake) {
  if (mistake == "without its offset") {
    return 0;
  }
  return x.storage_offset() * (mistake == "an offset in elements" ? 1 : x.element_size());
}

static NSUInteger threads_for(const at::Tensor& out, Mistake mistake) {
  const NSUInteger elements = out.numel();
  return mistake == "half the threads"         ? elements / 2
      : mistake == "a thread too few"          ? elements - 1
      : mistake == "a thread too many"         ? elements + 1
      : mistake == "as many threads as bytes"  ? out.nbytes()
      : mistake == "no threads"                ? 0
                                               : elements;
}

static void bind_numbers(id<MTLComputeCommandEncoder> encoder, float by, float plus, Mistake mistake) {
  const short few = 1;
  const double wide = by;
  const int64_t whole = static_cast<int64_t>(by);
  if (mistake == "numbers in the wrong order") {
    std::swap(by, plus);
  }
  if (mistake == "too few bytes") {
    [encoder setBytes:&few length:sizeof(few) atIndex:2];
  } else if (mistake == "a double for a float") {
    [encoder setBytes:&wide length:sizeof(wide) atIndex:2];
  } else if (mistake == "a long for a float") {
    [encoder setBytes:&whole length:sizeof(whole) atIndex:2];
  } else {
    [encoder setBytes:&by length:sizeof(by) atIndex:2];
  }
  if (mistake != "a number that is not bound") {
    [encoder setBytes:&plus length:sizeof(plus) atIndex:mistake == "a number at the wrong index" ? 4 : 3];
  }
}

static void encode(
    id<MTLCommandBuffer> commands, const at::Tensor& out, const at::Tensor& in, float by, float plus, Mistake mistake) {
  id<MTLComputePipelineState> state = library().getPipelineStateForFunc(
      mistake == "another kernel"                ? "negate"
          : mistake == "a kernel for half"       ? "scale_half"
          : mistake == "a float for an int"      ? "scale_int"
                                                 : "scale");
  id<MTLComputeCommandEncoder> encoder = [commands computeCommandEncoder];
  if (mistake == "a second encoder") {
    [commands computeCommandEncoder];
  }
  TORCH_CHECK(mistake != "an exception", "thrown while encoding");
  if (mistake == "odd threadgroup memory") {
    [encoder setThreadgroupMemoryLength:120 atIndex:0];
  }
  if (mistake != "no pipeline") {
    [encoder setComputePipelineState:state];
  }
  const bool swapped = mistake == "buffers in the wrong order";
  [encoder setBuffer:getMTLBufferStorage(swapped ? in : out) offset:offset_of(swapped ? in : out, mistake) atIndex:0];
  if (mistake != "an input that is not bound") {
    const at::Tensor& read = mistake == "the output for the input" || swapped ? out : in;
    [encoder setBuffer:getMTLBufferStorage(read) offset:offset_of(read, mistake) atIndex:1];
  }
  bind_numbers(encoder, by, plus, mistake);
  const NSUInteger threads = threads_for(out, mistake);
  const NSUInteger group = mistake == "a group too large" ? 2048 : std::min<NSUInteger>(64, std::max<NSUInteger>(threads, 1));
  if (mistake == "groups for threads") {
    [encoder dispatchThreadgroups:MTLSizeMake(threads, 1, 1) threadsPerThreadgroup:MTLSizeMake(group, 1, 1)];
  } else if (mistake != "no dispatch") {
    [encoder dispatchThreads:MTLSizeMake(threads, 1, 1) threadsPerThreadgroup:MTLSizeMake(group, 1, 1)];
  }
  if (mistake != "no endEncoding") {
    [encoder endEncoding];
  }
  if (mistake == "endEncoding twice") {
    [encoder endEncoding];
  }
  if (mistake == "a command after endEncoding") {
    [encoder setBuffer:getMTLBufferStorage(out) offset:0 atIndex:0];
  }
}

// in * by + plus, on a separate command buffer.
static at::Tensor scaled(const at::Tensor& given, double by, double plus, Mistake mistake) {
  const at::Tensor in = mistake == "ignored strides" ? given : given.contiguous();
  at::Tensor out = at::full(given.sizes(), -1, given.options()); // not what a launch before left there
  const at::Tensor lost = mistake == "a copy of the output" ? out.clone() : out;
  @autoreleasepool {
    torch::mps::synchronize();
    id<MTLCommandQueue> queue = [MPSDevice::getInstance()->device() newCommandQueue];
    id<MTLCommandBuffer> commands = [queue commandBuffer];
    encode(commands, lost, in, static_cast<float>(by), static_cast<float>(plus), mistake);
    if (mistake == "waiting before commit") {
      [commands waitUntilCompleted];
    }
    if (mistake != "no commit") {
      [commands commit];
    }
    if (mistake == "commit twice") {
      [commands commit];
    }
    if (mistake == "encoding after commit") {
      [commands computeCommandEncoder];
    }
    if (mistake != "no commit") {
      [commands waitUntilCompleted];
    }
    [queue release];
  }
  return out;
}

// The same in the command buffer that torch commits.
static at::Tensor scaled_with_torch(const at::Tensor& in, double by, double plus, Mistake mistake) {
  at::Tensor out = at::full(in.sizes(), -1, in.options());
  dispatch_sync(torch::mps::get_dispatch_queue(), ^() {
    encode(torch::mps::get_command_buffer(), out, in, static_cast<float>(by), static_cast<float>(plus), mistake);
  });
  return out;
}

// The same on torch's stream, as upstream's files have it.
static at::Tensor scaled_on_stream(const at::Tensor& given, double by, double plus, Mistake mistake) {
  const at::Tensor in = given.contiguous();
  at::Tensor out = at::full(given.sizes(), -1, given.options()); // not what a launch before left there
  auto* stream = getCurrentMPSStream();
  const auto factor = static_cast<float>(by), summand = static_cast<float>(plus);
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    if (mistake == "dispatch_sync inside its own block") {
      dispatch_sync(stream->queue(), ^(){});
    }
    auto encoder = stream->commandEncoder();
    auto state = library().getPipelineStateForFunc("scale");
    [encoder setComputePipelineState:state];
    if (mistake == "arguments in the wrong order") {
      mtl_setArgs(encoder, in, out, factor, summand);
    } else if (mistake == "an argument too few") {
      mtl_setArgs(encoder, out, in, factor);
    } else {
      mtl_setArgs(encoder, out, in, factor, summand);
    }
    mtl_dispatch1DJob(encoder, state, threads_for(out, mistake));
    if (mistake == "ending torch's encoder") {
      [encoder endEncoding];
    }
  });
  return out;
}

static void crash() {
  volatile int* nowhere = nullptr;
  *nowhere = 1;
}

// The first number of a tensor on mps. On a Mac, what takes its address for one of numbers reads an object.
static float first(const at::Tensor& x, const std::string& way) {
  if (way == "data_ptr of a type") {
    return *x.data_ptr<float>();
  }
  if (way == "data_ptr") {
    float copied = 0;
    std::memcpy(&copied, x.data_ptr(), sizeof(copied));
    return copied;
  }
  if (way == "an accessor") {
    return x.accessor<float, 1>()[0];
  }
  id<MTLBuffer> buffer = way == "the buffer" ? getMTLBufferStorage(x)
      : way == "storage" ? (__bridge id<MTLBuffer>)x.storage().data()
                         : (__bridge id<MTLBuffer>)x.data_ptr(); // as an object it is the same one
  return static_cast<const float*>([[buffer retain] contents])[x.storage_offset()];
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("callbacks", [] { return at::mps::MPSAllocatorCallbacksRegistry() != nullptr; });
  m.def("first", &first);
  m.def("scaled", &scaled);
  m.def("scaled_with_torch", &scaled_with_torch);
  m.def("scaled_on_stream", &scaled_on_stream);
  m.def("crash", &crash);
}
