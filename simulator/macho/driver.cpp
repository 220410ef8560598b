// Calls operators of a release's own libraries through the dispatcher's boxed interface.
// `operators`: a line for each, with its name and whether CPU and MPS have a kernel. `serve`: requests from stdin, each
// two sizes of 4 bytes, a name and a pickled tuple of arguments; answers to stdout, each a line with a kind and a size,
// and as many bytes.
// `trace MAJOR MINOR`: the same, as on this macOS, with tensors on mps and what Metal was asked for as the answer.
// `compute MAJOR MINOR`: the same with tensors in shared memory, and kernels that compute: the answer is a tuple of the
// results, the arguments that the call wrote, what Metal was asked for, and what else the kernels did (host_work.mm).
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/MPSHooksInterface.h>
#include <ATen/ATen.h>
#include <torch/csrc/jit/serialization/pickle.h>
#include <unistd.h>

#include <cstring>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <typeinfo>
#include <vector>

// Of recorder.mm, host_work.mm, MPSGraph's and Foundation's stand-ins; called where calls are traced only.
extern "C" int64_t mpsgraph_simulator_runs();
extern "C" void mpsmith_observe_kernels(const char* names);
extern "C" const char* mpsmith_drain_host_work();
extern "C" void mpsgraph_simulator_add_limit(const char*, const char*, int64_t, int64_t, int64_t, const char*);
extern "C" const char* metal_recorder_take();
extern "C" void* metal_buffer_contents(const void* buffer);
extern "C" const char* shared_memory_release();
extern "C" void* objc_autoreleasePoolPush();
extern "C" void objc_autoreleasePoolPop(void* mark);
extern "C" void foundation_simulator_set_macos(long major, long minor);

namespace {

using c10::IValue;
using c10::TypeKind;

template <typename T, typename Read>
IValue list_of(const IValue& value, Read read) {
  c10::List<T> list;
  for (const IValue& element : value.toListRef()) list.push_back(read(element));
  return list;
}

double number(const IValue& value) { return value.isInt() ? double(value.toInt()) : value.toDouble(); }

// A Python number for a tensor.
at::Tensor tensor(const IValue& value) {
  if (value.isTensor()) return value.toTensor();
  at::Tensor wrapped = c10::scalar_to_tensor(value.toScalar());
  wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);
  return wrapped;
}

IValue fitted_list(const IValue& value, const c10::TypePtr& element) {
  switch (element->kind()) {
    case TypeKind::IntType:
    case TypeKind::SymIntType:
      return list_of<int64_t>(value, [](const IValue& v) { return v.toInt(); });
    case TypeKind::FloatType:
      return list_of<double>(value, number);
    case TypeKind::BoolType:
      return list_of<bool>(value, [](const IValue& v) { return v.toBool(); });
    case TypeKind::TensorType:
      return list_of<at::Tensor>(value, tensor);
    case TypeKind::OptionalType:
      return list_of<std::optional<at::Tensor>>(
          value, [](const IValue& v) { return v.isNone() ? std::optional<at::Tensor>() : tensor(v); });
    default: {
      c10::impl::GenericList list(element);
      for (const IValue& one : value.toListRef()) list.push_back(one);
      return list;
    }
  }
}

// Python's lists and numbers do not say of which type they are; the schema does.
IValue fitted(const IValue& value, const c10::TypePtr& type) {
  if (value.isNone()) return value;
  switch (type->kind()) {
    case TypeKind::OptionalType:
      return fitted(value, type->castRaw<c10::OptionalType>()->getElementType());
    case TypeKind::ListType: {
      const auto& element = type->castRaw<c10::ListType>()->getElementType();
      return value.isList() ? fitted_list(value, element) : value;
    }
    case TypeKind::TensorType:
      return tensor(value);
    case TypeKind::FloatType:
      return number(value);
    case TypeKind::DeviceObjType:
      return c10::Device(value.toStringRef());
    default:
      return value;
  }
}

constexpr int64_t kBufferBytes = 256; // recorder.mm's heaps give each buffer a multiple of it

// The same sizes, strides and offset over a copy of the whole memory.
at::Tensor on_mps(const at::Tensor& tensor) {
  const int64_t elements = tensor.storage().nbytes() / tensor.element_size();
  const at::Tensor memory = at::empty({0}, tensor.options()).set_(tensor.storage(), 0, {elements}, {1});
  return memory.to(at::kMPS).as_strided(tensor.sizes(), tensor.strides(), tensor.storage_offset());
}

char* memory_of(const at::Tensor& tensor) {
  auto* data = const_cast<void*>(tensor.storage().data());
  return static_cast<char*>(tensor.is_mps() && data != nullptr ? metal_buffer_contents(data) : data);
}

IValue traced(const IValue& value) {
  if (value.isTensor()) return on_mps(value.toTensor());
  if (!value.isList()) return value;
  c10::impl::GenericList list(c10::AnyType::get());
  for (const IValue& element : value.toListRef()) list.push_back(traced(element));
  return list;
}

// The arguments of a call from the pickle of a tuple, as `shared_memory.pickled` writes it. torch's own reader takes
// longer than many calls where it is emulated. A tensor in shared memory is a tuple: whether it is on mps, address and
// bytes of its memory, dtype, offset, sizes and strides, and whether it is lazily conjugated and negated. Tensors in the
// same memory share it on mps, too.
class Arguments {
 public:
  explicit Arguments(const std::vector<char>& pickle) : at_(pickle.data() + 3) {}
  bool ended() const { return *at_ == 't'; }
  IValue next() {
    switch (*at_++) {
      case 'N':
        return IValue();
      case '\x88':
        return true;
      case '\x89':
        return false;
      case '\x8a':
        ++at_;
        return taken<int64_t>();
      case 'G':
        return real();
      case 'c': { // builtins.complex, called with a tuple
        at_ += strlen("builtins\ncomplex\n(G");
        const double first = real();
        ++at_;
        const c10::complex<double> value(first, real());
        at_ += 2;
        return value;
      }
      case 'X': {
        const auto size = taken<uint32_t>();
        at_ += size;
        return std::string(at_ - size, size);
      }
      case ']': {
        c10::impl::GenericList list(c10::AnyType::get());
        for (++at_; *at_ != 'e';) list.push_back(next());
        ++at_;
        return list;
      }
      default:
        return described();
    }
  }

 private:
  template <typename T>
  T taken() {
    T value;
    memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  double real() {
    const uint64_t bits = __builtin_bswap64(taken<uint64_t>());
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
  }
  int64_t number() {
    at_ += 2;
    return taken<int64_t>();
  }
  std::vector<int64_t> numbers() {
    std::vector<int64_t> all;
    for (at_ += 2; *at_ != 'e';) all.push_back(number());
    ++at_;
    return all;
  }
  bool flag() { return *at_++ == '\x88'; }

  at::Tensor described() {
    const bool is_mps = number() != 0;
    const auto device = is_mps ? at::kMPS : at::kCPU;
    const int64_t address = number(), bytes = number();
    at::Tensor& memory = memories_[address];
    if (!memory.defined()) {
      memory = at::empty({bytes}, at::TensorOptions().device(device).dtype(at::kByte));
      if (bytes > 0) memcpy(memory_of(memory), reinterpret_cast<void*>(address), bytes);
      // Kernels may read further, and the buffer may have been used before.
      if (bytes > 0 && is_mps) memset(memory_of(memory) + bytes, 0, -bytes & (kBufferBytes - 1));
    }
    const auto dtype = c10::scalarTypeToTypeMeta(static_cast<c10::ScalarType>(number()));
    auto result = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(memory.storage()), memory.key_set(), dtype);
    const int64_t offset = number();
    const auto sizes = numbers(), strides = numbers();
    result.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
    if (flag()) result._set_conj(true);
    if (flag()) result._set_neg(true);
    ++at_;
    return result;
  }
  const char* at_;
  std::map<int64_t, at::Tensor> memories_;

 public:
  // What the call wrote, declared or not.
  void take_back() {
    for (auto& [address, memory] : memories_)
      memcpy(reinterpret_cast<void*>(address), memory_of(memory), memory.numel());
  }
};

// A pickle of results, written here because torch's own is slow where it is emulated.
class Pickle {
 public:
  // The memory of tensors has to be kept until it is read.
  explicit Pickle(std::vector<at::Tensor>& kept) : kept_(kept) { bytes_ = "\x80\x02("; }
  void add(const std::vector<IValue>& values) {
    bytes_ += "](";
    for (const IValue& value : values) add(value);
    bytes_ += 'e';
  }
  void add(const std::string& text) {
    bytes_ += 'X';
    const auto size = uint32_t(text.size());
    raw(&size, sizeof size);
    bytes_ += text;
  }
  // Whether a lazily conjugated or negated result was computed, or one was copied to the device.
  bool computed() const { return computed_; }
  std::vector<char> taken() {
    bytes_ += "t.";
    return {bytes_.begin(), bytes_.end()};
  }

 private:
  void add(const IValue& value) {
    if (value.isNone() || (value.isTensor() && !value.toTensor().defined())) {
      bytes_ += 'N';
    } else if (value.isTensor()) {
      add(value.toTensor());
    } else if (value.isBool()) {
      bytes_ += value.toBool() ? '\x88' : '\x89';
    } else if (value.isInt()) {
      add(value.toInt());
    } else if (value.isDouble()) {
      add(value.toDouble());
    } else if (value.isComplexDouble()) {
      bytes_ += "cbuiltins\ncomplex\n(";
      add(value.toComplexDouble().real());
      add(value.toComplexDouble().imag());
      bytes_ += "tR";
    } else if (value.isString()) {
      add(value.toStringRef());
    } else if (value.isList()) {
      add(value.toListRef().vec());
    } else {
      TORCH_CHECK(false, "a result of type ", value.tagKind(), " is not simulated");
    }
  }
  // A tuple as `Arguments` reads.
  void add(const at::Tensor& given) {
    TORCH_CHECK(given.has_storage(), "memory of a tensor that is not strided is not simulated");
    const at::Tensor tensor = given.resolve_conj().resolve_neg(), shared = tensor.is_mps() ? tensor : on_mps(tensor);
    computed_ |= !shared.is_same(given);
    kept_.push_back(shared);
    bytes_ += '(';
    add(int64_t(tensor.is_mps()));
    add(reinterpret_cast<int64_t>(memory_of(shared)));
    add(int64_t(tensor.storage().nbytes()));
    add(int64_t(tensor.scalar_type()));
    add(tensor.storage_offset());
    add(tensor.sizes());
    add(tensor.strides());
    bytes_ += 't';
  }
  void add(at::IntArrayRef numbers) {
    bytes_ += "](";
    for (const int64_t number : numbers) add(number);
    bytes_ += 'e';
  }
  void add(int64_t number) {
    bytes_ += "\x8a\x08";
    raw(&number, sizeof number);
  }
  void add(double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    bits = __builtin_bswap64(bits);
    bytes_ += 'G';
    raw(&bits, sizeof bits);
  }
  void raw(const void* from, size_t size) { bytes_.append(static_cast<const char*>(from), size); }

  std::string bytes_;
  std::vector<at::Tensor>& kept_;
  bool computed_ = false;
};

const c10::OperatorHandle& operation_named(const std::string& name) {
  static std::map<std::string, c10::OperatorHandle> known;
  const auto found = known.find(name);
  if (found != known.end()) return found->second;
  const auto dot = name.find('.');
  const auto overload = dot == std::string::npos ? std::string() : name.substr(dot + 1);
  auto operation = c10::Dispatcher::singleton().findSchemaOrThrow(name.substr(0, dot).c_str(), overload.c_str());
  return known.emplace(name, operation).first->second;
}

enum class Task { serve, trace, compute };

std::vector<at::Tensor> kept; // the results of the last call, which the other process copies

std::vector<char> called(const std::string& name, const std::vector<char>& pickled, Task task) {
  static bool unsettled = true; // commands or records may be left of the call before
  kept.clear();
  const auto& operation = operation_named(name);
  const auto& wanted = operation.schema().arguments();
  Arguments on_device(pickled);
  std::vector<IValue> values;
  if (task == Task::compute) {
    while (!on_device.ended()) values.push_back(on_device.next());
  } else {
    values = torch::jit::pickle_load(pickled).toTupleRef().elements().vec();
  }
  // Last, and not an argument: the state of the generator, which becomes the one after the call.
  const bool draws = task == Task::compute && values.size() == wanted.size() + 1;
  TORCH_CHECK(
      values.size() == wanted.size() || draws, name, " takes ", wanted.size(), " arguments, not ", values.size());
  torch::jit::Stack stack;
  std::vector<IValue> written;
  for (size_t i = 0; i < wanted.size(); i++) {
    IValue value = fitted(task == Task::trace ? traced(values[i]) : values[i], wanted[i].type());
    stack.push_back(task != Task::serve && value.isDevice() ? IValue(c10::Device(at::kMPS, 0)) : std::move(value));
    if (wanted[i].alias_info() != nullptr && wanted[i].alias_info()->isWrite()) written.push_back(stack.back());
  }
  if (task == Task::serve) {
    operation.callBoxed(stack);
    c10::impl::GenericList results(c10::AnyType::get());
    for (const IValue& result : stack)
      results.push_back(result.isTensor() && !result.toTensor().defined() ? IValue() : result);
    return torch::jit::pickle_save(results);
  }
  at::Tensor state;
  at::Generator generator;
  if (draws) {
    state = values.back().toTensor();
    generator = at::detail::getMPSHooks().getDefaultGenerator();
    generator.set_state(state);
  }
  values.clear(); // the call may be the last to hold an argument
  if (unsettled) {
    at::detail::getMPSHooks().deviceSynchronize();
    metal_recorder_take();
    mpsmith_drain_host_work();
  }
  unsettled = true;
  const int64_t graphs = mpsgraph_simulator_runs();
  operation.callBoxed(stack);
  at::detail::getMPSHooks().deviceSynchronize();
  const std::string trace =
      "graphs " + std::to_string(mpsgraph_simulator_runs() - graphs) + '\n' + metal_recorder_take();
  if (task == Task::trace) return torch::jit::pickle_save(trace);
  if (draws) state.copy_(generator.get_state());
  on_device.take_back();
  const std::string work = mpsmith_drain_host_work();
  Pickle answer(kept);
  answer.add(stack);
  answer.add(written);
  answer.add(trace);
  answer.add(work);
  unsettled = answer.computed();
  return answer.taken();
}

// A line for each limit of MPSGraph: operation, measure, three numbers and a message, separated by tabs.
void add_limits(const std::vector<char>& table) {
  std::istringstream lines({table.begin(), table.end()});
  for (std::string operation, measure, above, first, before, message; std::getline(lines, operation, '\t');) {
    for (std::string* field : {&measure, &above, &first, &before}) std::getline(lines, *field, '\t');
    std::getline(lines, message);
    mpsgraph_simulator_add_limit(
        operation.c_str(), measure.c_str(), std::stoll(above), std::stoll(first), std::stoll(before), message.c_str());
  }
}

// Not through streams, which read and write byte by byte.
bool read_all(void* to, size_t bytes) {
  for (auto* at = static_cast<char*>(to); bytes > 0;) {
    const ssize_t taken = read(0, at, bytes);
    if (taken <= 0) return false;
    at += taken;
    bytes -= taken;
  }
  return true;
}
void answer(const char* kind, const std::vector<char>& bytes) {
  std::string message = std::string(kind) + ' ' + std::to_string(bytes.size()) + '\n';
  message.append(bytes.data(), bytes.size());
  for (size_t done = 0; done < message.size();) {
    const ssize_t written = write(1, message.data() + done, message.size() - done);
    if (written <= 0) _exit(1); // the other process is gone
    done += written;
  }
}

// Python's class, as torch translates errors.
const char* class_of(const c10::Error& error) {
  if (dynamic_cast<const c10::IndexError*>(&error)) return "IndexError";
  if (dynamic_cast<const c10::ValueError*>(&error)) return "ValueError";
  if (dynamic_cast<const c10::TypeError*>(&error)) return "TypeError";
  if (dynamic_cast<const c10::LinAlgError*>(&error)) return "LinAlgError";
  if (dynamic_cast<const c10::NotImplementedError*>(&error)) return "NotImplementedError";
  // Of a kernel's report. Older headers do not declare this class.
  return std::strstr(typeid(error).name(), "AcceleratorError") ? "AcceleratorError" : "RuntimeError";
}

// Warnings of the release have no place among the lines of an audit.
struct NoWarnings : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

// Methods return autoreleased objects. Apple's runtime needs no pool where the caller retains them; this one does.
struct AutoreleasePool {
  void* mark = objc_autoreleasePoolPush();
  ~AutoreleasePool() { objc_autoreleasePoolPop(mark); }
};

int serve(Task task) {
  static NoWarnings no_warnings;
  c10::WarningUtils::set_warning_handler(&no_warnings);
  uint32_t sizes[2];
  while (read_all(sizes, sizeof sizes)) {
    std::string name(sizes[0], 0);
    std::vector<char> pickled(sizes[1]);
    if (!read_all(name.data(), name.size()) || !read_all(pickled.data(), pickled.size())) break;
    std::optional<AutoreleasePool> pool;
    if (task != Task::serve) pool.emplace(); // else there is no Objective-C
    try {
      if (name == "limits") {
        add_limits(pickled);
        continue;
      }
      if (name == "empty cache") {
        kept.clear();
        at::detail::getMPSHooks().emptyCache();
        const std::string ranges = shared_memory_release();
        answer("result", {ranges.begin(), ranges.end()});
        continue;
      }
      answer("result", called(name, pickled, task));
    } catch (const c10::Error& error) {
      const std::string text = error.what_without_backtrace();
      answer(class_of(error), {text.begin(), text.end()});
    } catch (const std::exception& error) {
      const std::string text = error.what();
      answer("RuntimeError", {text.begin(), text.end()});
    }
  }
  return 0;
}

int operators() {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& name : dispatcher.getAllOpNames()) {
    const auto found = dispatcher.findOp(name);
    if (!found) continue;
    const bool cpu = found->hasKernelForDispatchKey(c10::DispatchKey::CPU);
    const bool mps = found->hasKernelForDispatchKey(c10::DispatchKey::MPS);
    std::cout << name.name << (name.overload_name.empty() ? "" : ".") << name.overload_name << ' ' << cpu << ' ' << mps
              << '\n';
  }
  std::cout.flush();
  return 0;
}

} // namespace

extern "C" int driver(int count, char** arguments) {
  const std::string task = count > 1 ? arguments[1] : "";
  if (task == "operators") return operators();
  if (task == "serve" || task.empty()) return serve(Task::serve);
  foundation_simulator_set_macos(std::stol(arguments[2]), std::stol(arguments[3]));
  if (task == "trace") return serve(Task::trace);
  std::string names;
  for (const auto& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto found = c10::Dispatcher::singleton().findOp(name);
    if (found && found->hasKernelForDispatchKey(c10::DispatchKey::MPS)) names += name.name + '\n';
  }
  mpsmith_observe_kernels(names.c_str());
  serve(Task::compute);
  _exit(0); // what ends the library asks the other process for memory, which may have ended
}
