from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mpsmith.simulator.clang import Clang, ToolRun, installed
from mpsmith.simulator.clang.precompiled_headers import PrecompiledHeaders, leading_includes

BEGINNING = "#define A\n#include <vector>\n"


class CountingClang(Clang):
    """Writes what it is asked to compile; refuses a header that includes `missing`."""

    def run(self, tool: str, *arguments: str, **_: object) -> ToolRun:
        header, built = Path(arguments[-3]), Path(arguments[-1])
        runs.append(arguments)
        if "missing" in header.read_text():
            return ToolRun(False, "", "no such file")
        built.write_text(header.read_text())
        return ToolRun(True, "", "")


runs: list[Sequence[str]] = []


@pytest.fixture
def headers(tmp_path: Path) -> PrecompiledHeaders:
    runs.clear()
    return PrecompiledHeaders(CountingClang(tmp_path), tmp_path / "pch", "tools")


def test_leading_includes_end_at_the_first_gap() -> None:
    text = "#define A\n#include <a.h>\n#import <b.h>\n\n#include <c.h>\n"
    assert leading_includes(text) == "#define A\n#include <a.h>\n#import <b.h>\n"
    assert leading_includes("int x;\n#include <a.h>\n") == ""


def test_files_that_begin_alike_share_a_header(headers: PrecompiledHeaders, tmp_path: Path) -> None:
    flags = ["-x", "objective-c++", "-DTORCH_EXTENSION_NAME=one"]
    first = headers.find(f"{BEGINNING}\nint one;\n", flags, ())
    assert first is not None
    assert first.read_text() == BEGINNING
    assert "objective-c++-header" in runs[0]
    others = ["-x", "objective-c++", "-DTORCH_EXTENSION_NAME=two", "-I", str(tmp_path / "own")]
    assert headers.find(f"{BEGINNING}\nint two;\n", others, [tmp_path / "own"]) == first
    assert len(runs) == 1
    assert headers.find(f"{BEGINNING}\nint two;\n", [*others, "-O2"], ()) != first


@pytest.mark.parametrize("language", ["c++", "objective-c++"])
def test_a_file_of_each_language_can_begin_with_its_header(tmp_path: Path, language: str) -> None:
    (tmp_path / "one.h").write_text("#pragma once\ninline int one() { return 1; }\n")
    (tmp_path / "file.cpp").write_text("#include <one.h>\n\nint two() { return one() + one(); }\n")
    flags = ["--target=x86_64-linux-gnu", "-x", language, "-nostdinc", "-isystem", str(tmp_path)]
    clang = installed()
    header = PrecompiledHeaders(clang, tmp_path / "pch", "").find((tmp_path / "file.cpp").read_text(), flags, ())
    done = clang.run("clang", *flags, "-include-pch", str(header), "-fsyntax-only", str(tmp_path / "file.cpp"))
    assert done.succeeded, done.stderr


def test_an_empty_header_that_another_process_left_is_built_again(headers: PrecompiledHeaders) -> None:
    first = headers.find(BEGINNING, [], ())
    assert first is not None
    first.write_text("")
    assert headers.find(BEGINNING, [], ()) == first
    assert first.read_text() == BEGINNING
    assert len(runs) == 2


def test_old_headers_go_and_no_process_reads_half_of_one(headers: PrecompiledHeaders) -> None:
    first, second = [headers.find(f"#include <a{number}>\n", [], ()) for number in range(26)][:2]
    assert first is not None
    assert second is not None
    assert first.exists()  # found a moment ago
    os.utime(first, (0, 0))
    assert headers.find("#include <b>\n", [], ())
    assert not first.exists()
    assert not first.with_suffix(".h").exists()
    assert first.with_suffix(".lock").exists()
    second.with_suffix(".h").unlink()  # clang would say: please rebuild precompiled file
    assert headers.find("#include <a1>\n", [], ()) == second
    assert second.with_suffix(".h").exists()


def test_an_own_folder_counts_where_an_include_is_found_in_it(headers: PrecompiledHeaders, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "vector").write_text("")
    with_own = headers.find(BEGINNING, ["-x", "objective-c++", "-I", str(own)], [own])
    assert with_own != headers.find(BEGINNING, ["-x", "objective-c++"], ())


def test_includes_that_do_not_compile_are_left_to_the_file_itself(headers: PrecompiledHeaders, tmp_path: Path) -> None:
    assert headers.find("#include <missing.h>\n", ["-x", "c++"], ()) is None
    assert headers.find("int x;\n", ["-x", "c++"], ()) is None
    assert len(runs) == 1


def test_files_that_are_compiled_at_once_share_one_header(headers: PrecompiledHeaders) -> None:
    before = len(runs)
    with ThreadPoolExecutor(8) as threads:
        paths = list(threads.map(lambda _: headers.find("#include <set>\n", [], ()), range(8)))
    assert len(set(paths)) == 1
    assert paths[0] is not None
    assert len(runs) == before + 1
