#include "hooks.h"

#include "allocator.h"
#include "device.h"
#include "events.h"
#include "generator.h"
#include "metal_host.h"

#include <ATen/detail/MPSHooksInterface.h>
#include <c10/core/CPUAllocator.h>

#include <memory>

namespace mpsmith {
namespace {

// A macOS version that is new enough for all checks in torch.
constexpr unsigned kMacOS = 26;

const MetalHost& loaded_metal_host() {
  TORCH_CHECK(metal_host() != nullptr, "No host code for Metal is loaded on the simulated mps device");
  return *metal_host();
}

// No `override`: releases add functions to the interface, and this source must compile with all of them.
struct MPSHooks : at::MPSHooksInterface {
  template <class... Arguments>
  explicit MPSHooks(Arguments&&...) {} // releases before 2.13 pass MPSHooksArgs

  void init() const {}
  bool isBuilt() const { return true; }
  bool isAvailable() const { return true; }
  bool hasMPS() const { return true; }
  bool isOnMacOSorNewer(unsigned major, unsigned) const { return major <= kMacOS; }
  bool hasPrimaryContext(c10::DeviceIndex) const { return true; }

  c10::DeviceIndex deviceCount() const { return 1; }
  c10::DeviceIndex getCurrentDevice() const { return 0; }
  void setCurrentDevice(c10::DeviceIndex) const {}
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const { return 0; }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const { return 0; }
  c10::Device getDeviceFromPtr(void*) const { return simulated_device(); }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const { return default_generator(); }
  at::Generator getNewGenerator(c10::DeviceIndex) const { return new_generator(); }

  c10::Allocator* getMPSDeviceAllocator() const { return device_allocator(); }
  bool isPinnedPtr(const void*) const { return false; }
  c10::Allocator* getPinnedMemoryAllocator() const { return c10::GetCPUAllocator(); }
  void emptyCache() const {}
  size_t getCurrentAllocatedMemory() const { return allocated_bytes(); }
  size_t getDriverAllocatedMemory() const { // there is no cache, so this equals the memory of tensors
    return allocated_bytes();
  }
  size_t getRecommendedMaxMemory() const { return recommended_max_bytes(); }
  size_t getMaxBufferLength() const { return recommended_max_bytes(); }
  void setMemoryFraction(double fraction) const { set_memory_fraction(fraction); }

  void deviceSynchronize() const {
    if (metal_host() != nullptr) {
      metal_host()->synchronize();
    }
  }
  void commitStream() const {
    if (metal_host() != nullptr) {
      metal_host()->commit();
    }
  }
  void* getCommandBuffer() const { return loaded_metal_host().command_buffer(); }
  void* getDispatchQueue() const { return loaded_metal_host().dispatch_queue(); }
  void profilerStartTrace(const std::string&, bool) const {}
  void profilerStopTrace() const {}

  uint32_t acquireEvent(bool enable_timing) const { return acquire_event(enable_timing); }
  void releaseEvent(uint32_t id) const { release_event(id); }
  void recordEvent(uint32_t id) const { record_event(id); }
  void waitForEvent(uint32_t) const {}
  void synchronizeEvent(uint32_t) const {}
  bool queryEvent(uint32_t) const { return true; }
  double elapsedTimeOfEvents(uint32_t start, uint32_t end) const { return milliseconds_between(start, end); }
};

} // namespace

void register_hooks() {
  at::MPSHooksRegistry()->Register(
      "MPSHooks", [](auto...) -> std::unique_ptr<at::MPSHooksInterface> { return std::make_unique<MPSHooks>(); });
  const at::MPSHooksInterface& cached = at::detail::getMPSHooks();
  if (!cached.hasMPS()) {
    // If the hooks were used before (torch.manual_seed does), torch keeps its stub. The stub has no data members, so
    // replacing its virtual table makes it ours.
    static_assert(sizeof(MPSHooks) == sizeof(at::MPSHooksInterface));
    static auto* hooks = new MPSHooks();
    *reinterpret_cast<void**>(const_cast<at::MPSHooksInterface*>(&cached)) = *reinterpret_cast<void**>(hooks);
  }
}

} // namespace mpsmith
