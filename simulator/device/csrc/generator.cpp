#include "generator.h"

#include "device.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/PhiloxRNGEngine.h>
#include <ATen/mps/MPSGeneratorImpl.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace mpsmith {
namespace {

// A Mac's generator counts draws: an operator increments the offset, and the state holds the engine's output, the seed
// and the offset. The numbers come from a CPU generator seeded by seed and offset, so that a restored state gives the
// same numbers. Host code takes it for an at::MPSGeneratorImpl and calls what is not virtual there: the fields are the same.
class DeviceGenerator final : public c10::GeneratorImpl {
 public:
  explicit DeviceGenerator(uint64_t seed)
      : GeneratorImpl(simulated_device(), c10::DispatchKeySet(c10::DispatchKey::MPS)), engine_(seed) {
    DeviceGenerator::set_current_seed(seed);
  }

  // Holds the lock of this generator.
  at::Generator next_draw() {
    const std::lock_guard<std::mutex> lock(mutex_);
    const uint64_t host_seed = seed_of_draw(data_.seed, engine_.get_offset());
    for (size_t i = 0; i < kCounters; i++) {
      data_.state[kFirstCounter + i] = engine_();
    }
    return at::detail::createCPUGenerator(host_seed);
  }

  void set_current_seed(uint64_t seed) override {
    data_.seed = seed;
    data_.state.fill(1);
    data_.state[kFirstKey] = static_cast<uint32_t>(seed);
    data_.state[kFirstKey + 1] = static_cast<uint32_t>(seed >> 32);
    engine_.reset_state(seed);
  }

  uint64_t seed() override {
    set_current_seed(c10::detail::getNonDeterministicRandom());
    return data_.seed;
  }

  uint64_t current_seed() const override { return data_.seed; }
  void set_offset(uint64_t offset) override { engine_.set_offset(offset); }
  uint64_t get_offset() const override { return engine_.get_offset(); }

  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    const at::TensorBase state = at::detail::empty_cpu({kStateBytes}, at::kByte);
    auto* bytes = state.mutable_data_ptr<uint8_t>();
    const uint64_t offset = get_offset();
    std::memcpy(bytes, data_.state.data(), kWordBytes);
    std::memcpy(bytes + kWordBytes, &data_.seed, sizeof(data_.seed));
    std::memcpy(bytes + kWordBytes + sizeof(data_.seed), &offset, sizeof(offset));
    return state.getIntrusivePtr();
  }

  void set_state(const c10::TensorImpl& state) override {
    at::detail::check_rng_state(state);
    TORCH_CHECK(state.numel() == kStateBytes, "RNG state is wrong size");
    const auto* bytes = static_cast<const uint8_t*>(state.data());
    uint64_t seed = 0;
    uint64_t offset = 0;
    std::memcpy(&seed, bytes + kWordBytes, sizeof(seed));
    std::memcpy(&offset, bytes + kWordBytes + sizeof(seed), sizeof(offset));
    set_current_seed(seed);
    set_offset(offset);
    std::memcpy(data_.state.data(), bytes, kWordBytes);
  }

 private:
  static constexpr size_t kWords = at::mps::detail::PHILOX_STATE_N; // one unused, the counters, two halves of the key
  static constexpr size_t kFirstCounter = 1;
  static constexpr size_t kCounters = 4;
  static constexpr size_t kFirstKey = 5;
  static constexpr size_t kWordBytes = kWords * sizeof(uint32_t);
  static constexpr int64_t kStateBytes = kWordBytes + 2 * sizeof(uint64_t);

  // The first draw equals the CPU's for this seed. The CPU's engine takes 32 bits, so other draws mix the bits (the
  // finalizer of splitmix64).
  static uint64_t seed_of_draw(uint64_t seed, uint64_t offset) {
    if (offset == 0) {
      return seed;
    }
    uint64_t mixed = seed + offset * 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
  }

  GeneratorImpl* clone_impl() const override {
    auto* copy = new DeviceGenerator(data_.seed);
    copy->data_.state = data_.state;
    copy->engine_ = engine_;
    return copy;
  }

  at::mps::detail::rng_data_pod data_;
  at::Philox4_32 engine_;
};

// A new engine points at the start of its numbers, and never again after a draw.
bool has_drawn(const at::Generator& host) {
  return static_cast<at::CPUGeneratorImpl*>(host.unsafeGetGeneratorImpl())->engine().data().next_ != 0;
}

std::mutex lending_mutex;

} // namespace

// A Mac's default generator has a random seed. Here it is fixed, so that audits are reproducible.
at::Generator new_generator() { return at::make_generator<DeviceGenerator>(c10::default_rng_seed_val); }

const at::Generator& default_generator() {
  static auto* generator = new at::Generator(new_generator());
  return *generator;
}

Draw::Draw(const at::Generator& device)
    : device_(device),
      before_(device.unsafeGetGeneratorImpl()->get_state()),
      host_(static_cast<DeviceGenerator*>(device.unsafeGetGeneratorImpl())->next_draw()),
      offset_afterwards_(device.unsafeGetGeneratorImpl()->get_offset()) {}

Draw::~Draw() {
  auto* device = device_.unsafeGetGeneratorImpl();
  const std::lock_guard<std::mutex> lock(device->mutex_);
  // If another thread has drawn meanwhile, the offset stays incremented.
  if (!has_drawn(host_) && device->get_offset() == offset_afterwards_) {
    device->set_state(*before_);
  }
}

LendSequenceToHost::LendSequenceToHost()
    : lock_(lending_mutex),
      draw_(default_generator()),
      host_(at::detail::getDefaultCPUGenerator()),
      saved_host_state_(host_.unsafeGetGeneratorImpl()->get_state()) {
  host_.unsafeGetGeneratorImpl()->set_state(*draw_.host().unsafeGetGeneratorImpl()->get_state());
}

LendSequenceToHost::~LendSequenceToHost() {
  auto* host = host_.unsafeGetGeneratorImpl();
  draw_.host().unsafeGetGeneratorImpl()->set_state(*host->get_state());
  host->set_state(*saved_host_state_);
}

} // namespace mpsmith
