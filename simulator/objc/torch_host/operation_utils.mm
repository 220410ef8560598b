// The part of upstream's OperationUtils that only needs Metal: names of types, scalars, offsets. Compiled without ARC.
#define AT_PER_OPERATOR_HEADERS
#include <ATen/native/mps/OperationUtils.h>

namespace at::native::mps {

MPSKernelCache* MPSKernelCache::_instance_cache = nullptr;
MPSGraphCache* MPSGraphCache::_instance_cache = nullptr;

std::string scalarToMetalTypeString(const c10::ScalarType& type) {
  switch (type) {
    case kFloat:
      return "float";
    case kHalf:
      return "half";
    case kBFloat16:
      return "bfloat";
    case kLong:
      return "long";
    case kInt:
      return "int";
    case kShort:
      return "short";
    case kChar:
      return "char";
    case kByte:
      return "uchar";
    case kBool:
      return "bool";
    case kComplexFloat:
      return "float2";
    case kComplexHalf:
      return "half2";
    case kUInt64:
      return "ulong";
    case kUInt32:
      return "uint";
    case kUInt16:
      return "ushort";
    default:
      TORCH_CHECK_TYPE(false, "Metal has no type for ", type);
  }
}

std::string getMPSTypeString(ScalarType type, bool short_name) {
  const auto named = [short_name](const char* brief, const char* full) { return short_name ? brief : full; };
  switch (type) {
    case kDouble:
    case kFloat:
      return named("f32", "Float32");
    case kHalf:
      return named("f16", "Float16");
    case kBFloat16:
      return named("bf16", "BFloat16");
    case kInt:
      return named("i32", "Int32");
    case kLong:
      return named("i64", "Int64");
    case kShort:
      return named("i16", "Int16");
    case kChar:
      return named("i8", "Int8");
    case kByte:
      return named("u8", "UInt8");
    case kBool:
      return named("b8", "Bool");
    case kComplexHalf:
      return named("c16", "ComplexFloat16");
    case kComplexFloat:
      return named("c32", "ComplexFloat32");
    default:
      return "Undefined";
  }
}

std::string getArrayRefString(const IntArrayRef sizes) { return c10::Join(",", sizes); }

std::string to_hex_key(float number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%a", number);
  return text;
}

bool isTooLargeForMPSGraph(const Tensor& tensor, bool strided) {
  const int64_t in_storage = tensor.storage().nbytes() / tensor.element_size() - tensor.storage_offset();
  const bool is_view = !tensor.is_contiguous() || tensor.storage_offset() != 0;
  return std::max(tensor.numel(), strided && is_view ? in_storage : 0) > INT_MAX;
}

std::string get_mem_format_string(c10::MemoryFormat format) {
  switch (format) {
    case c10::MemoryFormat::Contiguous:
      return "Contiguous";
    case c10::MemoryFormat::ChannelsLast:
      return "ChannelsLast";
    default:
      TORCH_CHECK(false, "no name for memory format ", format);
  }
}

MPSScalar getMPSScalar(const Scalar& scalar, ScalarType type) {
  MPSScalar result;
  result.type = type;
  const auto holds = [&result](auto& place, auto value) {
    place = value;
    result.size = sizeof(value);
    return result.size;
  };
  switch (type) {
    case kDouble:
    case kFloat:
      holds(result.value.f, scalar.to<float>());
      break;
    case kHalf:
      holds(result.value.h, scalar.to<at::Half>());
      break;
    case kBFloat16:
      holds(result.value.bf16, scalar.to<at::BFloat16>());
      break;
    case kLong:
      holds(result.value.i, scalar.to<int64_t>());
      break;
    case kInt:
      result.value.i = scalar.to<int32_t>();
      result.size = sizeof(int32_t);
      break;
    case kShort:
      result.value.i = scalar.to<int16_t>();
      result.size = sizeof(int16_t);
      break;
    case kChar:
      result.value.i = scalar.to<int8_t>();
      result.size = sizeof(int8_t);
      break;
    case kByte:
      result.value.i = scalar.to<uint8_t>();
      result.size = sizeof(uint8_t);
      break;
    case kUInt16:
      result.value.u = scalar.to<uint16_t>();
      result.size = sizeof(uint16_t);
      break;
    case kUInt32:
      result.value.u = scalar.to<uint32_t>();
      result.size = sizeof(uint32_t);
      break;
    case kUInt64:
      holds(result.value.u, scalar.to<uint64_t>());
      break;
    case kBool:
      holds(result.value.b, scalar.to<bool>());
      break;
    case kComplexHalf:
      holds(result.value.ch, scalar.to<c10::complex<at::Half>>());
      break;
    case kComplexFloat:
    case kComplexDouble:
      holds(result.value.cf, scalar.to<c10::complex<float>>());
      break;
    default:
      TORCH_INTERNAL_ASSERT(false, "Unsupported scalar type '", type, "' on MPS backend.");
  }
  return result;
}

Tensor wrapped_scalar_tensor_mps(const Scalar& scalar, const Device device) {
  const ScalarType type = scalar.isFloatingPoint() ? kFloat
      : scalar.isBoolean()                         ? kBool
      : scalar.isComplex()                         ? kComplexFloat
                                                   : kLong;
  Tensor made = at::empty({}, at::device(at::kCPU).dtype(type));
  made.fill_(scalar);
  made = made.to(device);
  made.unsafeGetTensorImpl()->set_wrapped_number(true);
  return made;
}

void resize_tensor(Tensor* output) { output->resize_(output->sizes()); }

namespace {

// Rows with the layout of uint3 and ulong3: three numbers and padding.
template <typename T>
id<MTLBuffer> offsets_of(const TensorIteratorBase& iterator) {
  constexpr int64_t kNumbers = 3, kRow = 4;
  const NSUInteger bytes = std::max<int64_t>(iterator.numel(), 1) * kRow * sizeof(T);
  id<MTLBuffer> made = [at::mps::MPSDevice::getInstance()->device() newBufferWithLength:bytes options:0];
  T* row = static_cast<T*>([made contents]);
  for (int64_t element = 0; element < iterator.numel(); ++element, row += kRow) {
    int64_t rest = element;
    for (int dimension = 0; dimension < iterator.ndim(); ++dimension) {
      const int64_t index = rest % iterator.shape()[dimension];
      rest /= iterator.shape()[dimension];
      for (int operand = 0; operand < std::min<int64_t>(iterator.ntensors(), kNumbers); ++operand) {
        row[operand] += static_cast<T>(index * iterator.strides(operand)[dimension]);
      }
    }
  }
  return [made autorelease];
}

} // namespace

// A buffer with the byte offsets of the first three operands for each element, which strided kernels of older releases
// read.
id<MTLBuffer> generateKernelDataOffsets(
    id<MTLComputeCommandEncoder> encoder, const TensorIteratorBase& iterator, bool use_64bit_index) {
  return use_64bit_index ? offsets_of<uint64_t>(iterator) : offsets_of<uint32_t>(iterator);
}

} // namespace at::native::mps
