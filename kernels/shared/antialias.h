// The distance of the windows of neighbouring outputs.
inline double scale_of(int64_t before, int64_t after, bool align_corners, std::optional<double> given) {
  if (align_corners) {
    return after > 1 ? static_cast<double>(before - 1) / static_cast<double>(after - 1) : 0.0;
  }
  return given.has_value() && *given > 0.0 ? 1.0 / *given : static_cast<double>(before) / static_cast<double>(after);
}
