// Samples for fewer planes than there are would be read out of bounds. The input has (images, channels) or channels, then
// the dimensions that are pooled.
inline void check_samples(const Tensor& samples, const Tensor& input, int64_t pooled) {
  const bool batched = input.dim() == pooled + 2;
  const auto images = batched ? input.size(0) : 1;
  TORCH_CHECK(samples.scalar_type() == input.scalar_type(), "Expect _random_samples to have the same dtype as input");
  TORCH_CHECK(samples.dim() == 3, "Expect _random_samples to have 3 dimensions, got ", samples.dim());
  TORCH_CHECK(samples.size(0) >= images, "Expect _random_samples.size(0) no less then input batch size.");
  TORCH_CHECK(
      samples.size(1) == input.size(batched ? 1 : 0), "Expect _random_samples.size(1) equals to input channel size.");
  TORCH_CHECK(
      samples.size(2) == pooled, "Expect _random_samples.size(2) equals to ", pooled, "; got ", samples.size(2), ".");
}

// How the forward is launched: what the kernel reads, and its grid.
struct FractionalForward {
  // Depth, height and width of input, output and window, then channels and the strides of image, channel, depth, height
  // and width; in two dimensions depths are 1.
  std::array<int64_t, 15> geometry;
  // The distance of two windows in each dimension, computed in float as the CPU does.
  std::array<float, 3> alpha;
  bool takes_rows; // a thread takes four rows of outputs, where there are as many
  MTLSize threads;
  MTLSize group;
};

// How many of `count` each of the fewest groups of at most `most` takes.
inline int64_t share_of(int64_t count, int64_t most) {
  const auto groups = (count + most - 1) / most;
  return (count + groups - 1) / groups;
}

// For as many dimensions as `outputs` and `sizes` have: two or three, the input's last.
inline FractionalForward fractional_forward(const Tensor& input, IntArrayRef outputs, IntArrayRef sizes) {
  constexpr int64_t rows = 4, width = 32, most = 256;
  const int64_t pooled = outputs.size(), channel = input.dim() - pooled - 1;
  FractionalForward forward{{1, 1, 1, 1, 1, 1, 1, 1, 1}};
  auto& geometry = forward.geometry;
  for (const auto d : c10::irange(pooled)) {
    const auto at = 3 - pooled + d;
    geometry[at] = input.size(channel + 1 + d);
    geometry[3 + at] = outputs[d];
    geometry[6 + at] = sizes[d];
    geometry[12 + at] = input.stride(channel + 1 + d);
  }
  for (const auto d : c10::irange(3)) {
    const auto distance = static_cast<float>(geometry[d] - geometry[6 + d]);
    forward.alpha[d] = geometry[3 + d] > 1 ? distance / static_cast<float>(geometry[3 + d] - 1) : 0.0f;
  }
  const auto channels = input.size(channel), planes = channel > 0 ? input.size(0) * channels : channels;
  const auto image_stride = channel > 0 ? input.stride(0) : 0;
  // Where images are no more than further planes no thread has to divide to find its image.
  geometry[9] = image_stride == channels * input.stride(channel) ? planes : channels;
  geometry[10] = image_stride;
  geometry[11] = input.stride(channel);
  forward.takes_rows = geometry[4] >= rows;
  const auto x = geometry[5], z = planes * geometry[3];
  const auto y = forward.takes_rows ? (geometry[4] + rows - 1) / rows : geometry[4];
  forward.threads = MTLSizeMake(x, y, z);
  const auto lanes = share_of(x, width), lines = share_of(y, most / lanes);
  forward.group = MTLSizeMake(lanes, lines, share_of(z, std::min<int64_t>(most / (lanes * lines), 64)));
  return forward;
}
