"""Kernels out of a wheel run on the host: one of each kind that the scheduler has to know."""

from __future__ import annotations

import functools
import struct

import pytest
import torch

from mpsmith.audit.releases.wheel.shipped import shipped_library
from mpsmith.simulator.air.bitcode import declared_functions, signature_of_bitcode
from mpsmith.simulator.air.compiler import default_air_compiler
from mpsmith.simulator.air.container import LibraryFile
from mpsmith.simulator.air.host_module import host_module
from mpsmith.simulator.air.library import AirLibrary
from mpsmith.simulator.errors import KernelFault
from support.needs import needs_metal_on_host

needs_metal_on_host()

pytestmark = pytest.mark.network

RELEASE = "2.15.0"


@functools.cache
def library() -> AirLibrary:
    return AirLibrary(shipped_library(RELEASE), RELEASE)


@pytest.mark.parametrize(("release", "operations"), [("2.13.0", 208), (RELEASE, 230)])
def test_every_operation_of_a_release_is_supplied(release: str, operations: int) -> None:
    """Apple's operations are counted over all modules; one module a new operation is made into one for the host."""
    file, compiler = LibraryFile(shipped_library(release)), default_air_compiler()
    seen: set[str] = set()
    for name in file.names:
        bitcode = file.bitcode(name)
        needed = {function for function in declared_functions(bitcode) if function.startswith("air.")}
        if needed - seen:
            host_module(compiler.disassemble(bitcode), name, signature_of_bitcode(bitcode, name))
            seen |= needed
    assert len(seen) == operations


def test_a_unary_kernel() -> None:
    x = torch.randn(5000)
    out = torch.empty(5000)
    arguments = {"output": out, "input": x, "numel": 5000}
    library().kernel("exp_dense_float_float").launch(arguments, [1250], [256])
    torch.testing.assert_close(out, x.exp())


def test_a_binary_kernel_of_complex_numbers() -> None:
    x, y = (torch.randn(3000, dtype=torch.complex64) for _ in range(2))
    out = torch.empty_like(x)
    arguments = {"out": out, "input": x, "other": y}
    library().kernel("mul_dense_float2_float2").launch(arguments, [3000], [1000])
    torch.testing.assert_close(out, x * y)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.complex64])
def test_a_reduction_by_lanes_and_threadgroup_memory(dtype: torch.dtype) -> None:
    x = (torch.randn(20, 1000) * 9).to(dtype)
    out = torch.empty(20, dtype=dtype)
    name = {torch.float32: "float", torch.int64: "long", torch.complex64: "float2"}[dtype]
    shape = {"input_sizes": [20, 1000], "input_strides": [1000, 1], "output_sizes": [20, 1], "output_strides": [1, 1]}
    params = {"p": 0, "reduction_size": 1000, "ndim": 2, **shape}
    arguments = {"input": x, "output": out, "params": params}
    library().kernel(f"sum_reduction_{name}_{name}").launch(arguments, [20 * 1024], [1024])
    torch.testing.assert_close(out, x.sum(1), rtol=1e-5, atol=1e-4)


def test_a_sort_with_barriers() -> None:
    x = torch.randn(2, 1000)
    values, indices = torch.empty_like(x), torch.empty(2, 1000, dtype=torch.int64)
    arguments = {
        **{"inp": x, "out_vals": values, "out_idx": indices},
        **{"size": 1000, "strides": [1, 1000], "desc": False},
    }
    library().kernel("sort_block_float_tptg256").launch(arguments, [256, 2, 1], [256, 1, 1])
    expected = x.sort(1)
    assert torch.equal(values, expected.values)
    assert torch.equal(indices, expected.indices)


def test_matrices_of_a_simd_group() -> None:
    m, k, n = 40, 48, 64
    a, b, out = torch.randn(m, k), torch.randn(k, n), torch.zeros(3, m, n)
    ends = torch.tensor([16, 32, 48], dtype=torch.int32)
    params = {
        **{"m": m, "n": n, "k": k, "groups": 3, "a_stride_m": k, "a_stride_k": 1, "b_stride_n": 1, "b_stride_k": n},
        **{"out_stride_m": n, "out_stride_n": 1, "batch_stride": m * n},
    }
    arguments = {"mat_a": a, "mat_b": b, "offsets": ends, "output": out, "params": params}
    library().kernel("grouped_mm_k_float_bm32_u32").launch(arguments, [64, 2, 3], [64, 1, 1])
    expected = torch.stack([a[:, s:t] @ b[s:t] for s, t in ((0, 16), (16, 32), (32, 48))])
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-4)


def scattered(index: torch.Tensor, error: torch.Tensor) -> torch.Tensor:
    source = torch.arange(300.0).view(50, 6)
    out = torch.zeros(10, 6)
    arguments = {
        **{"output": out, "src": source, "index": index, "inner_size": 6, "index_dim_size": 50},
        **{"output_dim_size": 10, "tid_offset": 0, "error_buf": error},
    }
    library().kernel("scatter_add_dense_float_long").launch(arguments, [300], [300])
    return out


def test_atomic_additions_and_the_buffer_of_errors() -> None:
    index = torch.randint(0, 10, (50, 6))
    error = torch.zeros(15364, dtype=torch.uint8)
    expected = torch.zeros(10, 6).scatter_add(0, index, torch.arange(300.0).view(50, 6))
    torch.testing.assert_close(scattered(index, error), expected)
    index[3, 3] = 77
    scattered(index, error)
    text = bytes(error.tolist())
    assert struct.unpack("<I", text[:4]) == (1,)
    assert b"index 77 is out of bounds for dimension with size 10" in text


def test_a_buffer_that_is_too_small_is_a_fault() -> None:
    arguments = {"output": torch.empty(4), "input": torch.zeros(4000), "numel": 4000}
    with pytest.raises(KernelFault, match=rf"kernel exp_dense_float_float of torch {RELEASE}: out of bounds .*output"):
        library().kernel("exp_dense_float_float").launch(arguments, [1000], [256])
