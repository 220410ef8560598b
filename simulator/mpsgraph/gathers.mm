// Gathers, scatters and one-hot tensors. Compiled with ARC.
#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>
#include <ATen/ATen.h>

#include "graph.h"

using namespace mpsgraph;

namespace {

void append(Shape& shape, at::IntArrayRef more) { shape.insert(shape.end(), more.begin(), more.end()); }

// MPSGraph gathers zeros at indices that are out of bounds, and drops what is scattered there (pytorch/pytorch #144998,
// #184057): both use a padding row after the last one.
std::pair<Tensor, Tensor> with_padding_row(const Tensor& x, const Tensor& indices, int64_t axis) {
  const Tensor places = indices.to(at::kLong), outside = places.lt(0).logical_or(places.ge(x.dim() ? x.size(axis) : 1));
  if (x.dim() == 0 || places.is_meta() || !outside.any().item<bool>()) {
    return {x, places};
  }
  Shape row = x.sizes().vec();
  row.at(wrapped(axis, x.dim())) = 1;
  return {at::cat({x, at::zeros(row, x.options())}, axis), places.masked_fill(outside, x.size(axis))};
}

// Rows of `x` along an axis; the shape of the indices replaces that axis.
Tensor gathered(const Tensor& all, const Tensor& named, int64_t axis) {
  const auto [x, indices] = with_padding_row(all, named, axis);
  Shape shape = x.sizes().slice(0, axis).vec();
  append(shape, indices.sizes());
  append(shape, x.sizes().slice(axis + 1));
  return x.index_select(axis, indices.reshape({-1})).reshape(shape);
}

// The same for each element of the leading dimensions, which both have.
Tensor gathered_in_batches(const Tensor& x, const Tensor& indices, int64_t axis, int64_t batches) {
  if (batches == 0) {
    return gathered(x, indices, axis);
  }
  // One gather from the rows of all batches: a call for each takes seconds where there are many.
  const int64_t d = axis - batches + 1;
  const auto [data, places] = with_padding_row(x.flatten(0, batches - 1), indices.flatten(0, batches - 1), d);
  const Tensor rows = data.movedim(d, 1), first = at::arange(rows.size(0), places.options()).unsqueeze(1);
  const int64_t batch = c10::multiply_integers(indices.sizes().slice(batches));
  const Tensor numbers = (places.reshape({rows.size(0), batch}) + first * rows.size(1)).flatten();
  const Tensor found = rows.flatten(0, 1).index_select(0, numbers).unflatten(0, {rows.size(0), batch}).movedim(1, d);
  Shape shape = x.sizes().slice(0, axis).vec();
  append(shape, indices.sizes().slice(batches));
  append(shape, x.sizes().slice(axis + 1));
  return found.reshape(shape);
}

Tensor scattered(
    const Tensor& all, const Tensor& updates, const Tensor& indices, int64_t axis, MPSGraphScatterMode mode) {
  const auto [data, places] = with_padding_row(all, indices, axis);
  const auto kept = [&](const Tensor& result) { return all.dim() ? result.narrow(axis, 0, all.size(axis)) : result; };
  switch (mode) {
    case MPSGraphScatterModeSet:
      return kept(data.scatter(axis, places, updates));
    case MPSGraphScatterModeAdd:
      return kept(data.scatter_add(axis, places, updates));
    case MPSGraphScatterModeSub:
      return kept(data.scatter_add(axis, places, updates.neg()));
    case MPSGraphScatterModeMul:
      return kept(data.scatter_reduce(axis, places, updates, "prod", true));
    case MPSGraphScatterModeMin:
      return kept(data.scatter_reduce(axis, places, updates, "amin", true));
    case MPSGraphScatterModeMax:
      return kept(data.scatter_reduce(axis, places, updates, "amax", true));
    default:
      refuse("scatter mode " + std::to_string(mode) + " is not simulated");
  }
}

// Whole rows along an axis; indices of any shape, which the updates have in place of that axis.
Tensor scattered_rows(
    const Tensor& data, const Tensor& updates, const Tensor& indices, int64_t axis, MPSGraphScatterMode mode) {
  const int64_t d = wrapped(axis, data.dim());
  Shape rows = data.sizes().vec(), ones(data.dim(), 1);
  rows.at(d) = ones.at(d) = indices.numel();
  return scattered(data, updates.reshape(rows), indices.reshape(ones).expand(rows), d, mode);
}

// The last dimension of the indices addresses the leading dimensions of the data.
Tensor scattered_nd(
    const Tensor& data, const Tensor& updates, const Tensor& indices, int64_t batches, MPSGraphScatterMode mode) {
  if (batches != 0) {
    refuse("scatterND with batch dimensions is not simulated");
  }
  const int64_t depth = indices.size(-1);
  const Tensor rows = indices.reshape({-1, depth}).to(at::kLong);
  Tensor flat = at::zeros({rows.size(0)}, rows.options());
  for (int64_t d = 0; d < depth; ++d) {
    flat = flat * data.size(d) + rows.select(1, d);
  }
  Shape shape = {c10::multiply_integers(data.sizes().slice(0, depth))};
  append(shape, data.sizes().slice(depth));
  return scattered_rows(data.reshape(shape), updates, flat, 0, mode).reshape(data.sizes());
}

} // namespace

@implementation MPSGraph (MPSGraphGatherScatterOps)
- (MPSGraphTensor*)oneHotWithIndicesTensor:(MPSGraphTensor*)indicesTensor
                                     depth:(NSUInteger)depth
                                      axis:(NSUInteger)axis
                                  dataType:(MPSDataType)dataType
                                   onValue:(double)onValue
                                  offValue:(double)offValue
                                      name:(NSString*)name {
  const auto type = scalar_type(dataType);
  return unary(self, "oneHot", indicesTensor, [=](const Tensor& x) {
    const int64_t d = wrapped(static_cast<int64_t>(axis), x.dim() + 1);
    Shape ones(x.dim() + 1, 1);
    ones.at(d) = static_cast<int64_t>(depth);
    const Tensor classes = at::arange(ones[d], x.options().dtype(at::kLong)).reshape(ones);
    const auto options = x.options().dtype(type);
    return at::where(
        x.to(at::kLong).unsqueeze(d) == classes, at::full({}, onValue, options), at::full({}, offValue, options));
  });
}
- (MPSGraphTensor*)gatherWithUpdatesTensor:(MPSGraphTensor*)updatesTensor
                             indicesTensor:(MPSGraphTensor*)indicesTensor
                                      axis:(NSUInteger)axis
                           batchDimensions:(NSUInteger)batchDimensions
                                      name:(NSString*)name {
  return result_of(self, "gather", {updatesTensor, indicesTensor}, [axis, batchDimensions](const Tensors& inputs) {
    const int64_t d = wrapped(static_cast<int64_t>(axis), inputs[0].dim());
    return gathered_in_batches(inputs[0], inputs[1], d, static_cast<int64_t>(batchDimensions));
  });
}
- (MPSGraphTensor*)gatherAlongAxis:(NSInteger)axis
                 withUpdatesTensor:(MPSGraphTensor*)updatesTensor
                     indicesTensor:(MPSGraphTensor*)indicesTensor
                              name:(NSString*)name {
  return result_of(self, "gatherAlongAxis", {updatesTensor, indicesTensor}, [axis](const Tensors& inputs) {
    const auto [x, places] = with_padding_row(inputs[0], inputs[1], axis);
    return x.gather(axis, places);
  });
}
- (MPSGraphTensor*)scatterAlongAxis:(NSInteger)axis
                     withDataTensor:(MPSGraphTensor*)dataTensor
                      updatesTensor:(MPSGraphTensor*)updatesTensor
                      indicesTensor:(MPSGraphTensor*)indicesTensor
                               mode:(MPSGraphScatterMode)mode
                               name:(NSString*)name {
  require_one_type("scatterAlongAxis", {dataTensor, updatesTensor});
  return result_of(
      self, "scatterAlongAxis", {dataTensor, updatesTensor, indicesTensor}, [axis, mode](const Tensors& inputs) {
        const Tensor& data = inputs[0];
        const bool is_last_but_one = data.dim() > 2 && wrapped(axis, data.dim()) == data.dim() - 2;
        is_beyond("scatterAlongAxis", "axis before one element", is_last_but_one && data.size(-1) == 1);
        return scattered(data, inputs[1], inputs[2], axis, mode);
      });
}
- (MPSGraphTensor*)scatterWithDataTensor:(MPSGraphTensor*)dataTensor
                           updatesTensor:(MPSGraphTensor*)updatesTensor
                           indicesTensor:(MPSGraphTensor*)indicesTensor
                                    axis:(NSInteger)axis
                                    mode:(MPSGraphScatterMode)mode
                                    name:(NSString*)name {
  // nonzero up to 2.5 scatters Int32 into Int64.
  if (dataTensor->type_ != at::kLong || updatesTensor->type_ != at::kInt) {
    require_one_type("scatter", {dataTensor, updatesTensor});
  }
  return result_of(self, "scatter", {dataTensor, updatesTensor, indicesTensor}, [axis, mode](const Tensors& inputs) {
    return scattered_rows(inputs[0], inputs[1].to(inputs[0].scalar_type()), inputs[2], axis, mode);
  });
}
- (MPSGraphTensor*)scatterWithUpdatesTensor:(MPSGraphTensor*)updatesTensor
                              indicesTensor:(MPSGraphTensor*)indicesTensor
                                      shape:(MPSShape*)shape
                                       axis:(NSInteger)axis
                                       mode:(MPSGraphScatterMode)mode
                                       name:(NSString*)name {
  const Shape to = numbers(shape);
  return result_of(self, "scatter", {updatesTensor, indicesTensor}, [to, axis, mode](const Tensors& inputs) {
    return scattered_rows(at::zeros(to, inputs[0].options()), inputs[0], inputs[1], axis, mode);
  });
}
- (MPSGraphTensor*)scatterNDWithDataTensor:(MPSGraphTensor*)dataTensor
                             updatesTensor:(MPSGraphTensor*)updatesTensor
                             indicesTensor:(MPSGraphTensor*)indicesTensor
                           batchDimensions:(NSUInteger)batchDimensions
                                      mode:(MPSGraphScatterMode)mode
                                      name:(NSString*)name {
  const auto batches = static_cast<int64_t>(batchDimensions);
  require_one_type("scatterND", {dataTensor, updatesTensor});
  return result_of(
      self, "scatterND", {dataTensor, updatesTensor, indicesTensor},
      [batches, mode](const Tensors& inputs) { return scattered_nd(inputs[0], inputs[1], inputs[2], batches, mode); });
}
- (MPSGraphTensor*)scatterNDWithUpdatesTensor:(MPSGraphTensor*)updatesTensor
                                indicesTensor:(MPSGraphTensor*)indicesTensor
                                        shape:(MPSShape*)shape
                              batchDimensions:(NSUInteger)batchDimensions
                                         mode:(MPSGraphScatterMode)mode
                                         name:(NSString*)name {
  const Shape to = numbers(shape);
  const auto batches = static_cast<int64_t>(batchDimensions);
  return result_of(self, "scatterND", {updatesTensor, indicesTensor}, [to, batches, mode](const Tensors& inputs) {
    return scattered_nd(at::zeros(to, inputs[0].options()), inputs[0], inputs[1], batches, mode);
  });
}
@end
