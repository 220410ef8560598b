// torch's mps generator for host code: the simulated device's, whose fields are those of at::MPSGeneratorImpl
// (simulator/device/csrc/generator.cpp). Compiled without ARC, also into the backend of a tree (simulator/upstream).
#include <ATen/detail/MPSHooksInterface.h>
#include <ATen/mps/MPSGeneratorImpl.h>

namespace at {

namespace mps::detail {
const Generator& getDefaultMPSGenerator() { return at::detail::getMPSHooks().getDefaultGenerator(); }
Generator createMPSGenerator(uint64_t seed) {
  Generator made = at::detail::getMPSHooks().getNewGenerator(-1);
  made.set_current_seed(seed);
  return made;
}
} // namespace mps::detail

void MPSGeneratorImpl::update_philox_counters() {
  for (size_t i = 1; i <= 4; ++i) { // the last two words are the key
    data_.state[i] = engine_();
  }
}

} // namespace at
