"""The default folder of a scaffold: a clone's own folders, its ignored `work/`, or a new folder here."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mpsmith.scaffold.generation import destination
from mpsmith.scaffold.generation.destination import destination_of
from mpsmith.scaffold.targets import KernelTarget

FREXP: Any = SimpleNamespace(stem="frexp", full_name="aten::frexp")


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone, and the current folder inside it."""
    clone = tmp_path / "clone"
    (clone / "docs").mkdir(parents=True)
    (clone / "pyproject.toml").touch()
    monkeypatch.setattr("mpsmith.cache.PACKAGE", clone)
    monkeypatch.setattr(destination, "PACKAGE", clone)
    monkeypatch.chdir(clone / "docs")
    return clone


def test_kernels_for_mpsmith_go_into_its_folders(clone: Path) -> None:
    assert destination_of(FREXP, KernelTarget.SHADER, None).in_package


def test_a_second_kernel_does_not_go_over_a_finished_family(clone: Path) -> None:
    (clone / "kernels" / "frexp").mkdir(parents=True)
    assert destination_of(FREXP, KernelTarget.SHADER, None).folder == clone / "work" / "frexp_shader"


@pytest.mark.parametrize("target", [KernelTarget.EXTENSION, KernelTarget.UPSTREAM])
def test_targets_without_a_place_in_a_clone_go_to_an_ignored_folder(clone: Path, target: KernelTarget) -> None:
    assert destination_of(FREXP, target, None).folder == clone / "work" / f"frexp_{target.value}"
    ignored = (Path(__file__).parents[4] / ".gitignore").read_text().splitlines()
    assert "/work/" in ignored


def test_outside_a_clone_it_is_a_new_folder_here(clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert destination_of(FREXP, KernelTarget.EXTENSION, None).folder == tmp_path / "frexp_extension"
    (clone / "pyproject.toml").unlink()  # installed
    assert destination_of(FREXP, KernelTarget.SHADER, None).folder == tmp_path / "frexp_shader"


def test_the_folder_that_was_asked_for_is_taken(clone: Path, tmp_path: Path) -> None:
    assert destination_of(FREXP, KernelTarget.SHADER, tmp_path / "own").folder == tmp_path / "own"
