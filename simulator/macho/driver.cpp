// Calls operators of a release's own libraries through the dispatcher's boxed interface.
// `operators`: a line for each, with its name and whether CPU and MPS have a kernel. `serve`: requests from stdin, each a
// line with a name and the size of a pickled tuple of arguments, and the tuple; answers in the same form to stdout.
// `trace MAJOR MINOR`: the same, as on this macOS, with tensors on mps and what Metal was asked for as the answer.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/MPSHooksInterface.h>
#include <ATen/ATen.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <iostream>
#include <string>
#include <vector>

// Of recorder.mm and Foundation's stand-in; called where calls are traced only.
extern "C" const char* metal_recorder_take();
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
      return list_of<at::Tensor>(value, [](const IValue& v) { return v.toTensor(); });
    case TypeKind::OptionalType:
      return list_of<std::optional<at::Tensor>>(value, [](const IValue& v) { return v.toOptional<at::Tensor>(); });
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
    case TypeKind::FloatType:
      return number(value);
    case TypeKind::DeviceObjType:
      return c10::Device(value.toStringRef());
    default:
      return value;
  }
}

// The same sizes, strides and offset over a copy of the whole memory.
at::Tensor on_mps(const at::Tensor& tensor) {
  const int64_t elements = tensor.storage().nbytes() / tensor.element_size();
  const at::Tensor memory = at::empty({0}, tensor.options()).set_(tensor.storage(), 0, {elements}, {1});
  return memory.to(at::kMPS).as_strided(tensor.sizes(), tensor.strides(), tensor.storage_offset());
}

IValue on_mps(const IValue& value) {
  if (value.isTensor()) return on_mps(value.toTensor());
  if (value.isTensorList()) return list_of<at::Tensor>(value, [](const IValue& v) { return on_mps(v.toTensor()); });
  return value.isDevice() ? IValue(c10::Device(at::kMPS, 0)) : value;
}

std::vector<char> called(const std::string& name, const std::vector<char>& pickled, bool traced) {
  const auto dot = name.find('.');
  const auto overload = dot == std::string::npos ? std::string() : name.substr(dot + 1);
  auto operation = c10::Dispatcher::singleton().findSchemaOrThrow(name.substr(0, dot).c_str(), overload.c_str());
  const auto& wanted = operation.schema().arguments();
  const IValue given = torch::jit::pickle_load(pickled);
  const auto& values = given.toTupleRef().elements();
  TORCH_CHECK(values.size() == wanted.size(), name, " takes ", wanted.size(), " arguments, not ", values.size());
  torch::jit::Stack stack;
  for (size_t i = 0; i < wanted.size(); i++) stack.push_back(fitted(values[i], wanted[i].type()));
  if (traced) {
    for (IValue& value : stack) value = on_mps(value);
    at::detail::getMPSHooks().deviceSynchronize();
    metal_recorder_take();
    operation.callBoxed(stack);
    at::detail::getMPSHooks().deviceSynchronize();
    return torch::jit::pickle_save(std::string(metal_recorder_take()));
  }
  operation.callBoxed(stack);
  c10::impl::GenericList results(c10::AnyType::get());
  for (const IValue& result : stack)
    results.push_back(result.isTensor() && !result.toTensor().defined() ? IValue() : result);
  return torch::jit::pickle_save(results);
}

void answer(const char* kind, const std::vector<char>& bytes) {
  std::cout << kind << ' ' << bytes.size() << '\n';
  std::cout.write(bytes.data(), bytes.size()).flush();
}

int serve(bool traced) {
  std::string name;
  size_t size;
  while (std::cin >> name >> size) {
    std::cin.get();
    std::vector<char> pickled(size);
    std::cin.read(pickled.data(), size);
    try {
      answer("result", called(name, pickled, traced));
    } catch (const c10::Error& error) {
      const std::string text = error.what_without_backtrace();
      answer("error", {text.begin(), text.end()});
    } catch (const std::exception& error) {
      const std::string text = error.what();
      answer("error", {text.begin(), text.end()});
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
  if (task == "trace") foundation_simulator_set_macos(std::stol(arguments[2]), std::stol(arguments[3]));
  return serve(task == "trace");
}
