// Calls operators of a release's own libraries through the dispatcher's boxed interface.
// `operators`: a line for each, with its name and whether CPU and MPS have a kernel. `serve`: requests from stdin, each a
// line with a name and the size of a pickled tuple of arguments, and the tuple; answers in the same form to stdout.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <iostream>
#include <string>
#include <vector>

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

std::vector<char> called(const std::string& name, const std::vector<char>& pickled) {
  const auto dot = name.find('.');
  const auto overload = dot == std::string::npos ? std::string() : name.substr(dot + 1);
  auto operation = c10::Dispatcher::singleton().findSchemaOrThrow(name.substr(0, dot).c_str(), overload.c_str());
  const auto& wanted = operation.schema().arguments();
  const IValue given = torch::jit::pickle_load(pickled);
  const auto& values = given.toTupleRef().elements();
  TORCH_CHECK(values.size() == wanted.size(), name, " takes ", wanted.size(), " arguments, not ", values.size());
  torch::jit::Stack stack;
  for (size_t i = 0; i < wanted.size(); i++) stack.push_back(fitted(values[i], wanted[i].type()));
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

int serve() {
  std::string name;
  size_t size;
  while (std::cin >> name >> size) {
    std::cin.get();
    std::vector<char> pickled(size);
    std::cin.read(pickled.data(), size);
    try {
      answer("result", called(name, pickled));
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
  return count > 1 && std::string(arguments[1]) == "operators" ? operators() : serve();
}
