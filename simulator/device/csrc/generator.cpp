#include "generator.h"

#include "device.h"

#include <ATen/CPUGeneratorImpl.h>

namespace mpsmith {
namespace {

class DeviceGenerator final : public c10::GeneratorImpl {
 public:
  explicit DeviceGenerator(at::Generator host)
      : GeneratorImpl(simulated_device(), c10::DispatchKeySet(c10::DispatchKey::MPS)), host_(std::move(host)) {}

  const at::Generator& host() const { return host_; }

  void set_current_seed(uint64_t seed) override { impl()->set_current_seed(seed); }
  void set_offset(uint64_t offset) override { impl()->set_offset(offset); }
  uint64_t get_offset() const override { return impl()->get_offset(); }
  uint64_t current_seed() const override { return impl()->current_seed(); }
  uint64_t seed() override { return impl()->seed(); }
  void set_state(const c10::TensorImpl& state) override { impl()->set_state(state); }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override { return impl()->get_state(); }

 private:
  c10::GeneratorImpl* impl() const { return host_.unsafeGetGeneratorImpl(); }
  GeneratorImpl* clone_impl() const override { return new DeviceGenerator(host_.clone()); }

  at::Generator host_;
};

void copy_state(const at::Generator& from, const at::Generator& to) {
  to.unsafeGetGeneratorImpl()->set_state(*from.unsafeGetGeneratorImpl()->get_state());
}

std::mutex lending_mutex;

} // namespace

at::Generator new_generator() { return at::make_generator<DeviceGenerator>(at::detail::createCPUGenerator()); }

const at::Generator& default_generator() {
  static auto* generator = new at::Generator(new_generator());
  return *generator;
}

at::Generator host_generator(const at::Generator& generator) {
  return static_cast<DeviceGenerator*>(generator.unsafeGetGeneratorImpl())->host();
}

LendSequenceToHost::LendSequenceToHost()
    : lock_(lending_mutex),
      host_(at::detail::getDefaultCPUGenerator()),
      device_(host_generator(default_generator())),
      saved_host_state_(host_.unsafeGetGeneratorImpl()->get_state()) {
  copy_state(device_, host_);
}

LendSequenceToHost::~LendSequenceToHost() {
  copy_state(host_, device_);
  host_.unsafeGetGeneratorImpl()->set_state(*saved_host_state_);
}

} // namespace mpsmith
