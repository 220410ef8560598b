#include "fault_effects.h"

#include "alias.h"

#include <ATen/core/List.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace mpsmith {
namespace {

bool is_usable(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().is_mps() && tensor.layout() == c10::kStrided;
}

at::Tensor element(const at::Tensor& tensor, int64_t position) {
  at::Tensor found = tensor;
  while (found.dim() > 0) {
    found = found.select(0, position);
  }
  return found;
}

// The first element behind the last one that the tensor can reach, counted from the start of its storage.
int64_t end_of(const at::Tensor& tensor) {
  int64_t last = tensor.storage_offset();
  for (int64_t d = 0; d < tensor.dim(); d++) {
    last += (tensor.size(d) - 1) * tensor.stride(d);
  }
  return last + 1;
}

at::Tensor changed(const at::Tensor& device, const Change& change) {
  AliasScope scope;
  return scope.to_device(change(scope.to_host(device)));
}

} // namespace

std::vector<at::Tensor> device_tensors(const std::vector<c10::IValue>& values) {
  std::vector<at::Tensor> found;
  const auto add = [&](const at::Tensor& tensor) {
    if (is_usable(tensor)) {
      found.push_back(tensor);
    }
  };
  for (const c10::IValue& value : values) {
    if (value.isTensor()) {
      add(value.toTensor());
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) {
        add(tensor);
      }
    } else if (value.isOptionalTensorList()) {
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
        add(tensor.value_or(at::Tensor()));
      }
    }
  }
  return found;
}

void change_result(std::vector<c10::IValue>& stack, size_t count, const Change& change) {
  for (size_t i = stack.size() - count; i < stack.size(); i++) {
    c10::IValue& value = stack[i];
    if (value.isTensor() && is_usable(value.toTensor())) {
      value = changed(value.toTensor(), change);
      return;
    }
    if (value.isTensorList() && !value.toTensorList().empty()) {
      std::vector<at::Tensor> tensors = value.toTensorVector();
      tensors[0] = changed(tensors[0], change);
      value = c10::List<at::Tensor>(std::move(tensors));
      return;
    }
  }
}

bool share_memory(const at::Tensor& left, const at::Tensor& right) {
  return left.storage().unsafeGetStorageImpl() == right.storage().unsafeGetStorageImpl();
}

void make_wrong(const at::Tensor& host) {
  if (host.scalar_type() == c10::ScalarType::Bool) {
    host.logical_not_();
  } else {
    host.add_(1);
  }
}

void make_last_nan(const at::Tensor& host) {
  if (host.numel() > 0 && (host.is_floating_point() || host.is_complex())) {
    element(host, -1).fill_(std::numeric_limits<double>::quiet_NaN());
  }
}

void move_last(const at::Tensor& host, double relative, double absolute) {
  if (host.numel() > 0 && host.is_floating_point()) {
    const at::Tensor last = element(host, -1);
    const double value = last.item().toDouble();
    last.fill_(value + relative * std::abs(value) + absolute);
  }
}

void change_first(const at::Tensor& device) {
  AliasScope scope;
  const at::Tensor host = scope.to_host(device);
  if (host.numel() > 0) {
    make_wrong(element(host, 0));
  }
}

at::Tensor with_another_shape(const at::Tensor& host) { return host.unsqueeze(0); }

at::Tensor with_another_dtype(const at::Tensor& host) {
  return host.to(host.scalar_type() == c10::ScalarType::Float ? c10::ScalarType::Half : c10::ScalarType::Float);
}

at::Tensor with_other_strides(const at::Tensor& host) {
  std::vector<int64_t> strides(host.dim());
  int64_t step = 1;
  for (int64_t d = 0; d < host.dim(); d++) { // the first dimension is the dense one, with a gap between the others
    strides[d] = step;
    step *= host.size(d) + 1;
  }
  const bool is_vector = host.dim() == 1;
  if (is_vector) {
    strides[0] = 2;
  }
  return host.new_empty_strided(host.sizes(), strides).copy_(host);
}

void move_into_input(std::vector<c10::IValue>& stack, size_t count, const std::vector<at::Tensor>& inputs) {
  for (size_t i = stack.size() - count; i < stack.size(); i++) {
    c10::IValue& value = stack[i];
    if (!value.isTensor() || !is_usable(value.toTensor())) {
      continue;
    }
    const at::Tensor result = value.toTensor();
    for (const at::Tensor& input : inputs) {
      const bool fits = input.is_contiguous() && input.scalar_type() == result.scalar_type() &&
          input.numel() == result.numel() && !share_memory(input, result);
      if (fits) {
        AliasScope scope;
        const at::Tensor place = scope.to_host(input).view(result.sizes());
        place.copy_(scope.to_host(result));
        value = scope.to_device(place);
        return;
      }
    }
  }
}

void write_behind(const at::Tensor& device) {
  if (device.numel() == 0) {
    return;
  }
  const size_t end = static_cast<size_t>(end_of(device)) * device.element_size();
  auto* storage = device.storage().unsafeGetStorageImpl();
  if (end < storage->nbytes()) {
    static_cast<unsigned char*>(storage->_mutable_data_ptr_no_checks().get())[end] ^= 0xff;
  }
}

void overwrite(const c10::Storage& storage) {
  auto* impl = storage.unsafeGetStorageImpl();
  if (impl->nbytes() > 0) {
    std::memset(impl->_mutable_data_ptr_no_checks().get(), 0xff, impl->nbytes());
  }
}

} // namespace mpsmith
