// What a faulty operator does to its results, its inputs and the memory around them.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <vector>

namespace mpsmith {

// Gets a tensor's alias on the host and returns what takes its place: the same alias, or another host tensor.
using Change = std::function<at::Tensor(const at::Tensor& host)>;

// The mps tensors with strided memory among some values, those in lists included.
std::vector<at::Tensor> device_tensors(const std::vector<c10::IValue>& values);

// Changes the first mps tensor among the last `count` values of a stack.
void change_result(std::vector<c10::IValue>& stack, size_t count, const Change& change);

bool share_memory(const at::Tensor& left, const at::Tensor& right);

// Changes of values, in place. Tensors without elements stay as they are.
void make_wrong(const at::Tensor& host);
void make_last_nan(const at::Tensor& host);
void move_last(const at::Tensor& host, double relative, double absolute);
void change_first(const at::Tensor& device);

// Tensors with the right values, and something else wrong.
at::Tensor with_another_shape(const at::Tensor& host);
at::Tensor with_another_dtype(const at::Tensor& host);
at::Tensor with_other_strides(const at::Tensor& host);

// The result moved into the memory of the first input that has room for it; itself where none has.
void move_into_input(std::vector<c10::IValue>& stack, size_t count, const std::vector<at::Tensor>& inputs);

// Flips the byte behind the last element, where the tensor's storage goes on.
void write_behind(const at::Tensor& device);

// What freed memory looks like once somebody else has it.
void overwrite(const c10::Storage& storage);

} // namespace mpsmith
