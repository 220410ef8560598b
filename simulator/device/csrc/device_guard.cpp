#include "device_guard.h"

#include "device.h"
#include "events.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace mpsmith {
namespace {

c10::Stream only_stream() { return c10::Stream(c10::Stream::DEFAULT, simulated_device()); }

void* const kNeverRecorded = nullptr;

// There is one device and one stream, and calls are synchronous: most functions do nothing.
struct DeviceGuard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::DeviceType::MPS; }
  c10::Device exchangeDevice(c10::Device) const override { return simulated_device(); }
  c10::Device getDevice() const override { return simulated_device(); }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.is_mps(), "Expected a MPS device, but got ", device);
  }
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }

  c10::Stream getStream(c10::Device) const noexcept override { return only_stream(); }
  c10::Stream getDefaultStream(c10::Device) const override { return only_stream(); }
  c10::Stream getNewStream(c10::Device, int = 0) const override { return only_stream(); }
  c10::Stream exchangeStream(c10::Stream) const noexcept override { return only_stream(); }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeDevice(const c10::DeviceIndex) const override {}

  // torch.Event: the opaque pointer owns the time of the last record, or is null.
  void record(void** event, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {
    if (*event == kNeverRecorded) {
      *event = new EventTime();
    }
    *static_cast<EventTime*>(*event) = std::chrono::steady_clock::now();
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<EventTime*>(event);
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void synchronizeEvent(void*) const override {}
  double elapsedTime(void* start, void* end, const c10::DeviceIndex) const override {
    TORCH_CHECK(
        start != kNeverRecorded && end != kNeverRecorded,
        "Both events must be recorded before the time between them is asked");
    const auto time = *static_cast<EventTime*>(end) - *static_cast<EventTime*>(start);
    return std::chrono::duration<double, std::milli>(time).count();
  }
};

} // namespace

void register_device_guard() {
  static c10::impl::DeviceGuardImplRegistrar registrar(c10::DeviceType::MPS, new DeviceGuard());
}

} // namespace mpsmith
