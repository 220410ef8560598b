// A group of threads for each of up to 2^32 - 1 rows; the row is the group's second coordinate.
template <typename... Args>
static void launch_rows(const std::string& name, int64_t rows, int64_t group, const Args&... args) {
  @autoreleasepool {
    auto stream = getCurrentMPSStream();
    auto state = lib.getPipelineStateForFunc(name);
    auto bind = [&](id<MTLComputeCommandEncoder> encoder) { mtl_setArgs(encoder, args...); };
    dispatch_sync_with_rethrow(stream->queue(), ^() {
      auto encoder = stream->commandEncoder();
      getMPSProfiler().beginProfileKernel(state, name, false);
      [encoder setComputePipelineState:state];
      bind(encoder);
      [encoder dispatchThreads:MTLSizeMake(group, rows, 1) threadsPerThreadgroup:MTLSizeMake(group, 1, 1)];
      getMPSProfiler().endProfileKernel(state);
    });
  }
}

// At least a thread an element, in rows where one dimension of the grid would not do.
template <typename... Args>
static void launch_elements(const std::string& name, int64_t elements, const Args&... args) {
  constexpr int64_t row = int64_t(1) << 30;
  @autoreleasepool {
    auto stream = getCurrentMPSStream();
    auto state = lib.getPipelineStateForFunc(name);
    auto bind = [&](id<MTLComputeCommandEncoder> encoder) { mtl_setArgs(encoder, args...); };
    dispatch_sync_with_rethrow(stream->queue(), ^() {
      auto encoder = stream->commandEncoder();
      getMPSProfiler().beginProfileKernel(state, name, false);
      [encoder setComputePipelineState:state];
      bind(encoder);
      if (elements <= row) {
        mtl_dispatch1DJob(encoder, state, elements);
      } else {
        [encoder dispatchThreads:MTLSizeMake(row, (elements + row - 1) / row, 1)
            threadsPerThreadgroup:MTLSizeMake(256, 1, 1)];
      }
      getMPSProfiler().endProfileKernel(state);
    });
  }
}

// Threads for a row: whole SIMD groups, one thread an element, at most 256 (what the kernels have scratch for).
inline int64_t row_group(int64_t length) {
  return std::min<int64_t>(256, std::max<int64_t>(1, (length + 31) / 32) * 32);
}

// The layout of operands of one shape: elements, dimensions, then sizes and the strides of each, innermost first.
inline std::vector<int64_t> packed_layout(at::TensorList operands) {
  const auto dimensions = operands[0].dim();
  std::vector<int64_t> layout{operands[0].numel(), dimensions};
  for (int64_t d = dimensions - 1; d >= 0; --d) {
    layout.push_back(operands[0].size(d));
  }
  for (const auto& operand : operands) {
    for (int64_t d = dimensions - 1; d >= 0; --d) {
      layout.push_back(operand.stride(d));
    }
  }
  return layout;
}

// Whether kernels that move 16 bytes at a time may run over all operands.
inline bool is_dense_and_aligned(at::TensorList operands) {
  const int64_t lanes = 16 / operands[0].element_size();
  return std::all_of(operands.begin(), operands.end(), [lanes](const Tensor& operand) {
    return operand.is_contiguous() && operand.storage_offset() % lanes == 0;
  });
}
