// The device of torch's mps backend. Compiled without ARC.
#define AT_PER_OPERATOR_HEADERS
#include <ATen/native/mps/OperationUtils.h>

#include <ATen/mps/MPSDevice.h>
#include <c10/core/Allocator.h>

namespace at::mps {

MPSDevice* MPSDevice::_device;
MPSDevice* MPSDevice::getInstance() {
  static auto* device = new MPSDevice;
  return device;
}
MPSDevice::MPSDevice() : _mtl_device(MTLCreateSystemDefaultDevice()) {}
MPSDevice::~MPSDevice() = default;
// A macOS version that is new enough for all checks in torch, as on the simulated device.
bool MPSDevice::isMacOS13Plus(MacOSVersion) const { return true; }
std::string MPSDevice::getName() const { return [[_mtl_device name] UTF8String]; }
unsigned MPSDevice::getCoreCount() const { return 8; }

bool is_available() { return true; }
bool is_macos_13_or_newer(MacOSVersion) { return true; }
bool is_apple_family_or_newer(AppleGPUFamily family) {
  return [MPSDevice::getInstance()->device() supportsFamily:(MTLGPUFamily)family];
}
at::Allocator* GetMPSAllocator() { return c10::GetAllocator(c10::DeviceType::MPS); }

} // namespace at::mps
