"""Extensions in Objective-C++: building one, and launching a kernel beside `torch.mps.compile_shader`.

Processor time, of compilers and linkers too; simulated on the CPU, it says nothing about an Apple GPU. Needs
`mpsmith check --setup`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from unittest import mock

from mpsmith.audit.releases.surface.profiles import coverage_profile
from mpsmith.simulator import metal
from mpsmith.simulator.clang.precompiled_headers import PrecompiledHeaders
from mpsmith.simulator.device import loading
from mpsmith.simulator.errors import ExtensionError
from mpsmith.simulator.objc.building import build_extension
from mpsmith.simulator.objc.host_libraries import torch_host_library
from mpsmith.simulator.objc.loading import load_extension

from ._processor_time import microseconds, processor_seconds

METAL = """
#include <metal_stdlib>
using namespace metal;
kernel void scale(device float* out [[buffer(0)]], constant float* in [[buffer(1)]],
                  constant float& by [[buffer(2)]], uint i [[thread_position_in_grid]]) { out[i] = in[i] * by; }
"""
SOURCE = """\
#include <ATen/mps/MPSStream.h>
#include <ATen/native/mps/MetalShaderLibrary.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>
#include <torch/mps.h>

using namespace at::native::mps;
static MetalShaderLibrary& library() {
  static MetalShaderLibrary built(R"(%s)");
  return built;
}
static at::Tensor by_kernel_function(const at::Tensor& in, double by) {
  at::Tensor out = at::empty_like(in);
  auto* kernel = library().getCachedKernelFunctionPtr("scale");
  kernel->runCommandBlock([&] {
    kernel->startEncoding();
    kernel->setArg(0, out);
    kernel->setArg(1, in);
    kernel->setArg(2, static_cast<float>(by));
    kernel->dispatch(in.numel());
  });
  return out;
}
static id<MTLBuffer> buffer(const at::Tensor& x) { return __builtin_bit_cast(id<MTLBuffer>, x.storage().data()); }
static at::Tensor by_command_buffer(const at::Tensor& in, double by) {
  at::Tensor out = at::empty_like(in);
  const float factor = static_cast<float>(by);
  id<MTLComputePipelineState> state = library().getPipelineStateForFunc("scale");
  id<MTLCommandBuffer> commands = torch::mps::get_command_buffer();
  dispatch_sync(torch::mps::get_dispatch_queue(), ^() {
    id<MTLComputeCommandEncoder> encoder = [commands computeCommandEncoder];
    [encoder setComputePipelineState:state];
    [encoder setBuffer:buffer(out) offset:out.storage_offset() * out.element_size() atIndex:0];
    [encoder setBuffer:buffer(in) offset:in.storage_offset() * in.element_size() atIndex:1];
    [encoder setBytes:&factor length:sizeof(factor) atIndex:2];
    const NSUInteger group = std::min<NSUInteger>(state.maxTotalThreadsPerThreadgroup, in.numel());
    [encoder dispatchThreads:MTLSizeMake(in.numel(), 1, 1) threadsPerThreadgroup:MTLSizeMake(group, 1, 1)];
    [encoder endEncoding];
    torch::mps::commit();
  });
  return out;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("by_kernel_function", &by_kernel_function);
  m.def("by_command_buffer", &by_command_buffer);
}
"""


def main() -> None:
    """Print the times of building and launching, and their ratios."""
    try:
        torch_host_library()
    except ExtensionError as error:
        print(f"skipped: {error}")
        return
    import torch

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        source = folder / "scale.mm"
        source.write_text(SOURCE % METAL)
        with mock.patch.object(PrecompiledHeaders, "find", return_value=None):
            cold = processor_seconds(lambda: build_extension("scale", [source], folder))
        build_extension("scale", [source], folder)  # precompiles its headers if needed
        warm = processor_seconds(lambda: build_extension("scale", [source], folder))
        loading.load(coverage_profile(None))
        metal.install()
        extension = load_extension(folder / next(path.name for path in folder.glob("scale.*.so")))
    assert extension is not None
    print(f"build without precompiled headers  {cold:6.1f} s")
    print(f"build with them                    {warm:6.1f} s  {cold / warm:4.1f} times as fast")
    shader = torch.mps.compile_shader(METAL)
    values = torch.randn(1000).to("mps")

    def by_compile_shader() -> None:
        shader.scale(torch.empty_like(values), values, 0.5, threads=values.numel())

    usual = microseconds(by_compile_shader)
    print(f"launch by compile_shader           {usual:6.1f} us")
    for way in ("by_kernel_function", "by_command_buffer"):
        took = microseconds(lambda way=way: getattr(extension, way)(values, 0.5))
        print(f"launch {way:27} {took:6.1f} us  {took / usual:4.2f} times as long")


if __name__ == "__main__":
    main()
