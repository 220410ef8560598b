"""Includes that a Mac's file system finds although their case is another."""

from __future__ import annotations

from pathlib import Path

from mpsmith.simulator.clang.letter_case import forward_includes


def test_an_include_in_another_case_is_forwarded_with_a_warning(tmp_path: Path) -> None:
    header = tmp_path / "include" / "ATen" / "mps" / "Stream.h"
    header.parent.mkdir(parents=True)
    header.touch()
    text = "#include <string>\n#include <ATEN/mps/stream.h>\n  #import <ATen/mps/Stream.h>\n#include <ATen/gone.h>\n"
    flags = ["-x", "c++", "-isystem", str(tmp_path / "include")]
    (warning,) = forward_includes(tmp_path / "a.mm", text, flags, tmp_path / "out")
    assert (warning.line, warning.severity, warning.rule) == (2, "warning", "letter-case")
    assert warning.message.startswith("<ATEN/mps/stream.h> is ATen/mps/Stream.h: ")
    assert [path.relative_to(tmp_path / "out") for path in (tmp_path / "out").rglob("*.h")] == [
        Path("ATEN/mps/stream.h")
    ]
    assert str(header) in (tmp_path / "out" / "ATEN" / "mps" / "stream.h").read_text()
