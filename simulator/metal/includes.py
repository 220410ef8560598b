"""`#include` of torch's own Metal headers, embedded as torch does it; line markers keep the place of errors."""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PROGRAM = "program_source"
"""What Apple's compiler calls source that comes from a string."""

_INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')


@dataclass(frozen=True)
class EmbeddedSource:
    """One text with all headers in it; `lines` has the lines of each file by the name used in its markers."""

    text: str
    lines: dict[str, list[str]]


@functools.cache
def torch_include() -> Path | None:
    """The include folder of the installed torch, found without importing it."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations))) / "include"


def include_folders(filename: str | Path | None, more: Sequence[Path] = ()) -> list[Path]:
    """Where `#include` looks: beside the file, in `more`, in torch's headers."""
    beside = [Path(filename).parent] if filename else []
    torch_folder = torch_include()
    return [*beside, *more, *([torch_folder] if torch_folder else [])]


def embed(source: str, name: str = PROGRAM, folders: Sequence[Path] = ()) -> EmbeddedSource:
    """Replaces each `#include` that is found in `folders` by the file, once; the others stay."""
    lines: dict[str, list[str]] = {}
    parts: list[str] = []
    _embed(source, name, folders, lines, parts)
    return EmbeddedSource("".join(parts), lines)


def _embed(source: str, name: str, folders: Sequence[Path], lines: dict[str, list[str]], parts: list[str]) -> None:
    content = source.split("\n")
    lines[name] = content
    parts.append(f'# 1 "{name}"\n')
    for number, line in enumerate(content, 1):
        include = _INCLUDE.match(line)
        if include is None:
            parts.append("\n" if line.startswith("#pragma once") else line + "\n")
            continue
        path = next((p for folder in folders if (p := folder / include[1]).is_file()), None)
        if path is None:
            parts.append(line + "\n")
        elif include[1] in lines:
            parts.append("\n")
        else:
            _embed(path.read_text(encoding="utf-8"), include[1], folders, lines, parts)
            parts.append(f'# {number + 1} "{name}"\n')
