from __future__ import annotations

from pathlib import Path

from mpsmith.simulator.objc.compile_options import parse_options


def test_flags_are_sorted_by_what_they_are_for() -> None:
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


def test_what_is_for_a_mac_alone_is_left_out() -> None:
    flags = ["-framework", "Metal", "-arch", "arm64", "-mmacosx-version-min=14.0", "-ObjC++", "-mcpu=apple-m1", "-Wall"]
    flags += ["-isysroot", "/sdk"]
    assert parse_options(flags).others == ("-Wall",)
    openmp = ["-Xpreprocessor", "-fopenmp", "-lomp", "-Xclang", "-fno-pch-timestamp", "-Xclang", "-fopenmp=libomp"]
    assert parse_options(openmp).others == ("-Xclang", "-fno-pch-timestamp")
