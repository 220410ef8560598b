// Random numbers of the simulated device: a generator with the states of a Mac's, and the CPU's numbers.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>

#include <mutex>

namespace mpsmith {

at::Generator new_generator();
const at::Generator& default_generator();

// A CPU generator for one operator that draws from an mps generator, which moves on by one as it does on a Mac.
at::Generator host_generator_for_draw(const at::Generator& generator);

// For operators that draw numbers but take no generator argument (native_dropout): while it lives, the CPU's
// default generator draws for the mps device's; afterwards it has its own sequence again.
class LendSequenceToHost {
 public:
  LendSequenceToHost();
  ~LendSequenceToHost();
  LendSequenceToHost(const LendSequenceToHost&) = delete;
  LendSequenceToHost& operator=(const LendSequenceToHost&) = delete;

 private:
  std::unique_lock<std::mutex> lock_;
  at::Generator host_;
  c10::intrusive_ptr<c10::TensorImpl> saved_host_state_;
};

} // namespace mpsmith
