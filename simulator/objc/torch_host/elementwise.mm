// The elementwise launches of MetalShaderLibrary, for the kernels of c10/metal/indexing.h: selects the kernel for an
// iterator and binds its buffers. Compiled without ARC.
#define AT_PER_OPERATOR_HEADERS
#include <ATen/native/mps/OperationUtils.h>

#include <ATen/TensorIterator.h>

namespace at::native::mps {

namespace {

// The number of elements from which a thread processes several.
constexpr uint32_t kManyElements = 1u << 18;
constexpr uint32_t kElementsOfThread = 4;

std::string metal(ScalarType type) { return scalarToMetalTypeString(type); }

uint32_t number(ScalarType type) { return static_cast<uint32_t>(type); }

uint32_t bytes(ScalarType type) { return static_cast<uint32_t>(c10::elementSize(type)); }

// Runs `encode` with the kernel of that name set.
template <typename Encode>
void encoded(MTLComputePipelineState_t state, const Encode& encode) {
  auto stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      auto encoder = stream->commandEncoder();
      [encoder setComputePipelineState:state];
      encode(encoder);
    }
  });
}

// A row of threads for the innermost dimension, as many rows as there are elements in the others.
void dispatch_rows(id<MTLComputeCommandEncoder> encoder, MTLComputePipelineState_t state, TensorIteratorBase& iter) {
  const auto inner = static_cast<NSUInteger>(iter.shape()[0]);
  mtl_dispatch2DJob(encoder, state, inner, static_cast<NSUInteger>(iter.numel()) / inner);
}

uint64_t threads_of_several(uint64_t elements) { return (elements + kElementsOfThread - 1) / kElementsOfThread; }

// CPU scalars may have a type that Metal lacks.
Tensor without_doubles(const Tensor& x) {
  if (x.dim() == 0 && x.scalar_type() == kDouble) {
    return x.to(kFloat);
  }
  return x.dim() == 0 && x.scalar_type() == kComplexDouble ? x.to(kComplexFloat) : x;
}

// A number as the bytes that a kernel reads.
void set_number(id<MTLComputeCommandEncoder> encoder, const Scalar& value, ScalarType type, unsigned index) {
  switch (type) {
    case kFloat:
      return mtl_setBytes(encoder, value.to<float>(), index);
    case kHalf:
      return mtl_setBytes(encoder, value.to<Half>(), index);
    case kBFloat16:
      return mtl_setBytes(encoder, value.to<BFloat16>(), index);
    case kLong:
      return mtl_setBytes(encoder, value.to<int64_t>(), index);
    case kInt:
      return mtl_setBytes(encoder, value.to<int32_t>(), index);
    case kShort:
      return mtl_setBytes(encoder, value.to<int16_t>(), index);
    case kChar:
      return mtl_setBytes(encoder, value.to<int8_t>(), index);
    case kByte:
      return mtl_setBytes(encoder, value.to<uint8_t>(), index);
    case kBool:
      return mtl_setBytes(encoder, value.to<bool>(), index);
    case kComplexFloat:
      return mtl_setBytes(encoder, value.to<c10::complex<float>>(), index);
    case kComplexHalf:
      return mtl_setBytes(encoder, value.to<c10::complex<Half>>(), index);
    default:
      TORCH_CHECK(false, "a number of ", type, " cannot be passed to a Metal kernel");
  }
}

// Whether an operand is broadcast only along leading dimensions of the result.
bool repeats_into(const Tensor& operand, const Tensor& result) {
  if (!operand.is_contiguous() || !result.is_contiguous() || operand.numel() == result.numel()) {
    return false;
  }
  bool behind_its_own = false;
  for (int64_t d = 1; d <= operand.dim(); ++d) {
    const bool same = operand.size(-d) == result.size(-d);
    if (behind_its_own && operand.size(-d) != 1) {
      return false;
    }
    behind_its_own |= !same;
    if (behind_its_own && operand.size(-d) != 1) {
      return false;
    }
  }
  return true;
}

} // namespace

void MetalShaderLibrary::exec_unary_kernel(
    TensorIteratorBase& iter,
    const std::string& name,
    const std::optional<Scalar> alpha,
    const std::optional<ScalarType> scalar_arg_type,
    const std::optional<uint32_t> ilp_threshold) {
  if (!iter.can_use_32bit_indexing()) {
    for (auto&& part : iter.with_32bit_indexing()) {
      exec_unary_kernel(part, name, alpha, scalar_arg_type, ilp_threshold);
    }
    return;
  }
  const auto elements = static_cast<uint32_t>(iter.numel());
  if (elements == 0) {
    return;
  }
  const auto in = iter.input(0).scalar_type(), out = iter.output(0).scalar_type();
  const bool dense = iter.is_contiguous();
  const bool several = dense && !alpha && (c10::isFloatingType(out) || ilp_threshold) &&
      elements >= ilp_threshold.value_or(kManyElements);
  const auto alpha_type = scalar_arg_type.value_or(alpha ? iter.common_dtype() : kFloat);
  const std::string layout = !dense ? "strided" : several || alpha ? "dense" : "dense_scalar";
  const auto types = metal(out) + "_" + metal(in);
  auto kernel = name + "_" + layout + "_" + types + (alpha ? "_" + metal(alpha_type) : "");
  // A pair of types without a kernel: computed in the input's type, and cast to the output's on the store.
  const bool casts = !alpha && !hasFunction(kernel);
  const bool several_cast = casts && dense && ilp_threshold && elements >= *ilp_threshold;
  if (casts) {
    kernel = name +
        (!dense             ? "_strided_castout_"
             : several_cast ? "_dense_castout_ilp_"
                            : "_dense_castout_") +
        metal(in);
  }
  auto state = getPipelineStateForFunc(kernel);
  encoded(state, [&](id<MTLComputeCommandEncoder> encoder) {
    bind_iter_tensors(encoder, iter);
    if (!dense) {
      mtl_setArgs<2>(encoder, iter.shape(), iter.strides(1), iter.strides(0));
      const auto dimensions = static_cast<uint32_t>(iter.ndim());
      if (casts) {
        mtl_setBytes(encoder, std::array<uint32_t, 2>{dimensions, number(out)}, 5);
      } else {
        mtl_setBytes(encoder, dimensions, 5);
      }
      if (alpha) {
        set_number(encoder, *alpha, alpha_type, 6);
      }
      dispatch_rows(encoder, state, iter);
    } else if (several_cast) {
      mtl_setBytes(encoder, std::array<uint32_t, 4>{bytes(out), number(out), elements, 0}, 2);
      mtl_dispatch1DJob(encoder, state, threads_of_several(elements));
    } else if (casts) {
      mtl_setBytes(encoder, std::array<uint32_t, 2>{bytes(out), number(out)}, 2);
      mtl_dispatch1DJob(encoder, state, elements);
    } else if (alpha) {
      set_number(encoder, *alpha, alpha_type, 2);
      mtl_dispatch1DJob(encoder, state, elements);
    } else if (several) {
      mtl_setBytes(encoder, elements, 2);
      mtl_dispatch1DJob(encoder, state, threads_of_several(elements));
    } else {
      mtl_dispatch1DJob(encoder, state, elements);
    }
  });
}

void MetalShaderLibrary::exec_binary_kernel(
    TensorIteratorBase& iter,
    const std::string& name,
    const std::optional<Scalar> alpha,
    const std::optional<ScalarType> scalar_arg_type,
    const std::optional<ScalarType> natural_output_dtype,
    const std::optional<uint32_t> ilp_threshold) {
  TORCH_CHECK(iter.output().scalar_type() != kDouble, "float64 is not supported on MPS");
  if (iter.numel() == 0) {
    return;
  }
  if (!iter.can_use_32bit_indexing()) {
    for (auto&& part : iter.with_32bit_indexing()) {
      exec_binary_kernel(part, name, alpha, scalar_arg_type, natural_output_dtype, ilp_threshold);
    }
    return;
  }
  const auto a = without_doubles(iter.input(0)), b = without_doubles(iter.input(1));
  const Tensor& result = iter.output();
  const auto out = result.scalar_type(), common = iter.common_dtype();
  const auto natural = natural_output_dtype.value_or(out);
  const bool casts_result = out != natural;
  const bool casts = a.scalar_type() != b.scalar_type();
  const auto elements = static_cast<uint32_t>(iter.numel());
  const bool whole_a = a.numel() == result.numel() && a.is_contiguous();
  const bool whole_b = b.numel() == result.numel() && b.is_contiguous();
  const bool repeats_a = !casts_result && whole_b && repeats_into(a, result);
  const bool repeats_b = !casts_result && !repeats_a && whole_a && repeats_into(b, result);
  const Tensor& repeated = repeats_a ? a : b;
  const bool single = (repeats_a || repeats_b) && repeated.numel() == 1;
  const bool repeats = (repeats_a || repeats_b) && !single;
  const bool dense = iter.is_contiguous();
  const auto threshold = ilp_threshold.value_or(c10::isFloatingType(out) ? kManyElements : UINT32_MAX);
  const bool several = dense && !casts && !alpha && !casts_result && !single && !repeats && elements >= threshold;

  const auto alpha_type = scalar_arg_type.value_or(alpha ? (casts ? out : common) : kFloat);
  const auto alpha_suffix = alpha ? "_" + metal(alpha_type) : std::string();
  // Operands of two types are converted to the type of the computation.
  const auto computed = metal(out) + "_" + metal(out == kBool ? common : out);
  const auto& typed = repeats_a ? b : a;
  const auto types = casts ? "cast_" + computed : metal(out) + "_" + metal(typed.scalar_type());
  std::string layout = dense ? (several ? "dense_ilp4" : "dense") : "strided";
  if (single) {
    layout = repeats_a ? "dense_scalar_lhs" : "dense_scalar";
  } else if (repeats) {
    layout = repeats_a ? "dense_broadcast_rhs" : "dense_broadcast";
  }
  const auto kernel = casts_result ? name + "_strided_castout_" + metal(natural) + "_" + metal(common) + alpha_suffix
                                   : name + "_" + layout + "_" + types + alpha_suffix;
  auto state = getPipelineStateForFunc(kernel);
  encoded(state, [&](id<MTLComputeCommandEncoder> encoder) {
    bind_iter_tensors(encoder, iter);
    const bool strided = casts_result || (!dense && !single && !repeats);
    unsigned next = 3;
    if (repeats) {
      mtl_setBytes(encoder, static_cast<int64_t>(repeated.numel()), next++);
    }
    if (alpha) {
      set_number(encoder, *alpha, alpha_type, next++);
    }
    if (strided) {
      mtl_setBytes(encoder, iter.shape(), next++);
      for (const int operand : {0, 1, 2}) {
        mtl_setBytes(encoder, iter.strides(operand), next++);
      }
      const auto dimensions = static_cast<uint32_t>(iter.ndim());
      mtl_setBytes(
          encoder, std::array<uint32_t, 4>{dimensions, number(a.scalar_type()), number(b.scalar_type()), number(out)},
          next);
    } else if (casts) {
      const std::array<uint32_t, 4> sizes_and_types = {
          bytes(a.scalar_type()), bytes(b.scalar_type()), number(a.scalar_type()), number(b.scalar_type())};
      mtl_setBytes(encoder, sizes_and_types, next);
    } else if (several) {
      mtl_setBytes(encoder, elements, next);
    }
    mtl_dispatch1DJob(encoder, state, several ? threads_of_several(elements) : elements);
  });
}

void MetalShaderLibrary::exec_ternary_kernel(TensorIteratorBase& iter, const std::string& name) {
  if (iter.numel() == 0) {
    return;
  }
  if (!iter.can_use_32bit_indexing()) {
    for (auto&& part : iter.with_32bit_indexing()) {
      exec_ternary_kernel(part, name);
    }
    return;
  }
  const auto a = without_doubles(iter.input(0)), b = without_doubles(iter.input(1)), c = without_doubles(iter.input(2));
  const auto out = iter.output().scalar_type();
  const std::array<ScalarType, 3> types = {a.scalar_type(), b.scalar_type(), c.scalar_type()};
  const bool casts = types[0] != types[1] || types[0] != types[2];
  const bool dense = iter.is_contiguous();
  const auto layout = std::string(dense ? "dense" : "strided");
  auto state = getPipelineStateForFunc(
      casts ? name + "_" + layout + "_cast_" + metal(out)
            : name + "_" + layout + "_" + metal(out) + "_" + metal(types[0]));
  encoded(state, [&](id<MTLComputeCommandEncoder> encoder) {
    bind_iter_tensors(encoder, iter);
    if (dense && casts) {
      mtl_setBytes(encoder, std::array<uint32_t, 4>{bytes(types[0]), bytes(types[1]), bytes(types[2]), 0}, 4);
      mtl_setBytes(encoder, std::array<uint32_t, 4>{number(types[0]), number(types[1]), number(types[2]), 0}, 5);
    } else if (!dense) {
      mtl_setBytes(encoder, iter.shape(), 4);
      for (const int operand : {0, 1, 2, 3}) {
        mtl_setBytes(encoder, iter.strides(operand), 5 + operand);
      }
      mtl_setBytes(encoder, static_cast<uint32_t>(iter.ndim()), 9);
      if (casts) {
        mtl_setBytes(
            encoder, std::array<uint32_t, 4>{number(types[0]), number(types[1]), number(types[2]), number(out)}, 10);
      }
    }
    mtl_dispatch1DJob(encoder, state, iter.numel());
  });
}

} // namespace at::native::mps
