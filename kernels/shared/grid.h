// Threads in three dimensions, in groups of a size that the kernel knows of.
template <typename... Args>
static void launch_grid(const std::string& name, MTLSize threads, MTLSize group, const Args&... args) {
  @autoreleasepool {
    auto stream = getCurrentMPSStream();
    auto state = lib.getPipelineStateForFunc(name);
    auto bind = [&](id<MTLComputeCommandEncoder> encoder) { mtl_setArgs(encoder, args...); };
    dispatch_sync_with_rethrow(stream->queue(), ^() {
      auto encoder = stream->commandEncoder();
      getMPSProfiler().beginProfileKernel(state, name, false);
      [encoder setComputePipelineState:state];
      bind(encoder);
      [encoder dispatchThreads:threads threadsPerThreadgroup:group];
      getMPSProfiler().endProfileKernel(state);
    });
  }
}
