"""The cache of compiled kernels: damage, two processes at once, and a machine without the compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ziglang")

from mpsmith.simulator.clang import BuildCache, installed
from mpsmith.simulator.metal import compiler
from mpsmith.simulator.metal.compiler import metal_cache_folder

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


def test_without_the_compiler_the_error_says_what_to_install() -> None:
    program = f"import sys; sys.modules['ziglang'] = None\n{PROGRAM}"
    process = start(program, Path("unused"))
    _, err = process.communicate(timeout=300)
    assert process.returncode != 0
    assert "pip install 'mpsmith[metal]'" in err
