// What kernels do besides encoding commands, call by call: graphs, waits for the GPU, and operators on the CPU.
#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>

#ifndef NDEBUG
#error "torch is built with NDEBUG: without it RecordFunction has a field more, and its inputs cannot be read"
#endif

extern "C" int64_t mpsgraph_simulator_runs();
extern "C" int64_t mpsgraph_simulator_results_lost();
extern "C" int64_t metal_simulator_waits();
extern "C" void metal_simulator_forget_encoders();

namespace {

struct Work {
  int64_t calls = 0, graphs = 0, waits = 0, lost = 0;
  std::map<std::string, int64_t> on_cpu;
};

std::unordered_set<std::string> kernels;
std::mutex recording;
std::map<std::string, Work> by_overload;

const char* const kCopy = "copy to the host";
// They move data or describe it; what they copy is counted by copy_.
const std::unordered_set<std::string> kPlain{
    "_local_scalar_dense",
    "_reshape_alias",
    "_to_copy",
    "_unsafe_view",
    "alias",
    "as_strided",
    "broadcast_to",
    "clone",
    "contiguous",
    "copy_",
    "detach",
    "empty",
    "empty_like",
    "empty_strided",
    "expand",
    "expand_as",
    "fill_",
    "flatten",
    "item",
    "is_nonzero",
    "lift_fresh",
    "narrow",
    "permute",
    "reshape",
    "resize_",
    "select",
    "set_",
    "slice",
    "squeeze",
    "t",
    "to",
    "transpose",
    "unfold",
    "unsqueeze",
    "view",
    "view_as",
    "zero_",
    "zeros_like",
    "empty_permuted"};

struct Inputs {
  bool mps = false, cpu = false;
  void add(const at::Tensor& tensor) {
    mps |= tensor.defined() && tensor.is_mps();
    cpu |= tensor.defined() && tensor.is_cpu() && tensor.numel() > 1;
  }
};

Inputs inputs_of(const at::RecordFunction& call) {
  Inputs found;
  for (const c10::IValue& value : call.inputs()) {
    if (value.isTensor()) {
      found.add(value.toTensor());
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) {
        found.add(tensor);
      }
    }
  }
  return found;
}

// The kernel that runs in this thread, and whether an operator on the CPU runs inside of it.
struct Running {
  std::string kernel;
  Work work;
  bool inside_cpu = false;
};
thread_local Running* running = nullptr;

struct Ended : at::ObserverContext {
  std::unique_ptr<Running> kernel; // or an operator on the CPU
  ~Ended() override {
    if (kernel == nullptr) {
      if (running != nullptr) {
        running->inside_cpu = false;
      }
      return;
    }
    running = nullptr;
    const std::lock_guard lock(recording);
    Work& sum = by_overload[kernel->kernel];
    sum.calls += 1;
    sum.graphs += mpsgraph_simulator_runs() - kernel->work.graphs;
    sum.waits += metal_simulator_waits() - kernel->work.waits;
    sum.lost += mpsgraph_simulator_results_lost() - kernel->work.lost;
    for (const auto& [name, count] : kernel->work.on_cpu) {
      sum.on_cpu[name] += count;
    }
  }
};

std::unique_ptr<at::ObserverContext> begun(const at::RecordFunction& call) {
  const auto name = call.operator_name();
  if (!name || (running != nullptr && running->inside_cpu)) {
    return nullptr;
  }
  if (running == nullptr) {
    std::string overload = c10::toString(*name);
    if (kernels.count(name->name) == 0 || !inputs_of(call).mps) {
      return nullptr;
    }
    auto ended = std::make_unique<Ended>();
    ended->kernel = std::make_unique<Running>();
    ended->kernel->kernel = std::move(overload);
    ended->kernel->work.graphs = mpsgraph_simulator_runs();
    ended->kernel->work.waits = metal_simulator_waits();
    ended->kernel->work.lost = mpsgraph_simulator_results_lost();
    running = ended->kernel.get();
    return ended;
  }
  const auto inputs = inputs_of(call);
  const std::string operation = name->name.substr(name->name.find("::") + 2);
  if (operation == "copy_") {
    const auto& tensors = call.inputs();
    if (tensors[0].toTensor().is_cpu() && tensors[1].toTensor().is_mps()) {
      ++running->work.on_cpu[kCopy];
    }
    return nullptr;
  }
  if (!inputs.cpu || inputs.mps || kPlain.count(operation) != 0) {
    return nullptr;
  }
  ++running->work.on_cpu[name->name];
  running->inside_cpu = true;
  return std::make_unique<Ended>();
}

} // namespace

// Observe these operators from now on: their names, one a line.
extern "C" __attribute__((visibility("default"))) void mpsmith_observe_kernels(const char* names) {
  std::string name;
  for (; *names != 0; ++names) {
    if (*names == '\n') {
      kernels.insert(std::move(name));
      name.clear();
    } else {
      name += *names;
    }
  }
  at::addGlobalCallback(
      at::RecordFunctionCallback(begun, [](const at::RecordFunction&, at::ObserverContext*) {})
          .needsInputs(true)
          .scopes({at::RecordScope::FUNCTION}));
}

// What the kernels did since the last time, a line for each overload: its name, calls, graphs, waits, and the operators
// on the CPU and lost results as `name=count`, separated by tabs.
extern "C" __attribute__((visibility("default"))) const char* mpsmith_drain_host_work() {
  static thread_local std::string text;
  text.clear();
  const std::lock_guard lock(recording);
  for (const auto& [overload, work] : by_overload) {
    text += overload + '\t' + std::to_string(work.calls) + '\t' + std::to_string(work.graphs) + '\t' +
        std::to_string(work.waits);
    for (const auto& [name, count] : work.on_cpu) {
      text += '\t' + name + '=' + std::to_string(count);
    }
    if (work.lost > 0) {
      text += "\tresult that no one reads=" + std::to_string(work.lost);
    }
    text += '\n';
  }
  by_overload.clear();
  metal_simulator_forget_encoders();
  return text.c_str();
}
