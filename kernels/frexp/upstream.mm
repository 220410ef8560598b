#include <ATen/TensorIterator.h>
#include <ATen/native/UnaryOps.h>

namespace {

#include "shared/launch.h"

// The iterator has the mantissa, the exponent, which is int32, and the input.
void frexp_kernel(TensorIteratorBase& iter) {
  const Tensor mantissa = iter.tensor(0), exponent = iter.tensor(1), input = iter.tensor(2);
  TORCH_CHECK_NOT_IMPLEMENTED(
      supportedFloatingType(input), "frexp is not implemented for ", input.scalar_type(), " on MPS");
  const auto elements = exponent.numel();
  if (elements == 0) {
    return;
  }
  const auto name = "frexp_" + scalarToMetalTypeString(input);
  if (is_dense_and_aligned({exponent, mantissa, input})) {
    const auto threads = (elements + 3) / 4; // 16 bytes of exponents each
    launch_elements(name + "_dense_int", threads, exponent, mantissa, input, elements);
  } else {
    const auto layout = packed_layout({exponent, mantissa, input});
    launch_elements(name + "_strided64_int", elements, exponent, mantissa, input, layout);
  }
}

} // namespace

REGISTER_DISPATCH(frexp_stub, &frexp_kernel)
