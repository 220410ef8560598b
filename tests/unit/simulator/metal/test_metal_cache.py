"""The cache of compiled kernels: damage, two processes at once, and a machine without the compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mpsmith.simulator.clang import BuildCache, Clang, InternalCompilerError, ToolRun, installed
from mpsmith.simulator.metal import MetalSyntaxError, compiler
from mpsmith.simulator.metal.compiler import metal_cache_folder
from mpsmith.simulator.metal.includes import with_includes
from mpsmith.simulator.metal.translation import Translation, translate_and_build
from support.needs import needs_metal_on_host

needs_metal_on_host()

PROGRAM = """
import numpy as np
from mpsmith.simulator import metal
library = metal.compile('''kernel void k(device float* a, uint i [[thread_position_in_grid]]) { a[i] = i + 1; }''')
a = np.zeros(4, np.float32)
library.k(a)
print(a.tolist())
"""


def start(program: str, folder: Path, **variables: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "MPSMITH_METAL_CACHE": str(folder), **variables}
    return subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out.strip()


def test_two_clones_share_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A precompiled header names the files it was made of by their paths, and one clone may change its own."""
    clones = [shutil.copytree(compiler.INCLUDE, tmp_path / name) for name in ("first", "second")]
    for clone in clones:
        monkeypatch.setattr(compiler, "INCLUDE", clone)
        metal = compiler.MetalCompiler(installed(), BuildCache(tmp_path / "cache"))
        assert metal.build("int three() { return 3; }", "fast")
        with (clone / "msl" / "kernel.h").open("a") as header:
            header.write("// changed after it was precompiled\n")


ONE = "kernel void {name}(device float* a, uint i [[thread_position_in_grid]]) {{ a[i] = {value}; }}\n"
COMPILES = ("-c", "-fsyntax-only")


class CountedClang(Clang):
    """The installed compiler, which keeps what it was asked to compile: not the preprocessor, not the linker."""

    compiled: list[str] = []  # noqa: RUF012  (of a frozen dataclass, emptied by the test)

    def run(self, tool: str, *arguments: str, **keywords: Any) -> ToolRun:
        """Run it and remember how it was asked to compile."""
        self.compiled.extend(word for word in arguments if word in COMPILES)
        return super().run(tool, *arguments, **keywords)


class TestOneKernel:
    """What Inductor generates is a kernel a program: the check of such a program builds it."""

    @staticmethod
    def translated(source: str, cache: Path) -> tuple[Translation, compiler.MetalCompiler, list[str]]:
        shared = compiler.default_compiler()
        counted = CountedClang(installed().folder)
        metal = compiler.MetalCompiler(counted, BuildCache(cache))
        metal._headers["fast"] = shared._precompiled("fast")
        counted.compiled.clear()
        return translate_and_build(with_includes(source), metal), metal, list(counted.compiled)

    def test_is_compiled_once_and_kept_built(self, tmp_path: Path) -> None:
        translation, metal, compiled = self.translated(ONE.format(name="k", value="i"), tmp_path)
        assert compiled == ["-c"]
        assert metal.cache.find(translation.key_of("k", "fast"), ".so") is not None

    def test_two_are_checked_and_built_when_they_are_asked_for(self, tmp_path: Path) -> None:
        source = ONE.format(name="k", value="i") + ONE.format(name="l", value="2 * i")
        translation, metal, compiled = self.translated(source, tmp_path)
        assert compiled == ["-fsyntax-only"]
        assert metal.cache.find(translation.key_of("k", "fast"), ".so") is None

    def test_that_does_not_compile_is_refused_with_its_line(self, tmp_path: Path) -> None:
        with pytest.raises(MetalSyntaxError, match=r"program_source:1:\d+: error: use of undeclared identifier 'j'"):
            self.translated(ONE.format(name="k", value="j"), tmp_path)
        assert not list(tmp_path.rglob("*.so"))


def test_a_compiler_that_is_killed_refuses_nothing(tmp_path: Path) -> None:
    """Without a reason the source is not to blame, whichever step it was that ended."""
    (tmp_path / "zig").write_text("#!/bin/sh\necho 'LLVM ERROR: out of memory' >&2\nkill -9 $$\n")
    (tmp_path / "zig").chmod(0o755)
    metal = compiler.MetalCompiler(Clang(tmp_path), BuildCache(tmp_path / "cache"))
    metal._headers["fast"] = tmp_path
    for step in (
        lambda: metal.preprocess(with_includes("kernel void k() {}")),
        lambda: metal.check("int x;", "fast"),
        lambda: metal.check_and_build("int x;", "fast"),
    ):
        with pytest.raises(InternalCompilerError, match="without an error message: LLVM ERROR: out of memory"):
            step()


def test_the_cache_is_where_the_user_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MPSMITH_METAL_CACHE", raising=False)
    monkeypatch.setenv("MPSMITH_CACHE", str(tmp_path))
    assert metal_cache_folder() == tmp_path / "metal"
    monkeypatch.setenv("MPSMITH_METAL_CACHE", str(tmp_path / "own"))
    assert metal_cache_folder() == tmp_path / "own"


def test_two_processes_and_damaged_files(tmp_path: Path) -> None:
    both = [start(PROGRAM, tmp_path) for _ in range(2)]
    assert [finish(p) for p in both] == ["[1.0, 2.0, 3.0, 4.0]"] * 2
    files = [f for f in tmp_path.rglob("*") if f.is_file()]
    assert not [f for f in files if f.name.startswith(".new-")]
    for file in files:
        file.write_bytes(file.read_bytes()[:-100])
    assert finish(start(PROGRAM, tmp_path)) == "[1.0, 2.0, 3.0, 4.0]"


def test_a_missing_compiler_error_names_the_package() -> None:
    program = f"import sys; sys.modules['ziglang'] = None\n{PROGRAM}"
    process = start(program, Path("unused"))
    _, err = process.communicate(timeout=300)
    assert process.returncode != 0
    assert "pip install 'mpsmith[metal]'" in err
