// Shared constants and errors of the simulated mps device. Keep this header small: parsing takes most of the build time.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

namespace mpsmith {

// There is one simulated device; its memory is host memory.
inline c10::Device simulated_device() { return c10::Device(c10::DeviceType::MPS, 0); }

inline c10::Device host_device() { return c10::Device(c10::DeviceType::CPU); }

// Two refusals of a Mac: any float64 tensor, and complex128 results of operators.
inline void check_dtype_allocatable(c10::ScalarType dtype) {
  TORCH_CHECK_TYPE(
      dtype != c10::ScalarType::Double,
      "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64. ",
      "Please use float32 instead.");
}

inline void check_dtype_of_result(c10::ScalarType dtype) {
  check_dtype_allocatable(dtype);
  TORCH_CHECK_TYPE(
      dtype != c10::ScalarType::ComplexDouble, "Trying to convert ", dtype,
      " to the MPS backend but it does not have support for that dtype.");
}

} // namespace mpsmith
