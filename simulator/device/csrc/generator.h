// Random numbers of the simulated device: a generator with the state of a Mac's, and numbers of the CPU.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>

#include <mutex>

namespace mpsmith {

at::Generator new_generator();
const at::Generator& default_generator();

// The draws of an operator from an mps generator: numbers of a CPU generator, and one increment of the mps generator's
// offset. An operator that draws nothing, or raises first, does not change the mps generator.
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

// For operators that draw numbers without a generator argument (native_dropout): during its lifetime, the CPU's default
// generator draws for the mps device. Afterwards its own sequence is restored.
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
