"""Host code in PyTorch's style, with its Metal, built for this machine and run on the simulated device."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torchgen

from mpsmith.simulator.objc.bridge import launches
from mpsmith.simulator.objc.loading import load_extension
from mpsmith.simulator.upstream.building import build_one
from mpsmith.simulator.upstream.operations import KERNELS, OPERATIONS, operation_files
from mpsmith.simulator.upstream.registrations import MpsYaml

pytestmark = pytest.mark.network  # Metal's declarations are fetched: mpsmith check --setup

NATIVE = Path(torchgen.__file__).parent / "packaged/ATen/native"
HOST = """\
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/native/mps/OperationUtils.h>
#include <ATen/ops/eye_native.h>

namespace at::native {
using namespace mps;

#ifndef PYTORCH_JIT_COMPILE_SHADERS
static auto& lib = MetalShaderLibrary::getBundledLibrary();
#else
#include <ATen/native/mps/Ones_metallib.h>
#endif

Tensor& eye_out_mps(int64_t n, int64_t m, Tensor& result) {
  TORCH_CHECK(n >= 0 && m >= 0, "n and m must be greater or equal to 0, got ", n, " and ", m);
  result.resize_({n, m});
  if (result.numel() == 0) {
    return result;
  }
  auto stream = getCurrentMPSStream();
  auto state = lib.getPipelineStateForFunc("ones_" + scalarToMetalTypeString(result));
  const std::array<int64_t, 2> strides = {result.stride(0), result.stride(1)};
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      auto encoder = stream->commandEncoder();
      [encoder setComputePipelineState:state];
      mtl_setArgs(encoder, result, strides, m);
      mtl_dispatch1DJob(encoder, state, n * m);
    }
  });
  return result;
}

Tensor& eye_out_mps(int64_t n, Tensor& result) {
  return eye_out_mps(n, n, result);
}
}
"""
METAL = """\
#include <metal_stdlib>
using namespace metal;

template <typename T>
kernel void ones(
    device T* out [[buffer(0)]],
    constant long* strides [[buffer(1)]],
    constant long& columns [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  const long row = long(i) / columns, column = long(i) % columns;
  out[row * strides[0] + column * strides[1]] = T(row == column ? 1 : 0);
}
#define ONES(T) \\
  template [[host_name("ones_" #T)]] kernel void ones<T>(device T*, constant long*, constant long&, uint);
ONES(float)
ONES(long)
"""


def test_a_file_of_a_checkout_answers_for_its_operator(tmp_path: Path) -> None:
    for place, text in (
        (OPERATIONS / "Ones.mm", HOST),
        (OPERATIONS / "Broken.mm", "namespace at::native { Tensor trace_mps_out(int x) { return y; } }\n"),
        (KERNELS / "Ones.metal", METAL),
    ):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(text)
    yaml = MpsYaml((NATIVE / "native_functions.yaml").read_text(), NATIVE / "tags.yaml", ["eye"])
    served = {
        file.name: [kernel.overload for kernel in yaml.kernels if file.serves(kernel)]
        for file in operation_files(tmp_path)
    }
    broken, ones = (build_one(f.name, f, served[f.name], yaml) for f in operation_files(tmp_path))
    assert not broken.built
    assert "Broken.mm:1" in broken.problem
    assert sorted(ones.overloads) == ["eye.m_out", "eye.out"], ones.problem
    load_extension(Path(ones.library))
    before = launches()
    transposed = torch.empty(6, 4, device="mps").t()
    assert torch.equal(torch.eye(4, 6, out=transposed).cpu(), torch.eye(4, 6))
    assert torch.equal(torch.eye(3, dtype=torch.int64, device="mps").cpu(), torch.eye(3, dtype=torch.int64))
    assert launches() == before + 2
    with pytest.raises(RuntimeError, match="n and m must be greater or equal to 0, got -1 and 2"):
        torch.eye(-1, 2, out=torch.empty(0, device="mps"))
    with pytest.raises(RuntimeError, match="ones_half"):  # what no kernel was instantiated for
        torch.eye(2, dtype=torch.float16, device="mps")
