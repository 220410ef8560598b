"""Subnormal numbers: kept as the host does, or flushed as Apple GPUs do."""

from __future__ import annotations

import numpy as np
import pytest

from mpsmith.simulator import metal
from mpsmith.simulator.metal import MetalValueError
from support.needs import needs_metal_on_host

needs_metal_on_host()

SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void twice(device float* out, device const float* in, uint i [[thread_position_in_grid]]) { out[i] = in[i] * 2; }
kernel void halved(device float* out, device const float* in, uint i [[thread_position_in_grid]]) {
  out[i] = in[i] * 0.5f; }
kernel void of_half(device half* out, device const half* in, uint i [[thread_position_in_grid]]) { out[i] = in[i] * 2; }
kernel void bits(device uint* out, device const uint* in, uint i [[thread_position_in_grid]]) { out[i] = in[i] + 1; }
"""
TINY = np.float32(1e-40)


@pytest.fixture(scope="module")
def library() -> metal.ShaderLibrary:
    return metal.compile(SOURCE)


def result(kernel: metal.SimulatedKernel, value: np.generic) -> float:
    out = np.ones(1, value.dtype)
    kernel(out, np.array([value]))
    return float(out[0])


@pytest.mark.parametrize(("mode", "flushed"), [("fast", False), ("checked", False), ("schedules", True)])
def test_schedules_flushes_arguments_and_results(library: metal.ShaderLibrary, mode: metal.Mode, flushed: bool) -> None:
    with metal.checking(mode):
        assert (result(library.twice, TINY) == 0) is flushed
        assert (result(library.halved, np.float32(1.2e-38)) == 0) is flushed
        assert result(library.bits, np.uint32(5)) == 6


def test_the_caller_decides_in_any_mode(library: metal.ShaderLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    with metal.subnormals("flush"):
        assert result(library.twice, TINY) == 0
    with metal.subnormals("keep"), metal.checking("schedules"):
        assert result(library.twice, TINY) == TINY * 2
    monkeypatch.setenv("MPSMITH_METAL_SUBNORMALS", "flush")
    assert result(library.twice, TINY) == 0
    monkeypatch.setenv("MPSMITH_METAL_SUBNORMALS", "maybe")
    with pytest.raises(MetalValueError, match="use keep or flush"):
        result(library.twice, TINY)


def test_half_keeps_its_own(library: metal.ShaderLibrary) -> None:
    with metal.subnormals("flush"):
        assert result(library.of_half, np.float16(3e-6)) == np.float16(3e-6) * 2


def test_the_host_counts_with_them_again_afterwards(library: metal.ShaderLibrary) -> None:
    with metal.subnormals("flush"):
        result(library.twice, TINY)
    assert np.array([TINY])[0] * np.float32(1) == TINY
