#define AT_PER_OPERATOR_HEADERS
#include <ATen/native/mps/OperationUtils.h>
#include <ATen/ops/empty_native.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/utils/pybind.h>

// A graph of torch's own way, and a kernel of MPS. Compiled without ARC.
using namespace at::native::mps;

struct Product : MPSBinaryCachedGraph {
  using MPSBinaryCachedGraph::MPSBinaryCachedGraph;
};

static at::Tensor product(const at::Tensor& x, const at::Tensor& y) {
  at::Tensor out = at::empty_like(x, at::MemoryFormat::Contiguous);
  auto* graph = LookUpOrCreateCachedGraph<Product>("product" + getTensorsStringKey({x, y}), [&](auto* made, auto* kept) {
    kept->inputTensor_ = mpsGraphRankedPlaceHolder(made, x);
    kept->otherTensor_ = mpsGraphRankedPlaceHolder(made, y);
    kept->outputTensor_ = [made multiplicationWithPrimaryTensor:kept->inputTensor_ secondaryTensor:kept->otherTensor_ name:nil];
  });
  auto first = Placeholder(graph->inputTensor_, x), second = Placeholder(graph->otherTensor_, y);
  auto result = Placeholder(graph->outputTensor_, out);
  runMPSGraph(getCurrentMPSStream(), graph->graph(), dictionaryFromPlaceholders(first, second), result);
  return out;
}

static at::Tensor scan(const at::Tensor& x) {
  at::Tensor out = at::empty_like(x, at::MemoryFormat::Contiguous);
  auto* graph = LookUpOrCreateCachedGraph<MPSUnaryCachedGraph>("scan" + getTensorsStringKey({x}), [&](auto* made, auto* kept) {
    kept->inputTensor_ = mpsGraphRankedPlaceHolder(made, x);
    kept->outputTensor_ = [made cumulativeSumWithTensor:kept->inputTensor_ axis:0 name:nil];
  });
  auto given = Placeholder(graph->inputTensor_, x), result = Placeholder(graph->outputTensor_, out);
  runMPSGraph(getCurrentMPSStream(), graph->graph(), dictionaryFromPlaceholders(given), result);
  return out;
}

static MPSMatrix* matrix(const at::Tensor& x) {
  auto* descriptor = [MPSMatrixDescriptor matrixDescriptorWithRows:x.size(0)
                                                           columns:x.size(1)
                                                          rowBytes:x.stride(0) * x.element_size()
                                                          dataType:getMPSDataType(x.scalar_type())];
  return [[[MPSMatrix alloc] initWithBuffer:getMTLBufferStorage(x)
                                     offset:x.storage_offset() * x.element_size()
                                 descriptor:descriptor] autorelease];
}

// out = 2 * a @ b.T + beta * out
static void multiply(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, double beta) {
  auto* kernel = [[[MPSMatrixMultiplication alloc] initWithDevice:MPSDevice::getInstance()->device()
                                                    transposeLeft:NO
                                                   transposeRight:YES
                                                       resultRows:a.size(0)
                                                    resultColumns:b.size(0)
                                                  interiorColumns:a.size(1)
                                                            alpha:2.0
                                                             beta:beta] autorelease];
  [kernel encodeToCommandBuffer:getCurrentMPSStream()->commandBuffer()
                     leftMatrix:matrix(a)
                    rightMatrix:matrix(b)
                   resultMatrix:matrix(out)];
}

// log1p of a view with three channels last, in float32, times a scalar; NaN where a cast is not as declared.
static at::Tensor by_arrays(const at::Tensor& x, double by) {
  MPSStream* stream = getCurrentMPSStream();
  MPSGraph* graph = make_mps_graph();
  MPSGraphTensor* given = mpsGraphRankedPlaceHolder(graph, x);
  MPSGraphTensor* factor = mpsGraphScalarPlaceHolder(graph, MPSDataTypeFloat32);
  MPSGraphTensor* wide = castToIHFTypes(graph, given, x);
  MPSGraphTensor* narrow = castFromIHFTypes(graph, wide, x);
  const bool is_cast = wide.dataType == MPSDataTypeInt32 && narrow.dataType == MPSDataTypeInt8;
  MPSGraphTensor* value = convertNHWCtoNCHW(graph, castMPSTensor(graph, narrow, at::kFloat));
  value = log1p(graph, value);
  value = [graph multiplicationWithPrimaryTensor:value secondaryTensor:factor name:nil];
  at::Tensor out = at::empty_like(x.permute({0, 3, 1, 2}), x.options().dtype(at::kFloat), at::MemoryFormat::Contiguous);
  MPSScalar scalar = getMPSScalar(is_cast ? by : NAN, at::kFloat);
  MPSNDArray* array = getStridedMPSNDArray(x, getMPSNDArray(x, x.sizes(), {}));
  NSDictionary* feeds = @{
    given : [[[MPSGraphTensorData alloc] initWithMPSNDArray:array] autorelease],
    factor : getMPSGraphTensorFromScalar(stream, scalar)
  };
  auto* result = [[[MPSGraphTensorData alloc] initWithMPSNDArray:getMPSNDArray(out, getMPSShape(out))] autorelease];
  runMPSGraph(stream, graph, feeds, @{value : result});
  return getTensorView(out, @[ @(out.numel()) ]);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("product", &product);
  m.def("scan", &scan);
  m.def("multiply", &multiply);
  m.def("by_arrays", &by_arrays);
}
