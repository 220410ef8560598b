namespace {

#include "shared/antialias.h"
#include "shared/launch.h"

constexpr int64_t height = 2, width = 3; // the axes
constexpr double support = 3.0; // how far the filter reaches
// Products of a byte and a weight of 16 bits are summed in 32.
constexpr int64_t most_precision = 22;
constexpr int64_t largest_weight = 1 << 15;

// For each output where its window starts and how many inputs it has, and its weights.
struct Table {
  Tensor windows;
  Tensor weights;
  int64_t precision; // of bytes, where a weight of one is 2^precision
};

Table table_of(int64_t outputs, int64_t inputs, double scale, const Tensor& like) {
  const auto room = 2 * static_cast<int64_t>(std::ceil(support * std::max(scale, 1.0))) + 1;
  const Table table = {
      at::empty({outputs, 2}, like.options().dtype(kInt)), at::empty({outputs, room}, like.options().dtype(kFloat)), 0};
  const std::array<int64_t, 3> sizes = {outputs, inputs, room};
  launch_elements("forward_weights_lanczos", outputs, table.windows, table.weights, sizes, static_cast<float>(scale));
  return table;
}

double sinc(double x) {
  const double angle = M_PI * x;
  return x == 0.0 ? 1.0 : std::sin(angle) / angle;
}

double lanczos(double x) { return x >= -support && x < support ? sinc(x) * sinc(x / support) : 0.0; }

// The most bits that a weight of 16 bits leaves behind the point.
int64_t precision_of(double largest) {
  int64_t precision = 0;
  while (precision < most_precision && static_cast<int64_t>(0.5 + largest * (2 << precision)) < largest_weight) {
    ++precision;
  }
  return precision;
}

// Weights of bytes are whole numbers, rounded on the host in double as the CPU has them.
Table byte_table_of(int64_t outputs, int64_t inputs, double scale, const Tensor& like) {
  const double stretch = std::max(scale, 1.0), reach = support * stretch;
  const auto start_of = [&](int64_t o) { return std::max(0.0, std::trunc(scale * (o + 0.5) - reach + 0.5)); };
  const auto end_of = [&](int64_t o) { return std::min<double>(inputs, std::trunc(scale * (o + 0.5) + reach + 0.5)); };
  int64_t room = 0;
  for (const auto o : c10::irange(outputs)) {
    room = std::max(room, static_cast<int64_t>(end_of(o) - start_of(o)));
  }
  std::vector<double> exact(outputs * room, 0.0);
  const auto windows = at::empty({outputs, 2}, at::dtype(kInt)), weights = at::empty({outputs, room}, at::dtype(kInt));
  auto* const window = windows.mutable_data_ptr<int>();
  auto* const weight = weights.mutable_data_ptr<int>();
  for (const auto o : c10::irange(outputs)) {
    const double start = start_of(o), off = start - scale * (o + 0.5) + 0.5;
    const auto count = static_cast<int64_t>(end_of(o) - start);
    auto* const row = exact.data() + o * room;
    double total = 0.0;
    for (const auto k : c10::irange(count)) {
      row[k] = lanczos((k + off) / stretch);
      total += row[k];
    }
    for (const auto k : c10::irange(total == 0.0 ? 0 : count)) {
      row[k] /= total;
    }
    window[2 * o] = static_cast<int>(start);
    window[2 * o + 1] = static_cast<int>(count);
  }
  const auto precision = precision_of(*std::max_element(exact.begin(), exact.end()));
  std::transform(exact.begin(), exact.end(), weight, [precision](double w) {
    return static_cast<int>(w * (1 << precision) + (w < 0 ? -0.5 : 0.5));
  });
  return {windows.to(like.device()), weights.to(like.device()), precision};
}

// One axis, from the source to the target.
void resample(const Tensor& target, const Tensor& source, int64_t axis, double scale) {
  const bool of_bytes = target.scalar_type() == kByte;
  const auto make = of_bytes ? byte_table_of : table_of;
  const auto table = make(target.size(axis), source.size(axis), scale, target);
  std::vector<int64_t> geometry(target.sizes().begin(), target.sizes().end());
  geometry.insert(geometry.end(), target.strides().begin(), target.strides().end());
  geometry.insert(geometry.end(), source.strides().begin(), source.strides().end());
  geometry.insert(geometry.end(), {axis, table.weights.size(1)});
  if (of_bytes) {
    geometry.push_back(table.precision);
  }
  const auto name = of_bytes ? "antialias_bytes"
                             : "forward_" + scalarToMetalTypeString(source) + "_" + scalarToMetalTypeString(target);
  launch_elements(name, target.numel(), target, source, table.windows, table.weights, geometry);
}

} // namespace

// Floats are summed in float; bytes with the CPU's weights, to the same bytes.
TORCH_IMPL_FUNC(_upsample_lanczos2d_aa_out_mps)
(const Tensor& self,
 IntArrayRef output_size,
 bool align_corners,
 std::optional<double> scales_h,
 std::optional<double> scales_w,
 const Tensor& out) {
  const bool of_bytes = self.scalar_type() == kByte;
  TORCH_CHECK_NOT_IMPLEMENTED(
      supportedFloatingType(self) || of_bytes, "_upsample_lanczos2d_aa is not implemented for ", self.scalar_type(),
      " on MPS");
  if (out.numel() == 0) {
    return;
  }
  const auto scale_h = scale_of(self.size(height), output_size[0], align_corners, scales_h);
  const auto scale_w = scale_of(self.size(width), output_size[1], align_corners, scales_w);
  // An axis that keeps its size is left alone, as on the CPU.
  if (self.size(height) == out.size(height)) {
    if (self.size(width) == out.size(width)) {
      out.copy_(self);
    } else {
      resample(out, self, width, scale_w);
    }
    return;
  }
  auto middle = self;
  if (self.size(width) != out.size(width)) {
    middle = at::empty(
        {self.size(0), self.size(1), self.size(height), out.size(width)},
        self.options().dtype(of_bytes ? kByte : kFloat), MemoryFormat::Contiguous);
    resample(middle, self, width, scale_w);
  }
  resample(out, middle, height, scale_h);
}
