"""Compiles the sources of a project."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mpsmith.simulator.metal import METAL_VERSIONS, MetalVersion, check

from .projects import Project

# The rule for what a Mac has and the simulator lacks.
_UNSUPPORTED = "not-supported"

# "own mistake": the file is not valid Metal, as the list of projects says.
Result = Literal["accepted", "refused", "not supported", "own mistake"]


@dataclass(frozen=True)
class CompiledFile:
    """The result of compiling a file; `reason` is its first error, or empty."""

    project: str
    version: str
    file: str
    result: Result
    reason: str


def compile_project(project: Project, tree: Path, metal: MetalVersion | None = None) -> Iterator[CompiledFile]:
    """A result for each source, in the order of the names; with `metal`, of the strict check for this version."""
    root = tree / project.root
    for source in project.sources(tree):
        diagnostics = check(
            source.text,
            source.file,
            strict=metal is not None,
            metal=metal or METAL_VERSIONS[0],
            include=project.include_folders(tree),
            defines=project.define,
        )
        error = next((d for d in diagnostics if d.severity == "error"), None)
        file = str(source.file.relative_to(root))
        result: Result = "accepted" if error is None else "refused"
        reason = "" if error is None else f"{Path(error.file).name}:{error.line}: {error.message}"
        if error is not None and error.rule == _UNSUPPORTED:
            result = "not supported"
        elif error is not None and file in project.mistakes:
            result, reason = "own mistake", f"{reason}; {project.mistakes[file]}"
        yield CompiledFile(project.name, project.version, file, result, reason)
