// Metal from C++ alone, by messages and blocks, as metal-cpp does it.
#include <AvailabilityMacros.h>
#include <CoreFoundation/CoreFoundation.h>
#include <CoreGraphics/CGGeometry.h>
#include <IOSurface/IOSurfaceRef.h>
#include <QuartzCore/QuartzCore.h>
#include <TargetConditionals.h>
#include <dlfcn.h>
#include <libkern/OSAtomic.h>
#include <mach-o/getsect.h>
#include <objc/message.h>
#include <objc/runtime.h>

#include <string>

namespace {
struct Size {
  unsigned long width, height, depth;
};
Protocol* const kDevice = objc_getProtocol("MTLDevice");

template <class Result = id, class... Arguments>
Result send(const void* object, const char* selector, Arguments... arguments) {
  using Message = Result (*)(const void*, SEL, Arguments...);
  return reinterpret_cast<Message>(&objc_msgSend)(object, sel_registerName(selector), arguments...);
}
id string(const char* text) { return send(objc_lookUpClass("NSString"), "stringWithUTF8String:", text); }
} // namespace

extern "C" const mach_header_64 __dso_handle;
extern "C" id MTLCreateSystemDefaultDevice();
extern "C" id MTLCopyAllDevicesWithObserver(id* observer, id block);

std::string as_metal_cpp() {
  id device = MTLCreateSystemDefaultDevice(), error = nullptr, observer = nullptr;
  const char* source = R"(kernel void k(device float* x [[buffer(0)]], constant float& by [[buffer(1)]],
                                        uint i [[thread_position_in_grid]]) { x[i] *= by; })";
  const float by = 2;
  id library = send(device, "newLibraryWithSource:options:error:", string(source), id(nullptr), &error);
  id function = send(library, "newFunctionWithName:", string("k"));
  id pipeline = send(device, "newComputePipelineStateWithFunction:error:", function, &error);
  id buffer = send(device, "newBufferWithLength:options:", 16ul, 0ul);
  auto* numbers = send<float*>(buffer, "contents");
  numbers[1] = 3;
  id commands = send(send(device, "newCommandQueue"), "commandBuffer");
  id encoder = send(commands, "computeCommandEncoder");
  send<void>(encoder, "setComputePipelineState:", pipeline);
  send<void>(encoder, "setBuffer:offset:atIndex:", buffer, 0ul, 0ul);
  send<void>(encoder, "setBytes:length:atIndex:", static_cast<const void*>(&by), sizeof(by), 1ul);
  send<void>(encoder, "dispatchThreads:threadsPerThreadgroup:", Size{4, 1, 1}, Size{4, 1, 1});
  send<void>(encoder, "endEncoding");
  __block int completed = 0;
  send<void>(commands, "addCompletedHandler:", ^(id) { ++completed; });
  send<void>(commands, "commit");
  OSSpinLock lock = OS_SPINLOCK_INIT;
  OSSpinLockLock(&lock);
  dispatch_semaphore_t locked = dispatch_semaphore_create(OSSpinLockTry(&lock) ? 0 : 1);
  completed += dispatch_semaphore_wait(locked, DISPATCH_TIME_FOREVER);
  dispatch_release(locked);
  const auto devices = send<unsigned long>(MTLCopyAllDevicesWithObserver(&observer, nullptr), "count");
  unsigned long section = 1;
  char unit[8];
  const unsigned long cut = strlcpy(unit, " dev", 4) + strlcat(unit, "vice and more", sizeof(unit));
  if (getsectiondata(&__dso_handle, "__METAL", "__shaders", &section) != nullptr || section != 0 || cut != 20) return unit;
  return std::to_string(static_cast<int>(numbers[1])) + " completed " + std::to_string(completed) + ", " +
      std::to_string(devices) + unit + (kDevice == nullptr ? "" : "?");
}
