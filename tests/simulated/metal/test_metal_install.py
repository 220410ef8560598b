"""`torch.mps.compile_shader` on the simulated device."""

from __future__ import annotations

import warnings

import pytest
import torch

from mpsmith.simulator import metal
from support.needs import needs_metal_on_host

needs_metal_on_host()

SOURCE = """
#include <metal_stdlib>
#include <c10/metal/special_math.h>
using namespace metal;
kernel void erf_of(device float* out, constant float* x, uint i [[thread_position_in_grid]]) {
  out[i] = c10::metal::erf(x[i]);
}
kernel void row_sum(device float* out, constant float* x, constant uint& n, uint g [[threadgroup_position_in_grid]],
    uint t [[thread_index_in_threadgroup]], uint width [[threads_per_threadgroup]],
    uint simd [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float partial[32];
  float s = 0;
  for (uint k = t; k < n; k += width) s += x[g * n + k];
  s = simd_sum(s);
  if (lane == 0) partial[simd] = s;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simd == 0) {
    s = simd_sum(lane < (width + 31) / 32 ? partial[lane] : 0.0f);
    if (lane == 0) out[g] = s;
  }
}
"""


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    metal.install()
    metal.install()  # once is enough, twice does no harm


def test_torchs_own_example() -> None:
    library = torch.mps.compile_shader(
        "kernel void full(device float* out, constant float& val, uint idx [[thread_position_in_grid]])"
        " { out[idx] = val; }"
    )
    x = torch.zeros(16, device="mps")
    library.full(x, 3.14)
    assert x.cpu().tolist() == [pytest.approx(3.14)] * 16


@pytest.mark.parametrize("mode", ["fast", "schedules", "checked"])
def test_kernels_on_tensors_of_the_device(mode: metal.Mode) -> None:
    library = torch.mps.compile_shader(SOURCE)
    x = torch.randn(6, 300, device="mps")
    out, sums = torch.empty_like(x), torch.empty(6, device="mps")
    with metal.checking(mode):
        library.erf_of(out, x)
        library.row_sum(sums, x, 300, threads=6 * 128, group_size=128, arg_casts="int32")
    torch.testing.assert_close(out.cpu(), torch.erf(x.cpu()), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(sums.cpu(), x.cpu().sum(1), rtol=1e-4, atol=1e-5)


def test_storage_offset_is_honoured_and_strides_are_not_passed() -> None:
    library = torch.mps.compile_shader(SOURCE)
    x = torch.linspace(-1, 1, 12, device="mps").reshape(3, 4)
    out = torch.empty(4, device="mps")
    library.erf_of(out, x[1:].t(), threads=4)
    torch.testing.assert_close(out.cpu(), torch.erf(x.cpu()[1]), rtol=1e-5, atol=1e-6)


def test_cpu_tensors_are_refused_unless_0_dimensional() -> None:
    library = torch.mps.compile_shader(
        "kernel void scale(device float* out, constant float& a, uint i [[thread_position_in_grid]]) { out[i] *= a; }"
    )
    x = torch.ones(4, device="mps")
    library.scale(x, torch.tensor(3.0, dtype=torch.float64))
    assert x.cpu().tolist() == [3.0] * 4
    with pytest.raises(RuntimeError, match="Passed CPU tensor to MPS op"):
        library.scale(x, torch.ones(1))
    with pytest.raises(RuntimeError, match="Passed CPU tensor to MPS op"):
        library.scale(torch.ones(4), 2.0)


def test_syntax_error_names_the_line_of_the_source_without_headers() -> None:
    with pytest.raises(SyntaxError, match=r"program_source:5:3: error: .*'nothing'"):
        torch.mps.compile_shader(
            "#include <c10/metal/special_math.h>\n#include <c10/metal/utils.h>\n\n"
            "kernel void k(device float* x) {\n  nothing(x);\n}\n"
        )


def test_mode_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPSMITH_METAL_MODE", "checked")
    library = torch.mps.compile_shader(
        "kernel void k(device float* a, uint i [[thread_position_in_grid]]) { a[0] = i; }"
    )
    with pytest.raises(RuntimeError, match="data race"):
        library.k(torch.zeros(64, device="mps"))
    monkeypatch.setenv("MPSMITH_METAL_MODE", "careless")
    with pytest.raises(ValueError, match="not a checking mode"):
        torch.mps.compile_shader("")


def test_kernels_leave_dispatcher_and_autograd_alone() -> None:
    library = torch.mps.compile_shader(SOURCE)

    class Erf(torch.autograd.Function):
        @staticmethod
        def forward(ctx: torch.autograd.function.FunctionCtx, x: torch.Tensor) -> torch.Tensor:
            out = torch.empty_like(x)
            library.erf_of(out, x)
            return out

        @staticmethod
        def backward(ctx: torch.autograd.function.FunctionCtx, grad: torch.Tensor) -> torch.Tensor:
            return grad * 2

    x = torch.randn(5, device="mps", requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Erf.apply(x).sum().backward()
    assert x.grad is not None
    assert x.grad.cpu().tolist() == [2.0] * 5
