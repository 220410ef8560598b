// Random numbers of the simulated device: a generator with the states of a Mac's, and the CPU's numbers.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>

#include <mutex>

namespace mpsmith {

at::Generator new_generator();
const at::Generator& default_generator();

// What one operator draws from an mps generator: numbers of a CPU generator, and one step of the mps generator's
// offset. An operator that draws nothing, or raises before it does, leaves the mps generator as it was.
class Draw {
 public:
  explicit Draw(const at::Generator& device);
  ~Draw();
  Draw(const Draw&) = delete;
  Draw& operator=(const Draw&) = delete;

  const at::Generator& host() const { return host_; }

 private:
  at::Generator device_;
  c10::intrusive_ptr<c10::TensorImpl> before_;
  at::Generator host_;
  uint64_t offset_afterwards_;
};

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
  Draw draw_;
  at::Generator host_;
  c10::intrusive_ptr<c10::TensorImpl> saved_host_state_;
};

} // namespace mpsmith
