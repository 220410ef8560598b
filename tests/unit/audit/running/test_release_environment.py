"""An environment with another release: what pip is asked for, what is kept, and what a refusal leaves behind."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from mpsmith.audit.releases.wheel.errors import WheelError
from mpsmith.audit.running import release_environment
from mpsmith.audit.running.release_environment import audit_again, python_with, without_release
from mpsmith.cache import PACKAGE
from mpsmith.errors import MpsmithError

Commands = list[list[str]]


def make_empty(folder: Path, with_pip: bool) -> None:
    assert with_pip
    (folder / "bin").mkdir(parents=True)
    (folder / "lib" / "python3.11" / "site-packages").mkdir(parents=True)


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    """What was run; no environment is really made, and pip is content."""
    ran: Commands = []

    def run(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        ran.append(list(command))
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setenv("MPSMITH_CACHE", str(tmp_path))
    monkeypatch.setattr(release_environment.venv, "create", make_empty)
    monkeypatch.setattr(release_environment.subprocess, "run", run)
    monkeypatch.setattr(release_environment, "requires", lambda name: ["torch>=2.7", "numpy", 'mypy; extra == "dev"'])
    monkeypatch.setattr(release_environment, "version", lambda name: "1.2.3")
    return ran


@pytest.fixture
def refusing(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Lets pip refuse with a text."""

    def refuse(text: str) -> None:
        refused = subprocess.CompletedProcess([], 1, "", text)
        monkeypatch.setattr(release_environment.subprocess, "run", lambda *_, **__: refused)

    return refuse


def test_pip_installs_the_release_and_the_versions_that_are_here(commands: Commands) -> None:
    python = python_with("2.15.0", lambda text: None)
    ((asked, *arguments),) = commands
    assert asked == str(python)
    assert arguments[-4:] == ["torch==2.15.0", "numpy==1.2.3", "scipy==1.2.3", "ziglang==1.2.3"]
    (link,) = python.parent.parent.glob("lib/*/site-packages/mpsmith")
    assert link.resolve() == PACKAGE.resolve()


@pytest.mark.parametrize(
    ("system", "variable", "is_said"),
    [
        ("linux", "PIP_NO_INPUT", True),
        ("linux", "PIP_EXTRA_INDEX_URL", False),
        ("linux", "PIP_INDEX_URL", False),
        ("darwin", "PIP_NO_INPUT", False),
    ],
)
def test_where_gigabytes_of_cuda_would_come_along_it_is_said_before(
    system: str, variable: str, is_said: bool, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, "https://example.org")
    monkeypatch.setattr(release_environment.sys, "platform", system)
    said: list[str] = []
    python_with("2.15.0", lambda text: said.append(text) if not commands else None)
    assert any("PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu" in text for text in said) is is_said


def test_what_was_made_is_kept_until_something_else_is_wanted(
    commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        python_with("2.15.0", lambda text: None)
    assert len(commands) == 1
    monkeypatch.setattr(release_environment, "version", lambda name: "4.5.6")
    python_with("2.15.0", lambda text: None)
    assert len(commands) == 2


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("ERROR: No matching distribution found for torch==2.99.0", "the index has no torch 2.99.0 for this Python"),
        ("OSError: [Errno 28] No space left on device", "the disk is full; set MPSMITH_CACHE"),
        ("NewConnectionError: Failed to establish a new connection", "check the network"),
    ],
)
def test_a_refusal_is_one_line_and_leaves_nothing(
    refusing: Callable[[str], None], said: str, message: str, tmp_path: Path
) -> None:
    refusing(said)
    with pytest.raises(MpsmithError, match=f"cannot make an environment with torch 2.99.0: .*{message}"):
        python_with("2.99.0", lambda text: None)
    assert [path.name for path in (tmp_path / "environments").iterdir() if path.is_dir()] == []


def test_a_cache_that_refuses_says_where_else(commands: Commands, tmp_path: Path) -> None:
    (tmp_path / "environments").touch()
    with pytest.raises(MpsmithError, match="set MPSMITH_CACHE to a folder on another disk"):
        python_with("2.15.0", lambda text: None)


def test_what_is_no_release_is_asked_of_nobody(commands: Commands) -> None:
    with pytest.raises(WheelError, match="is no version of torch"):
        python_with("../2.15.0", lambda text: None)
    assert commands == []


@pytest.mark.parametrize("given", [["--release", "2.15.0"], ["--release=2.15.0"]])
def test_the_command_runs_again_without_the_option(given: list[str]) -> None:
    assert without_release(["audit", *given, "--compile"]) == ["audit", "--compile"]


def test_the_other_python_answers_with_its_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules that only this process sees would be the wrong torch."""
    (tmp_path / "mpsmith").mkdir()
    (tmp_path / "mpsmith" / "__init__.py").touch()  # or the real one is found before it
    (tmp_path / "mpsmith" / "__main__.py").write_text(
        "import os, sys\nright = sys.argv[1:] == ['audit', '--compile'] and 'PYTHONPATH' not in os.environ\n"
        "sys.exit(7 if right else 1)\n"
    )
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    monkeypatch.chdir(tmp_path)
    assert audit_again(Path(sys.executable), ["audit", "--compile", "--release", "2.15.0"]) == 7
