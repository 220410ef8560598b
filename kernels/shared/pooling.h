// From so many elements on, a group of as many threads shares a window.
constexpr int64_t large_window = 256;

// What the kernels read: planes, channels, the sizes before and after, the strides of image, channel, depth, height, width.
inline std::vector<int64_t> pooling_geometry(const Tensor& strided, IntArrayRef inputs, IntArrayRef outputs) {
  const bool batched = strided.dim() == 5;
  const auto channel = strided.dim() - 4;
  const auto planes = strided.size(channel) * (batched ? strided.size(0) : 1);
  std::vector<int64_t> geometry{planes, strided.size(channel)};
  geometry.insert(geometry.end(), inputs.begin(), inputs.end());
  geometry.insert(geometry.end(), outputs.begin(), outputs.end());
  geometry.push_back(batched ? strided.stride(0) : 0);
  for (auto d = channel; d < strided.dim(); ++d) {
    geometry.push_back(strided.stride(d));
  }
  return geometry;
}

inline bool has_large_windows(IntArrayRef inputs, IntArrayRef outputs) {
  int64_t volume = 1;
  for (const auto d : c10::irange(inputs.size())) {
    volume *= (inputs[d] + outputs[d] - 1) / outputs[d];
  }
  return volume >= large_window;
}
