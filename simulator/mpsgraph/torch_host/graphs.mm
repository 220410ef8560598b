// What torch's OperationUtils.h declares for graphs, for the host code of extensions. Compiled without ARC.
#define AT_PER_OPERATOR_HEADERS
#include <ATen/native/mps/OperationUtils.h>

#include <ATen/mps/MPSStream.h>

#include <numeric>

namespace mpsgraph {
MPSDataType data_type(c10::ScalarType type);
NSArray<NSNumber*>* array_of(at::IntArrayRef numbers);
} // namespace mpsgraph

void at::mps::MPSStream::executeMPSGraph(MPSGraph* graph, NSDictionary* feeds, NSDictionary* results, SyncType type) {
  endKernelCoalescing();
  [graph encodeToCommandBuffer:(MPSCommandBuffer*)commandBuffer()
                         feeds:feeds
              targetOperations:nil
             resultsDictionary:results
           executionDescriptor:nil];
  synchronize(type);
}

namespace at::native::mps {

MPSKernelCache* MPSKernelCache::_instance_cache = nullptr;
MPSGraphCache* MPSGraphCache::_instance_cache = nullptr;
void MPSGraphCache::profileCachedGraph(const CacheEntry&) const {}

MPSGraph* make_mps_graph() { return [[MPSGraph new] autorelease]; }
void runMPSGraph(MPSStream* stream, MPSGraph* graph, NSDictionary* feeds, NSDictionary* results) {
  stream->executeMPSGraph(graph, feeds, results, SyncType::COMMIT_ADAPTIVE);
}

MPSDataType getMPSDataType(ScalarType type) {
  TORCH_CHECK_TYPE(type != kDouble, "Cannot convert a float64 Tensor to MPS: the framework doesn't support float64");
  return mpsgraph::data_type(type);
}
MPSDataType getMPSScalarType(ScalarType type) { return mpsgraph::data_type(type == kDouble ? kFloat : type); }
MPSShape* getMPSShape(IntArrayRef sizes, c10::MemoryFormat format) {
  const bool last = format == MemoryFormat::ChannelsLast && sizes.size() == 4;
  const auto order = last ? std::vector{sizes[0], sizes[2], sizes[3], sizes[1]} : sizes.vec();
  return mpsgraph::array_of(order.empty() ? std::vector<int64_t>{1} : order);
}
MPSShape* getMPSShape(const TensorBase& t, c10::MemoryFormat format) { return getMPSShape(t.sizes(), format); }
std::string getMPSShapeString(MPSShape* shape) { return [[shape componentsJoinedByString:@","] UTF8String]; }
NSArray<NSNumber*>* getTensorAxes(const IntArrayRef& sizes, OptionalIntArrayRef dims) {
  std::vector<int64_t> axes(dims && !dims->empty() ? dims->size() : sizes.size());
  std::iota(axes.begin(), axes.end(), 0);
  for (size_t i = 0; dims && i < dims->size(); ++i) {
    axes[i] = maybe_wrap_dim((*dims)[i], static_cast<int64_t>(sizes.size()));
  }
  return mpsgraph::array_of(axes);
}
NSArray<NSNumber*>* getTensorAxes(const TensorBase& t) { return getTensorAxes(t.sizes(), std::nullopt); }
std::string getTensorsStringKey(const TensorList& tensors, bool short_dtype, bool exclude_shape) {
  std::string key;
  for (const Tensor& tensor : tensors) {
    const bool is_there = tensor.defined();
    key += ":" + (is_there ? getMPSTypeString(tensor, short_dtype) : std::string("Undefined"));
    key += is_there && !exclude_shape ? "[" + getArrayRefString(tensor.sizes()) + "]" : "";
  }
  return key;
}

MPSGraphTensor* mpsGraphRankedPlaceHolder(MPSGraph* graph, MPSDataType type, MPSShape* shape) {
  return [graph placeholderWithShape:shape dataType:type name:nil];
}
MPSGraphTensor* mpsGraphUnrankedPlaceHolder(MPSGraph* graph, MPSDataType type) {
  return mpsGraphRankedPlaceHolder(graph, type, nil);
}
MPSGraphTensor* mpsGraphRankedPlaceHolder(MPSGraph* graph, const TensorBase& tensor) {
  return mpsGraphRankedPlaceHolder(graph, getMPSScalarType(tensor.scalar_type()), getMPSShape(tensor));
}
MPSGraphTensor* mpsGraphScalarPlaceHolder(MPSGraph* graph, MPSDataType type) {
  return mpsGraphRankedPlaceHolder(graph, type, @[ @1 ]);
}
MPSGraphTensor* mpsGraphScalarPlaceHolder(MPSGraph* graph, const Scalar& scalar) {
  return mpsGraphScalarPlaceHolder(graph, getMPSScalarType(scalar.type()));
}
MPSGraphTensor* castMPSTensor(MPSGraph* graph, MPSGraphTensor* tensor, MPSDataType type) {
  return tensor.dataType == type ? tensor : [graph castTensor:tensor toType:type name:nil];
}
MPSGraphTensor* castMPSTensor(MPSGraph* graph, MPSGraphTensor* tensor, ScalarType type) {
  return castMPSTensor(graph, tensor, getMPSScalarType(type));
}
// Of integers and booleans, reductions know 32 bits alone.
static bool is_int_half_or_float(MPSDataType type) {
  return type == MPSDataTypeInt32 || type == MPSDataTypeFloat16 || type == MPSDataTypeFloat32;
}
MPSGraphTensor* castToIHFTypes(MPSGraph* graph, MPSGraphTensor* tensor, const TensorBase& input) {
  const MPSDataType type = getMPSDataType(input.scalar_type());
  const MPSDataType wide = type & MPSDataTypeFloatBit ? MPSDataTypeFloat32 : MPSDataTypeInt32;
  return is_int_half_or_float(type) ? tensor : castMPSTensor(graph, tensor, wide);
}
MPSGraphTensor* castFromIHFTypes(MPSGraph* graph, MPSGraphTensor* tensor, const TensorBase& input) {
  return castMPSTensor(graph, tensor, getMPSDataType(input.scalar_type()));
}
MPSGraphTensor* convertNHWCtoNCHW(MPSGraph* graph, MPSGraphTensor* tensor) {
  tensor = [graph transposeTensor:tensor dimension:3 withDimension:2 name:nil];
  return [graph transposeTensor:tensor dimension:2 withDimension:1 name:nil];
}
MPSGraphTensor* log1p(MPSGraph* graph, MPSGraphTensor* tensor) {
  MPSGraphTensor* one = [graph constantWithScalar:1.0 dataType:tensor.dataType];
  return [graph logarithmWithTensor:[graph additionWithPrimaryTensor:tensor secondaryTensor:one name:nil] name:nil];
}
Tensor getTensorView(const Tensor& t, MPSShape* shape) {
  std::vector<int64_t> sizes;
  for (NSNumber* size in shape) {
    sizes.push_back([size longLongValue]);
  }
  return t.view(sizes);
}

static MPSNDArray* array_in(id<MTLBuffer> buffer, NSUInteger offset, MPSShape* shape, MPSDataType type) {
  auto* descriptor = [MPSNDArrayDescriptor descriptorWithDataType:type shape:shape];
  return [[[MPSNDArray alloc] initWithBuffer:buffer offset:offset descriptor:descriptor] autorelease];
}
MPSNDArray* getMPSNDArray(const TensorBase& t, MPSShape* sizes, MPSShape* strides) {
  MPSShape* shape = sizes ?: getMPSShape(t);
  const MPSDataType type = getMPSScalarType(t.scalar_type());
  MPSNDArray* array = array_in(getMTLBufferStorage(t), t.storage_offset() * t.element_size(), shape, type);
  return strides ? [array arrayViewWithShape:shape strides:strides] : array;
}
MPSNDArray* getMPSNDArray(const TensorBase& t, const IntArrayRef& sizes, const IntArrayRef& strides) {
  MPSShape* steps = strides.empty() ? nil : mpsgraph::array_of(strides);
  return getMPSNDArray(t, sizes.empty() ? nil : getMPSShape(sizes), steps);
}
MPSNDArray* getStridedMPSNDArray(const TensorBase& source, MPSNDArray* array) {
  return [array arrayViewWithShape:getMPSShape(source) strides:mpsgraph::array_of(source.strides())];
}
MPSGraphTensorData* getMPSGraphTensorFromScalar(MPSStream* stream, MPSScalar& scalar) {
  id<MTLBuffer> buffer = [stream->device() newBufferWithBytes:&scalar.value length:scalar.size options:0];
  MPSNDArray* array = array_in([buffer autorelease], 0, @[ @1 ], getMPSScalarType(scalar.type));
  return [[[MPSGraphTensorData alloc] initWithMPSNDArray:array] autorelease];
}

static MPSGraphTensorData* data_of(const TensorBase& tensor, MPSShape* shape, MPSDataType type, bool strided) {
  const NSUInteger offset = tensor.storage_offset() * tensor.element_size();
  MPSNDArray* array = array_in(getMTLBufferStorage(tensor), offset, shape, type);
  if (strided) {
    array = [array arrayViewWithShape:shape strides:mpsgraph::array_of(tensor.strides())];
  }
  return [[[MPSGraphTensorData alloc] initWithMPSNDArray:array] autorelease];
}
MPSGraphTensorData* getMPSGraphTensorData(MPSGraph*, MPSStream*, const TensorBase& tensor) {
  return data_of(tensor, getMPSShape(tensor), getMPSScalarType(tensor.scalar_type()), !tensor.is_contiguous());
}

Placeholder::Placeholder(MPSGraphTensor* tensor, MPSNDArray* array)
    : _placeholder(tensor), _value([[[MPSGraphTensorData alloc] initWithMPSNDArray:array] autorelease]) {}
// A view is copied, unless a result is written into it.
Placeholder::Placeholder(
    MPSGraphTensor* tensor, const Tensor& source, MPSShape* shape, bool gather, MPSDataType type, bool)
    : _placeholder(tensor), _tensor(gather ? source.contiguous() : source) {
  TORCH_CHECK(source.is_mps(), "Placeholder storage has not been allocated on MPS device!");
  type = type == MPSDataTypeInvalid ? getMPSScalarType(source.scalar_type()) : type;
  _value = data_of(_tensor, shape ?: getMPSShape(_tensor), type, !_tensor.is_contiguous());
}

} // namespace at::native::mps
