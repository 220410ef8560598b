// Random numbers of the simulated device: a CPU generator labelled mps:0.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>

#include <mutex>

namespace mpsmith {

at::Generator new_generator();
const at::Generator& default_generator();

// The CPU generator that does the work of an mps generator.
at::Generator host_generator(const at::Generator& generator);

// For operators that draw numbers but take no generator argument (native_dropout): while it lives, the CPU's
// default generator continues the mps device's sequence; afterwards each has its own again.
class LendSequenceToHost {
 public:
  LendSequenceToHost();
  ~LendSequenceToHost();
  LendSequenceToHost(const LendSequenceToHost&) = delete;
  LendSequenceToHost& operator=(const LendSequenceToHost&) = delete;

 private:
  std::unique_lock<std::mutex> lock_;
  at::Generator host_;
  at::Generator device_;
  c10::intrusive_ptr<c10::TensorImpl> saved_host_state_;
};

} // namespace mpsmith
