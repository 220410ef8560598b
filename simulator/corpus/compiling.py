"""Compiles the programs of a project, and says of each whether it was accepted, and if not, why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..metal import check
from .projects import Project

# Rules of what the host has nothing for; a Mac has.
_HAS_NOTHING_FOR = ("not-supported", "no-textures")

# "own mistake": the file is not Metal, as the list of projects says; it is right to refuse it.
Standing = Literal["accepted", "refused", "not supported", "own mistake"]


@dataclass(frozen=True)
class CompiledFile:
    """How a program fared: `reason` is its first error, empty where there is none."""

    project: str
    version: str
    file: str
    standing: Standing
    reason: str


def compile_project(project: Project, tree: Path) -> Iterator[CompiledFile]:
    """A result for each program, in the order of their names."""
    root = tree / project.root
    for source in project.sources(tree):
        found = check(
            source.text, source.file, strict=False, include=project.include_folders(tree), defines=project.define
        )
        first = next((d for d in found if d.severity == "error"), None)
        standing: Standing = "accepted" if first is None else "refused"
        if first is not None and first.rule in _HAS_NOTHING_FOR:
            standing = "not supported"
        reason = "" if first is None else f"{Path(first.file).name}:{first.line}: {first.message}"
        file = str(source.file.relative_to(root))
        if standing == "refused" and file in project.mistakes:
            standing, reason = "own mistake", f"{reason}; {project.mistakes[file]}"
        yield CompiledFile(project.name, project.version, file, standing, reason)
