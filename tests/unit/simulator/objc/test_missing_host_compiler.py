"""Where Objective-C++ cannot be compiled: what is missing, and what brings it."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from mpsmith.simulator.clang import CompilerMissingError
from mpsmith.simulator.errors import ExtensionError
from mpsmith.simulator.objc import compiler


@pytest.fixture(autouse=True)
def linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")


def test_missing_declarations_are_fetched_by_a_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(compiler, "apple_folder", lambda: tmp_path / "nothing")
    with pytest.raises(ExtensionError, match="fetch them once with: mpsmith check --setup"):
        compiler.host_compiler(torch=False)


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def nothing() -> None:
        raise CompilerMissingError("no compiler here")

    monkeypatch.setattr(compiler, "apple_folder", lambda: tmp_path)
    monkeypatch.setattr(compiler, "installed", nothing)
    with pytest.raises(CompilerMissingError, match="no compiler here"):
        compiler.host_compiler(torch=False)


def test_another_system_has_its_own_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    with pytest.raises(ExtensionError, match="on a Mac, use its own compiler"):
        compiler.host_compiler(torch=False)
