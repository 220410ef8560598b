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
