from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mpsmith.simulator.device.build import cxx_command
from mpsmith.simulator.objc.compile_options import parse_options
from mpsmith.simulator.objc.compiler import ExtensionBuildError, link


def test_flags_are_sorted_by_purpose() -> None:
    flags = ["-std=c++20", "-fobjc-arc", "-Iown", "-I", "other", "-DA", "-D", "B=2", "-O2"]
    options = parse_options(flags)
    assert options.arc is True
    assert options.include == (Path("own"), Path("other"))
    assert options.definitions == ("A", "B=2")
    assert options.others == ("-std=c++20",)
    assert options.including(["more"]).include == (Path("own"), Path("other"), Path("more"))


def test_reference_counting_is_left_open_where_nothing_is_said() -> None:
    assert parse_options([]).arc is None
    assert parse_options(["-fobjc-arc", "-fno-objc-arc"]).arc is False


def test_options_only_for_macos_are_dropped() -> None:
    flags = ["-framework", "Metal", "-arch", "arm64", "-mmacosx-version-min=14.0", "-ObjC++", "-mcpu=apple-m1", "-Wall"]
    flags += ["-isysroot", "/sdk", "-fmodules", "-fcxx-modules"]
    assert parse_options(flags).others == ("-Wall",)
    openmp = ["-Xpreprocessor", "-fopenmp", "-lomp", "-Xclang", "-fno-pch-timestamp", "-Xclang", "-fopenmp=libomp"]
    assert parse_options(openmp).others == ("-Xclang", "-fno-pch-timestamp")


def test_a_linker_error_is_the_first_that_it_has(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.cpp").write_text("int absent(); int f() { return absent(); }")
        subprocess.run([*cxx_command(), "-fPIC", "-c", f"{name}.cpp"], cwd=tmp_path, check=True)
    with pytest.raises(ExtensionBuildError, match="multiple definition of `_Z1fv'"):
        link([tmp_path / "a.o", tmp_path / "b.o"], tmp_path / "c.so", [])
