"""One process compiles many files as so many processes do, and what it refuses costs the others nothing."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from mpsmith.simulator.clang import CompilerStream, Limits, installed
from support.needs import needs_metal_on_host

needs_metal_on_host()

TARGET = ("-triple", "x86_64-unknown-linux-gnu", "-Wno-override-module")
LIMITS = Limits(seconds=60, memory=4 << 30)


def function(number: int) -> bytes:
    return f'source_filename = "f"\ndefine i32 @f{number}() {{\n  ret i32 {number}\n}}\n'.encode()


def stream(*flags: str, limits: Limits = LIMITS) -> CompilerStream:
    return CompilerStream(installed(), (*TARGET, *flags), limits)


def test_objects_equal_those_of_separate_processes(tmp_path: Path) -> None:
    objects = stream("-emit-obj")
    source, unit = tmp_path / "source.ll", tmp_path / "unit.o"
    for number in (1, 2, 3):
        source.write_bytes(function(number))
        flags = (*TARGET, "-emit-obj", "-x", "ir", str(source), "-o", str(unit))
        assert installed().run("clang", "-cc1", *flags).succeeded
        assert objects.object_file(function(number)) == unit.read_bytes()


def test_a_process_that_has_read_all_its_inputs_is_followed_by_another() -> None:
    texts = stream("-emit-llvm", "-disable-llvm-passes")
    for number in range(60):
        text = texts.assembly(function(number))
        assert text is not None
        assert text.startswith("; ModuleID")
        assert [line for line in text.splitlines() if "define" in line] == [f"define i32 @f{number}() {{"]


@pytest.mark.parametrize("source", [b"define i32 @f(", b"BC\xc0\xde" + bytes(64)])
def test_a_refused_file_does_not_affect_the_next(source: bytes) -> None:
    objects, texts = stream("-emit-obj"), stream("-emit-llvm", "-disable-llvm-passes")
    assert objects.object_file(source) is None
    assert texts.assembly(source) is None
    assert objects.object_file(function(1)) is not None
    assert "@f1" in (texts.assembly(function(1)) or "")


def test_a_process_that_was_ended_is_followed_by_another() -> None:
    objects = stream("-emit-obj")
    first = objects.object_file(function(1))
    assert objects._process is not None
    os.kill(objects._process.pid, signal.SIGKILL)
    assert objects.object_file(function(1)) in (None, first)
    assert objects.object_file(function(1)) == first


def test_a_compilation_that_takes_too_long_is_stopped() -> None:
    assert stream("-emit-obj", limits=Limits(seconds=0.0001, memory=4 << 30)).object_file(function(1)) is None
