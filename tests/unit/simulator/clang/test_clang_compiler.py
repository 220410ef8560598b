"""Finding the compiler and running it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mpsmith.simulator.clang import Clang, CompilerLimitError, CompilerMissingError, Limits, installed, locate, messages
from mpsmith.simulator.clang.compiler import PLAIN_MESSAGES


def package(folder: Path, version: str, content: bytes = b"zig") -> Path:
    """What pip leaves of a ziglang package in a folder."""
    (folder / f"ziglang-{version}.dist-info").mkdir(parents=True)
    (folder / "ziglang").mkdir()
    (folder / "ziglang" / "zig").write_bytes(content)
    return folder / "ziglang"


def test_a_fetched_compiler_serves_where_none_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ziglang", None)
    fetched = package(tmp_path, "0.17.0")
    assert locate() is None
    assert locate([tmp_path / "gone", fetched]) == Clang(fetched)
    with pytest.raises(CompilerMissingError, match=r"pip install 'mpsmith\[metal\]'"):
        installed()


def test_another_compiler_is_another_identity(tmp_path: Path) -> None:
    first = Clang(package(tmp_path / "a", "0.17.0"))
    assert first.version == "0.17.0"
    assert first.identity == Clang(package(tmp_path / "b", "0.17.0")).identity
    assert first.identity != Clang(package(tmp_path / "c", "0.18.0")).identity
    assert first.identity != Clang(package(tmp_path / "d", "0.17.0", b"another")).identity


def test_a_program_that_does_not_start_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(CompilerMissingError, match="does not start"):
        Clang(package(tmp_path, "0.17.0")).run("clang", "--version")


def test_a_program_that_never_ends_uses_up_its_processor_time(tmp_path: Path) -> None:
    spinning = package(tmp_path, "0.17.0", b"#!/bin/sh\nwhile :; do :; done\n")
    (spinning / "zig").chmod(0o755)
    with pytest.raises(CompilerLimitError, match="more than 1 s of processor time"):
        Clang(spinning).run("clang", limits=Limits(seconds=3600, memory=1 << 30, processor_seconds=1))


def test_source_from_standard_input_and_its_messages() -> None:
    pytest.importorskip("ziglang")
    done = installed().run(
        "clang", "-x", "c", "-fsyntax-only", *PLAIN_MESSAGES, "-", source="int f(void) { return x; }"
    )
    assert not done.succeeded
    (message,) = messages(done.stderr)
    assert (message.line, message.severity, message.text) == (1, "error", "use of undeclared identifier 'x'")
