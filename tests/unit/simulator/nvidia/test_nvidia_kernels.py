"""Metal source as PTX, and kernels of it that are called as on a Mac. No GPU is needed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from mpsmith.simulator.clang import BuildCache, CompilerMissingError, installed
from mpsmith.simulator.errors import PtxError
from mpsmith.simulator.metal import MetalRuntimeError
from mpsmith.simulator.metal.includes import embed
from mpsmith.simulator.nvidia import Driver, NvidiaLibrary, compiler, program
from mpsmith.simulator.nvidia import library as nvidia_library
from mpsmith.simulator.nvidia.compiler import PtxCompiler, architecture_of
from mpsmith.simulator.nvidia.libdevice import assembler
from mpsmith.simulator.nvidia.program import Code, PtxProgram
from support.fake_cuda import FakeCuda

SOURCE = """
#include <metal_stdlib>
using namespace metal;
struct shape { uint rows, columns; };

kernel void scaled(device float* out, constant float& factor, device const half* x,
    uint i [[thread_position_in_grid]]) {
  out[i] = factor * float(x[i]);
}
kernel void total(device atomic_float* sum, device const float* x, uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float parts[32];
  parts[lane] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float all = simd_sum(parts[31 - lane]);
  if (lane == 0) atomic_fetch_add_explicit(sum, all, memory_order_relaxed);
}
kernel void counted(device atomic_uint* places, constant shape& s, device bfloat* out,
    uint2 at [[thread_position_in_grid]]) {
  uint old = 0;
  while (!atomic_compare_exchange_weak_explicit(places, &old, old + s.rows, memory_order_relaxed,
      memory_order_relaxed)) {}
  if (quad_any(old > s.columns)) out[at.x] = bfloat(simd_shuffle_down(float(out[at.x]), 1)) * bfloat(2);
}
kernel void transcendental(device float* x, uint i [[thread_position_in_grid]]) { x[i] = exp(x[i]); }
kernel void large(device float* x, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float room[9000];
  room[i] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  x[i] = room[i ^ 1];
}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> PtxProgram:
    return PtxProgram(embed(SOURCE), "sm_90", BuildCache(tmp_path_factory.mktemp("ptx")))


@pytest.fixture(scope="module")
def codes(built: PtxProgram) -> dict[str, Code]:
    return {name: built.code(name) for name in ("scaled", "total", "counted", "large")}


class TestPtx:
    def test_the_kernels_of_a_program_are_listed(self, built: PtxProgram) -> None:
        assert built.kernels == ("scaled", "total", "counted", "transcendental", "large")

    def test_what_a_launch_binds_is_known(self, codes: dict[str, Code]) -> None:
        code = codes["scaled"]
        assert (code.slots, code.names) == ((0, 1, 2), ("out", "factor", "x"))
        assert (code.sizes, code.writable) == ((0, 4, 0), (True, False, False))
        assert codes["counted"].sizes == (0, 8, 0)

    def test_memory_of_the_threadgroup_is_shared_memory(self, codes: dict[str, Code]) -> None:
        assert ".shared" in codes["total"].ptx
        assert "bar.sync" in codes["total"].ptx
        assert codes["total"].shared == 128
        assert codes["scaled"].shared == 0

    def test_lanes_exchange_registers_under_a_mask(self, codes: dict[str, Code]) -> None:
        assert re.search(r"shfl\.sync\.\w+", codes["total"].ptx)
        assert "activemask" in codes["total"].ptx

    def test_atomic_operations_are_those_of_the_gpu(self, codes: dict[str, Code]) -> None:
        assert re.search(r"atom\S*\.add\.f32", codes["total"].ptx)
        assert re.search(r"atom\S*\.cas\.b32", codes["counted"].ptx)

    def test_the_size_of_a_group_shows_where_threads_wait(self, codes: dict[str, Code]) -> None:
        assert [codes[name].waits for name in ("scaled", "total", "counted")] == [False, True, True]

    @pytest.mark.skipif(assembler() is None, reason="no ptxas here: pip install 'mpsmith[nvidia]'")
    def test_the_assembler_takes_it(self, codes: dict[str, Code], tmp_path: Path) -> None:
        for code in codes.values():
            file = tmp_path / "kernel.ptx"
            file.write_text(code.ptx)
            done = subprocess.run([str(assembler()), "-arch=sm_90", str(file), "-o", "/dev/null"], capture_output=True)
            assert done.returncode == 0, (code.name, done.stderr)

    def test_mathematics_that_is_not_installed_is_named(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(compiler, "libdevice", lambda: None)
        lacking = PtxProgram(embed(SOURCE), "sm_90", BuildCache(tmp_path))
        with pytest.raises(PtxError, match=r"'transcendental' \(program_source:\d+\): .*__nv_expf.*mpsmith\[nvidia\]"):
            lacking.code("transcendental")

    def test_rejects_an_unknown_kernel(self, built: PtxProgram) -> None:
        with pytest.raises(KeyError):
            built.code("absent")

    def test_kept_ptx_needs_no_compiler(
        self, built: PtxProgram, codes: dict[str, Code], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(program, "locate", lambda: None)
        alone = PtxProgram(embed(SOURCE), "sm_90", built._cache)
        assert alone.code("total") == codes["total"]
        with pytest.raises(CompilerMissingError, match="not in the cache of PTX"):
            PtxProgram(embed("kernel void f() {}"), "sm_90", built._cache).code("f")

    def test_two_processes_share_a_cache(self, tmp_path: Path) -> None:
        script = (
            "import hashlib, pathlib, sys\n"
            "from mpsmith.simulator.clang import BuildCache\n"
            "from mpsmith.simulator.metal.includes import embed\n"
            "from mpsmith.simulator.nvidia.program import PtxProgram\n"
            "built = PtxProgram(embed('kernel void f(device float* x) { x[0] = 1; }'), 'sm_90',"
            " BuildCache(pathlib.Path(sys.argv[1])))\n"
            "print(hashlib.sha256(built.code('f').ptx.encode()).hexdigest())\n"
        )
        command = [sys.executable, "-c", script, str(tmp_path)]
        both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
        said = [process.communicate(timeout=120) for process in both]
        assert [process.returncode for process in both] == [0, 0], said
        assert said[0][0] == said[1][0] != ""
        source = embed("kernel void f(device float* x) { x[0] = 1; }")
        kept = PtxProgram(source, "sm_90", BuildCache(tmp_path)).code("f")
        assert ".entry nvidia_entry_point" in kept.ptx

    def test_ptx_of_another_compiler_is_made_anew(
        self, built: PtxProgram, codes: dict[str, Code], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(PtxCompiler, "identity", "another")
        assert PtxProgram(embed(SOURCE), "sm_90", built._cache).code("scaled").compiler == "another"


class TestArchitectures:
    def test_a_newer_gpu_takes_the_newest_known(self) -> None:
        assert architecture_of((12, 0)) == architecture_of((9, 0)) == "sm_90"
        assert architecture_of((8, 7)) == "sm_86"

    def test_an_older_gpu_is_refused(self) -> None:
        with pytest.raises(PtxError, match=r"6\.1 is too old"):
            architecture_of((6, 1))

    def test_every_architecture_compiles(self) -> None:
        for capability in ((7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0)):
            made = PtxCompiler(installed(), architecture_of(capability))
            ptx = made.from_metal('extern "C" __attribute__((global)) void nothing() {}')
            assert f".target {made.architecture}" in ptx


class TestNvidiaCalls:
    """Kernels on a driver whose launches are Python: what they are given is what a GPU would be."""

    def test_arguments_and_grid_reach_the_gpu(self, built: PtxProgram) -> None:
        seen: list[tuple[list[int], tuple[int, ...], tuple[int, ...]]] = []

        def kernel(values: bytes, groups: tuple[int, ...], group: tuple[int, ...]) -> None:
            addresses = [int.from_bytes(values[i : i + 8], "little") for i in (0, 8, 16)]
            numbers = [int.from_bytes(values[i : i + 4], "little") for i in range(24, len(values), 4)]
            seen.append((numbers, groups, group))
            out = torch.frombuffer(memory.memory[addresses[0]], dtype=torch.float32)
            factor = torch.frombuffer(memory.memory[addresses[1]], dtype=torch.float32)
            x = torch.frombuffer(memory.memory[addresses[2]], dtype=torch.float16)
            out[:] = factor[0] * x

        memory = FakeCuda(kernel)
        library = NvidiaLibrary(built, Driver(memory), "cpu")
        x, out = torch.arange(300, dtype=torch.float16), torch.empty(300)
        library.scaled(out, 2.0, x)
        assert torch.equal(out, 2.0 * x.float())
        assert seen == [([300, 1, 1, 256, 1, 1, 2, 1, 1, 0, 0, 0], (2, 1, 1), (256, 1, 1))]

    def test_a_group_that_waits_is_cut_at_the_edge(self, built: PtxProgram) -> None:
        groups: list[tuple[int, int]] = []
        cuda = FakeCuda(lambda values, count, group: groups.append((count[0], group[0])))
        library = NvidiaLibrary(built, Driver(cuda), "cpu")
        library.total(torch.zeros(1), torch.zeros(70), threads=70, group_size=32)
        assert groups == [(2, 32), (1, 6)]

    def test_an_error_is_raised_once_by_the_launch_after_the_one_that_reported_it(
        self, built: PtxProgram, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def kernel(values: bytes, groups: tuple[int, ...], group: tuple[int, ...]) -> None:
            (address,) = memory.of_host
            assert int.from_bytes(values[:8], "little") == address
            memory.of_host[address][4 + 256] = b"x"  # the first message
            memory.of_host[address][0] = b"\1"

        memory = FakeCuda(kernel)
        monkeypatch.setattr(nvidia_library, "_current_stream", lambda: 0)
        scaled = NvidiaLibrary(built, Driver(memory), "cuda").scaled
        scaled(0.0, 2.0, 3.0, threads=1, error_buf_idx=0)
        memory.kernel = None
        with pytest.raises(torch.AcceleratorError, match=r"^x "):
            scaled(0.0, 2.0, 3.0, threads=1, error_buf_idx=0)
        scaled(0.0, 2.0, 3.0, threads=1, error_buf_idx=0)
        assert len(memory.of_host) == 1, "one buffer for all launches"

    def test_a_kernel_that_takes_many_registers_is_loaded_with_fewer(self, built: PtxProgram) -> None:
        cuda = FakeCuda()
        cuda.max_threads = 512
        library = NvidiaLibrary(built, Driver(cuda), "cpu")
        library.scaled(torch.zeros(8), 2.0, torch.zeros(8, dtype=torch.half), threads=1024, group_size=1024)
        assert [options.get(0) for _, options in cuda.loaded] == [None, 64]

    def test_too_much_memory_of_the_threadgroup_is_refused(self, built: PtxProgram) -> None:
        library = NvidiaLibrary(built, Driver(FakeCuda()), "cpu")
        with pytest.raises(MetalRuntimeError, match=r"'large'.*uses 36000 bytes of threadgroup memory"):
            _ = library.large

    def test_arguments_that_do_not_fit_are_named(self, built: PtxProgram) -> None:
        library = NvidiaLibrary(built, Driver(FakeCuda()), "cpu")
        with pytest.raises(MetalRuntimeError, match=r"argument 1 \('factor'\) is not passed"):
            library.scaled(torch.zeros(4), threads=4)
        with pytest.raises(MetalRuntimeError, match=r"'s'\) holds 4 bytes, and the kernel reads 8"):
            library.counted(torch.zeros(1), 1.0, torch.zeros(1), threads=(1, 1))
        with pytest.raises(MetalRuntimeError, match="Failed to create function state object for: absent"):
            _ = library.absent
