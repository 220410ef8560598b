#include "metal_host.h"

#include <atomic>

namespace mpsmith {
namespace {

std::atomic<const MetalHost*> host{nullptr};
std::atomic<const std::atomic<int>*> misuse_noted{nullptr};
void (*raise)() = nullptr;

} // namespace

const MetalHost* metal_host() { return host; }

void raise_misuse() {
  const std::atomic<int>* noted = misuse_noted.load(std::memory_order_relaxed);
  if (noted != nullptr && noted->load(std::memory_order_relaxed) != 0) {
    raise();
  }
}

extern "C" __attribute__((visibility("default"))) void mpsmith_install_metal_host(
    const MetalHost* installed, const std::atomic<int>* noted, void (*raise_noted)()) {
  raise = raise_noted;
  misuse_noted = noted;
  host = installed;
}

} // namespace mpsmith
