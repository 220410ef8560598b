"""The includes of a program: embedded as torch does it, or resolved by the preprocessor.

torch replaces each `#include` of its headers by the file, once, without a preprocessor. `compile_shader` takes such
source. A file of an Xcode project goes through the preprocessor: a header may be included twice, or in one of two
branches.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...cache import fingerprint
from .function_constants import Constant

PROGRAM = "program_source"
"""The file name of source from a string in messages of Apple's compiler."""

_BYTE_ORDER_MARK = "\ufeff"
_INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')
_PLACE = re.compile(r'^(#[ ]\d+[ ]"|)(/[^"\n:]+)(?=[":])', re.MULTILINE)


@dataclass(frozen=True)
class ProgramSource:
    """A program with its includes.

    Attributes:
        text: the program, with a line marker in front and embedded headers.
        lines: the lines of each file, by its name in messages.
        folders: search paths for headers that are not embedded.
        defines: macros, as `NAME` or `NAME=VALUE`.
        paths: the files that the preprocessor may read, each with its name in messages.
        constants: values of function constants.
    """

    text: str
    lines: dict[str, list[str]]
    folders: tuple[Path, ...] = ()
    defines: tuple[str, ...] = ()
    paths: tuple[tuple[str, str], ...] = ()
    constants: tuple[Constant, ...] = ()

    @functools.cached_property
    def identity(self) -> str:
        """Changes with the program, its headers and its macros."""
        headers = [part for _, name in self.paths for part in (name, *self.lines[name])]
        constants = [part for c in self.constants for part in (str(c.index), c.name, c.value)]
        return fingerprint(self.text, *self.defines, "", *constants, "", *headers)

    def name_files(self, preprocessed: str) -> str:
        """Output or messages of the preprocessor with the file names of `paths`."""
        names = dict(self.paths)

        def named(match: re.Match[str]) -> str:
            return match[1] + names.get(os.path.normpath(match[2]), match[2])

        return _PLACE.sub(named, preprocessed) if names else preprocessed


@functools.cache
def torch_include() -> Path | None:
    """The include folder of the installed torch, found without importing it."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations))) / "include"


def include_folders(filename: str | Path | None, more: Sequence[Path] = ()) -> list[Path]:
    """Search paths of `#include`: the file's folder, `more`, torch's headers."""
    beside = [Path(filename).parent] if filename else []
    torch_folder = torch_include()
    return [*beside, *more, *([torch_folder] if torch_folder else [])]


# ---------------------------------------------------------------------------------------------- by the preprocessor
def with_includes(
    source: str, filename: str | Path | None = None, include: Sequence[Path] = (), defines: Sequence[str] = ()
) -> ProgramSource:
    """The program with every file that its includes may reach; the preprocessor chooses among them.

    `filename`: the file of the program, for messages and `#include`; `include`: more folders. See `include_folders`.
    """
    name = str(filename) if filename else PROGRAM
    source = source.removeprefix(_BYTE_ORDER_MARK)
    lines = {name: source.split("\n")}
    absolute = tuple(folder.absolute() for folder in include_folders(filename, include))
    paths: dict[str, str] = {}
    waiting: list[tuple[str, Path | None]] = [(source, None)] if absolute else []
    while waiting:
        text, beside = waiting.pop()
        for line in text.split("\n"):
            match = _INCLUDE.match(line)
            path = _found(match[1], ([beside] if beside else []) + list(absolute)) if match else None
            if match is None or path is None or path in paths:
                continue
            paths[path] = match[1] if match[1] not in lines else path
            header = Path(path).read_text(encoding="utf-8-sig", errors="replace")
            lines[paths[path]] = header.split("\n")
            waiting.append((header, Path(path).parent))
    marked = f'# 1 "{name}"\n{source}'
    return ProgramSource(marked, lines, absolute, tuple(defines), tuple(sorted(paths.items())))


def _found(include: str, folders: Sequence[Path]) -> str | None:
    return next((os.path.normpath(p) for folder in folders if (p := folder / include).is_file()), None)


# ---------------------------------------------------------------------------------------------- as torch embeds them
def embed(source: str, name: str = PROGRAM, folders: Sequence[Path] = ()) -> ProgramSource:
    """Replace each `#include` of a file in `folders` by the file, once; others stay."""
    lines: dict[str, list[str]] = {}
    parts: list[str] = []
    _embed(source, name, folders, lines, parts)
    return ProgramSource("".join(parts), lines)


def _embed(source: str, name: str, folders: Sequence[Path], lines: dict[str, list[str]], parts: list[str]) -> None:
    content = source.removeprefix(_BYTE_ORDER_MARK).split("\n")
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
