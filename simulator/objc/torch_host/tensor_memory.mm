// What extensions see of a tensor's memory: data_ptr() and storage() of seen_by_extensions.cpp end here. Compiled
// without ARC.
#include <ATen/core/TensorBase.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <sstream>

#include "../include/element_types.h"
#include "../metal/tensor_memory.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

void (*storage_seen_as)(const void*, uint32_t);

SimulatedElementType element_type(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Half:
    case c10::ScalarType::ComplexHalf:
      return kElementHalf;
    case c10::ScalarType::BFloat16:
      return kElementBFloat;
    case c10::ScalarType::Float:
    case c10::ScalarType::ComplexFloat:
      return kElementFloat;
    case c10::ScalarType::Short:
    case c10::ScalarType::UInt16:
      return kElementInt16;
    case c10::ScalarType::Int:
    case c10::ScalarType::UInt32:
      return kElementInt32;
    case c10::ScalarType::Long:
    case c10::ScalarType::UInt64:
      return kElementInt64;
    default:
      return kElementUnknown;
  }
}

void note_type(const at::TensorBase& tensor) {
  if (tensor.defined() && tensor.is_mps() && tensor.has_storage() && storage_seen_as != nullptr) {
    storage_seen_as(tensor.storage().data(), element_type(tensor.scalar_type()));
  }
}

// The tensors whose address was given last. The handler of a signal reads them.
struct Given {
  std::atomic<uintptr_t> begin{0}, end{0};
  char text[160];
};
constexpr size_t kRemembered = 512;
Given given[kRemembered];

void remember(const at::TensorBase& tensor) {
  static std::mutex mutex;
  static size_t next = 0;
  const auto begin = reinterpret_cast<uintptr_t>(tensor.storage().data());
  std::ostringstream text;
  text << tensor.scalar_type() << " of shape " << tensor.sizes();
  const std::lock_guard<std::mutex> guard(mutex);
  Given* place = nullptr;
  for (Given& each : given) {
    place = each.begin == begin ? &each : place;
  }
  place = place ? place : &given[next++ % kRemembered];
  place->end = 0;
  std::strncpy(place->text, text.str().c_str(), sizeof(place->text) - 1);
  place->begin = begin;
  place->end = begin + tensor.storage().nbytes();
}

struct sigaction before;

// Names the tensor, and lets the fault happen again: it ends the process as without this handler.
void name_the_tensor(int, siginfo_t* fault, void*) {
  const auto address = reinterpret_cast<uintptr_t>(mpsmith::host_address(fault->si_addr));
  for (const Given& each : given) {
    if (each.begin <= address && address < each.end) {
      char line[400];
      const int length = std::snprintf(
          line, sizeof(line),
          "mpsmith: the host follows data_ptr() of a tensor on mps (%s): on a Mac that is an MTLBuffer and not the "
          "tensor's numbers; copy the tensor with .cpu(), or bind its buffer to a kernel\n",
          each.text);
      (void)!write(STDERR_FILENO, line, length);
      break;
    }
  }
  sigaction(SIGSEGV, &before, nullptr);
}

void* apart(const at::TensorBase& tensor, const void* address) {
  if (address == nullptr || !tensor.is_mps()) {
    return const_cast<void*>(address);
  }
  static std::once_flag installed;
  std::call_once(installed, [] {
    struct sigaction handler{};
    handler.sa_sigaction = &name_the_tensor;
    handler.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigaction(SIGSEGV, &handler, &before);
  });
  note_type(tensor);
  remember(tensor);
  return mpsmith::address_apart(address);
}

const at::TensorBase& tensor_at(const void* tensor) { return *static_cast<const at::TensorBase*>(tensor); }

} // namespace

EXPORTED void mpsmith_set_storage_seen_as(void (*function)(const void*, uint32_t)) { storage_seen_as = function; }

EXPORTED const void* mpsmith_storage_of(const void* tensor) {
  note_type(tensor_at(tensor));
  return &tensor_at(tensor).storage();
}
EXPORTED void* mpsmith_data_of(const void* tensor, int mutable_data) {
  const at::TensorBase& of = tensor_at(tensor);
  return apart(of, mutable_data ? of.mutable_data_ptr() : of.const_data_ptr());
}
#define DATA_OF(TYPE, NAME) \
  EXPORTED void* mpsmith_data_of_##NAME(const void* tensor, int mutable_data) { \
    const at::TensorBase& of = tensor_at(tensor); \
    return apart(of, mutable_data ? of.mutable_data_ptr<TYPE>() : of.const_data_ptr<TYPE>()); \
  }
FOR_ELEMENT_TYPES(DATA_OF)
