"""What is compiled is kept; what cannot be compiled, or takes too much, ends in an error that names it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from mpsmith.simulator.air.compiler import AirCompiler, Build
from mpsmith.simulator.clang import BuildCache, Limits
from mpsmith.simulator.errors import KernelCacheError, KernelCompileError
from mpsmith.simulator.metal.compiler import default_compiler
from mpsmith.simulator.metal.function_constants import Constant
from support.air_kernels import bitcode, elementwise
from support.metal_libraries import write_metal_library
from support.needs import needs_metal_on_host

needs_metal_on_host()

EXP = elementwise("exp_float", "air.exp.f32", "float", "float")
AMPLE = Limits(seconds=120, memory=4 << 30)


def compiler(cache: Path, limits: Limits = AMPLE) -> AirCompiler:
    return AirCompiler(default_compiler().clang, BuildCache(cache), default_compiler(), limits)


def built_files(cache: Path) -> list[Path]:
    return sorted(cache.glob("*/*.so"))


def counted(compiler: AirCompiler, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels that the compiler really builds from now on."""
    names: list[str] = []
    build = compiler._build

    def counting(bitcode: bytes, name: str, kind: Build, constants: Sequence[Constant]) -> bytes:
        names.append(name)
        return build(bitcode, name, kind, constants)

    monkeypatch.setattr(compiler, "_build", counting)
    return names


def test_a_kernel_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = bitcode(EXP)
    first, second = compiler(tmp_path), compiler(tmp_path)
    path, content = first.built(module, "exp_float")
    names = counted(second, monkeypatch)
    assert second.built(module, "exp_float") == (path, content)
    assert names == []


def test_another_module_of_the_same_name_is_compiled_anew(tmp_path: Path) -> None:
    kernels = compiler(tmp_path)
    other = elementwise("exp_float", "air.exp2.f32", "float", "float")
    assert kernels.built(bitcode(EXP), "exp_float") != kernels.built(bitcode(other), "exp_float")


def test_a_damaged_entry_is_compiled_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = compiler(tmp_path)
    path, content = kernels.built(bitcode(EXP), "exp_float")
    path.write_bytes(content[:100])
    names = counted(kernels, monkeypatch)
    assert kernels.built(bitcode(EXP), "exp_float")[1] == content
    assert names == ["exp_float"]


def test_only_deterministic_code_is_compiled_without_optimization(tmp_path: Path) -> None:
    kernels = compiler(tmp_path)
    absolute = bitcode(elementwise("absolute", "air.abs.s.i32", "i32", "i32"))
    assert kernels.built(absolute, "absolute", "quick")[1] == kernels.built(absolute, "absolute", "optimized")[1]
    quick, optimized = (kernels.built(bitcode(EXP), "exp_float", kind)[1] for kind in ("quick", "optimized"))
    assert quick != optimized


PROGRAM = """
import sys, torch
from pathlib import Path
from mpsmith.simulator.air.intrinsics import Variant
from mpsmith.simulator.air.library import AirLibrary
out = torch.zeros(4)
AirLibrary(Path(sys.argv[1]), "9.9.9").kernel("exp_float").launch({"a": torch.zeros(4), "out": out}, [4], [4])
print(out.tolist())
"""


def test_two_processes_that_compile_the_same_kernel_agree(tmp_path: Path) -> None:
    library = write_metal_library(tmp_path / "kernels.metallib", {"exp_float": bitcode(EXP)})
    environment = {**os.environ, "MPSMITH_CACHE": str(tmp_path / "cache")}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(library)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in processes:
        out, error = process.communicate(timeout=300)
        assert process.returncode == 0, error
        assert out.strip() == "[1.0, 1.0, 1.0, 1.0]"
    assert len(built_files(tmp_path / "cache" / "air")) == 1


def test_a_full_disk_is_an_error_that_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = compiler(tmp_path)
    _ = kernels.runtime

    def full(*_: object) -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(kernels.cache, "store", full)
    with pytest.raises(KernelCacheError, match=rf"No space left on device; make room in {tmp_path}"):
        kernels.built(bitcode(EXP), "exp_float")


def test_a_cache_that_is_too_large_is_shrunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpsmith.simulator.air.compiler.CACHE_BYTES", 0)
    monkeypatch.setattr("mpsmith.simulator.air.compiler._BUILDS_PER_CHECK", 1)
    kernels = compiler(tmp_path)
    kernels.built(bitcode(EXP), "exp_float")
    assert built_files(tmp_path) == []


def test_the_compiler_has_a_time_limit(tmp_path: Path) -> None:
    hurried = compiler(tmp_path, Limits(seconds=0.0001, memory=AMPLE.memory))
    with pytest.raises(KernelCompileError, match=r"it takes the compiler more than 0\.0001 s"):
        hurried.built(bitcode(EXP), "exp_float")


def test_the_compiler_has_a_memory_limit(tmp_path: Path) -> None:
    """A kernel that asks for a gigantic vector makes LLVM split it into millions of pieces."""
    wide = 1 << 21
    text = elementwise("wide", "air.exp.f32", "float", "float").replace(
        "  ret void",
        f"  %w = load <{wide} x float>, ptr addrspace(1) %a\n"
        f"  %x = fadd <{wide} x float> %w, %w\n"
        f"  store <{wide} x float> %x, ptr addrspace(1) %out\n  ret void",
    )
    narrow = compiler(tmp_path, Limits(seconds=60, memory=400 << 20))
    assert narrow.built(bitcode(EXP), "exp_float")
    with pytest.raises(KernelCompileError, match="the compiler refuses it"):
        narrow.built(bitcode(text), "wide")
