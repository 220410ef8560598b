"""A `.metallib`: what a build writes for Metal source here, and what `torch.mps.load_metallib` loads."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import torch

from mpsmith.scaffold.building.apple_tools import main, tools_folder
from mpsmith.simulator.air import metallib
from mpsmith.simulator.air.container import MAGIC
from support.air_kernels import air_library, elementwise
from support.needs import needs_metal_on_host

needs_metal_on_host()
pytestmark = pytest.mark.usefixtures("simulated_device")

KERNEL = """\
#include <metal_stdlib>
#include "factor.h"
static float scaled(float x) { return x * FACTOR + PLUS; }
kernel void NAME(device float* x, uint i [[thread_position_in_grid]]) { x[i] = scaled(x[i]); }
"""


@pytest.fixture(autouse=True)
def loader() -> None:
    metallib.install()


def built(folder: Path) -> Path:
    """A library of two files, each with its own `scaled`, as a setup.py makes it."""
    (folder / "include").mkdir()
    (folder / "include" / "factor.h").write_text("#define FACTOR 3\n")
    xcrun = str(tools_folder() / "xcrun")
    compile_words = [xcrun, "-sdk", "macosx", "metal", "-O3", "-std=metal3.1", "-c", "-I", "include"]
    for name, plus in (("first", "1"), ("second", "2")):
        (folder / f"{name}.metal").write_text(KERNEL.replace("NAME", name))
        words = [*compile_words, f"-DPLUS={plus}", f"{name}.metal", "-o", f"{name}.air"]
        subprocess.run(words, cwd=folder, check=True)
    link_words = [xcrun, "-sdk", "macosx", "metallib", "first.air", "second.air", "-o", "both.metallib"]
    subprocess.run(link_words, cwd=folder, check=True)
    return folder / "both.metallib"


def test_a_library_of_two_files_runs_by_path_and_by_bytes(tmp_path: Path) -> None:
    path = built(tmp_path)
    for library in (torch.mps.load_metallib(path), torch.mps.load_metallib(path.read_bytes())):
        assert sorted(dir(library)) == ["first", "second"]
        x = torch.arange(4.0, device="mps")
        library.first(x)
        library.second(x)
        assert torch.equal(x.cpu(), torch.arange(4.0) * 9 + 5)
        with pytest.raises(AttributeError, match="third"):
            library.third(x)


def test_kernels_of_apples_compiler_run(tmp_path: Path) -> None:
    air_library(tmp_path, {"k": elementwise("k", "air.exp.f32", "float", "float")})
    library = torch.mps.load_metallib(tmp_path / "kernels.metallib")
    assert dir(library) == ["k"]
    a = torch.linspace(-2, 2, 37)
    out = torch.zeros(37, device="mps")
    library.k(*in_order(library.k.buffer_parameters, {"a": a.to("mps"), "out": out}), threads=37)
    torch.testing.assert_close(out.cpu(), a.exp())


def in_order(parameters: dict[int, tuple[str, int]], arguments: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    return [arguments[parameters[index][0]] for index in sorted(parameters)]


def test_a_file_that_is_not_a_library_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="begins with MTLB"):
        torch.mps.load_metallib(b"text")
    with pytest.raises(RuntimeError, match=r"gone\.metallib: No such file"):
        torch.mps.load_metallib(tmp_path / "gone.metallib")
    with pytest.raises(RuntimeError, match=r"header|bytes|damaged|short"):
        torch.mps.load_metallib(MAGIC + bytes(10))
    with pytest.raises(TypeError, match="expected bytes or path"):
        torch.mps.load_metallib(3)  # type: ignore[arg-type]


def test_tools_answer_as_xcrun_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["xcrun", "-sdk", "macosx", "-f", "metal"]) == 0
    assert capsys.readouterr().out.strip() == str(tools_folder() / "metal")
    assert main(["xcrun", "metal", "-c", str(tmp_path / "gone.metal")]) == 1
    assert "no such file" in capsys.readouterr().err
    assert main(["xcrun", "swiftc", "a.swift"]) == 1
    assert "mpsmith has no swiftc" in capsys.readouterr().err
