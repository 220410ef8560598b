"""`mpsmith check` where there is nothing to compile with: what it can still do, and what it says."""

from __future__ import annotations

import subprocess
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path

import pytest

from mpsmith.cli import app
from mpsmith.scaffold.errors import ToolchainError
from mpsmith.scaffold.proof import metal_sources, setup
from mpsmith.simulator.clang import CompilerMissingError
from support.commands import refusal, typed
from support.json_document import documented
from support.needs import needs_metal_on_host

checked = partial(typed, app, "check")
refused = partial(refusal, app, "check")
METAL = """\
#include <metal_stdlib>
using namespace metal;
kernel void twice(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] = x[i] * FACTOR; }
"""


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MPSMITH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_without_a_toolchain_it_says_which_command_fetches_it(tmp_path: Path) -> None:
    (tmp_path / "a.mm").write_text("int x;\n")
    message = refused(str(tmp_path / "a.mm"), "--torch", "2.15.0")
    assert "the checker lacks" in message
    assert "the macOS build of torch 2.15.0" in message
    assert "mpsmith check --setup --torch 2.15.0" in message


@pytest.mark.parametrize(
    ("name", "message"),
    [("gone.mm", "no file or folder"), ("a.py", "this kind of file; .mm, .cpp, .metal, .metallib, .patch can")],
)
def test_rejects_other_files(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "a.py").write_text("")
    assert message in refused(str(tmp_path / name))


def test_rejects_a_folder_with_nothing_to_check(tmp_path: Path) -> None:
    assert "has no .mm" in refused(str(tmp_path))


def test_rejects_a_command_without_a_path() -> None:
    assert "give a file or folder to check, or --setup" in refused()


def test_metal_needs_no_macos_toolchain(tmp_path: Path) -> None:
    needs_metal_on_host()
    (tmp_path / "good.metal").write_text(METAL.replace("FACTOR", "2.0f"))
    (tmp_path / "wrong.metal").write_text(METAL.replace("FACTOR", "factor"))
    done = checked(str(tmp_path))
    assert done.exit_code == 1
    assert "good.metal: ok (metal)" in done.output
    assert "wrong.metal:3:" in done.output
    assert (
        "1 accepted, 1 refused. Checked by compiling and linking only: nothing was loaded or run on a Mac."
        in done.output
    )


def test_json_has_the_same_findings(tmp_path: Path) -> None:
    needs_metal_on_host()
    (tmp_path / "wrong.metal").write_text(METAL.replace("FACTOR", "factor"))
    done = checked("--json", str(tmp_path / "wrong.metal"))
    data = documented("check", done.stdout)
    assert data["note"].endswith("nothing was loaded or run on a Mac.")
    (file,) = data["files"]
    assert (file["accepted"], file["steps"]) == (False, ["metal"])
    assert (file["findings"][0]["line"], file["findings"][0]["severity"]) == (3, "error")


def test_an_unchanged_file_is_answered_from_the_cache(tmp_path: Path) -> None:
    needs_metal_on_host()
    file = tmp_path / "a.metal"
    file.write_text(METAL.replace("FACTOR", "2.0f"))
    assert "cache" not in checked(str(file)).output
    assert "unchanged: answered from the cache" in checked(str(file)).output
    file.write_text(METAL.replace("FACTOR", "3.0f"))
    assert "cache" not in checked(str(file)).output


def test_without_a_compiler_nothing_is_called_ok(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise CompilerMissingError("no compiler here")

    monkeypatch.setattr(metal_sources, "check", missing)
    monkeypatch.setattr(metal_sources, "check_key", missing)
    (tmp_path / "a.metal").write_text(METAL.replace("FACTOR", "2.0f"))
    done = checked(str(tmp_path))
    assert done.exit_code == 1
    assert "a.metal: not checked (nothing could be done)" in done.output
    assert "0 accepted, 0 refused, 1 not checked." in done.output


def test_no_network_is_one_clear_line(monkeypatch: pytest.MonkeyPatch, empty_cache: Path) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise urllib.error.URLError("no route to host")

    monkeypatch.setattr(urllib.request, "urlopen", unreachable)
    with pytest.raises(ToolchainError, match=r"no route to host.*check the network"):
        setup._download("https://registry.npmjs.org/x")


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("WARNING: Retrying: NewConnectionError\nERROR: No matching distribution found for x==1", "check the network$"),
        ("ERROR: No matching distribution found for x==1", "has no such package; check the network and pip's index$"),
        ("ERROR: something else", "^cannot fetch x==1: something else$"),
    ],
)
def test_errors_of_pip_become_one_line(monkeypatch: pytest.MonkeyPatch, output: str, message: str) -> None:
    done = subprocess.CompletedProcess([], 1, "", output)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    with pytest.raises(ToolchainError, match=message) as caught:
        setup._pip("download", "x==1")
    assert "\n" not in str(caught.value)


def test_a_changed_package_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(setup, "_download", lambda _: b"something else")
    with pytest.raises(ToolchainError, match="its checksum differs"):
        setup._make_mps(tmp_path, print)


def test_an_interrupted_set_up_leaves_nothing_that_looks_finished(empty_cache: Path) -> None:
    empty_cache.mkdir()
    building = setup._new_folder(empty_cache / "apple")
    (building.__enter__() / "Metal.h").write_text("half")
    interrupt = KeyboardInterrupt()
    assert not building.__exit__(KeyboardInterrupt, interrupt, None)
    assert list(empty_cache.iterdir()) == []


def test_the_version_of_metal_decides(tmp_path: Path) -> None:
    needs_metal_on_host()
    file = tmp_path / "lambda.metal"
    file.write_text(METAL.replace("x[i] * FACTOR", "[](float y) { return y + 1; }(x[i])"))
    assert "Metal 3.1 has no lambda expressions" in checked(str(file)).output
    assert checked(str(file), "--metal", "3.2").exit_code == 0
    assert checked(str(file), "--metal", "3.1").exit_code == 1
    assert "--metal 5.0: give one of 3.1, 3.2, 4.0" in refused(str(file), "--metal", "5.0")
