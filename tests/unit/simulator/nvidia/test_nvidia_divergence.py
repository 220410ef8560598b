"""Lanes that diverge and communicate reconverge in the PTX, and are right on a GPU where there is one."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from mpsmith.simulator import nvidia
from mpsmith.simulator.clang import BuildCache
from mpsmith.simulator.metal.includes import embed
from mpsmith.simulator.nvidia.program import PtxProgram
from support.diverging_programs import program

SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void walked(device int* out, device const int* x, uint i [[thread_position_in_grid]]) {
  int s = 0;
  for (int k = 0; k < x[i]; k++) {
    if ((s & 7) == 5) break;
    s += x[k];
  }
  out[i] = simd_sum(s);
}
kernel void alone(device int* out, device const int* x, uint i [[thread_position_in_grid]]) {
  int s = 0;
  for (int k = 0; k < x[i]; k++) s += x[k];
  out[i] = s;
}
kernel void chosen(device int* out, device const int* x, uint i [[thread_position_in_grid]]) {
  int s = 0;
  switch (x[i]) {
    case 0: for (int k = 0; k < x[i + 1]; k++) s += x[k]; s = simd_sum(s); break;
    case 1: s = simd_max(i); break;
  }
  out[i] = s;
}
"""


def has_a_gpu() -> bool:
    try:
        nvidia.default_driver()
    except nvidia.NoNvidiaDriverError:
        return False
    return True


class TestPtxOfReconvergence:
    def test_lanes_meet_between_the_loop_and_the_operation(self, tmp_path: Path) -> None:
        built = PtxProgram(embed(SOURCE), "sm_90", BuildCache(tmp_path))
        steps = re.findall(r"activemask|^\$L__BB|bar\.warp\.sync|shfl\.sync", built.code("walked").ptx, re.MULTILINE)
        assert re.match(r"activemask (\$L__BB )+bar\.warp\.sync (\$L__BB |activemask )*shfl\.sync", " ".join(steps))
        assert "bar.warp.sync" not in built.code("alone").ptx

    def test_lanes_that_go_to_one_place_of_a_switch_know_each_other(self, tmp_path: Path) -> None:
        built = PtxProgram(embed(SOURCE), "sm_90", BuildCache(tmp_path))
        ptx = built.code("chosen").ptx
        assert re.search(r"match\.any\.sync\.b32\s+(%r\d+),.*bar\.warp\.sync\s+\1;", ptx, re.DOTALL)


@pytest.mark.skipif(not has_a_gpu(), reason="no NVIDIA GPU here")
class TestDivergenceOnAGpu:
    @pytest.mark.parametrize("seed", range(60))
    def test_random_programs(self, seed: int) -> None:
        source, x, expected = program(seed)
        out = torch.zeros(32, dtype=torch.int32)
        nvidia.compile(source, device="cpu").run(out, torch.from_numpy(x))
        np.testing.assert_array_equal(out.numpy(), expected)
