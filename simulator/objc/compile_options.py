"""Parses the compiler options of an extension, as torch's builder and setup.py pass them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

# Options for macOS that take a value.
_MACOS_OPTIONS = ("-framework", "-arch", "-target", "-isysroot")
# Options for Apple's processors, its compiler's libraries and its linker. Host code is not optimized here, and has no
# OpenMP, which Apple's clang takes behind one of _PREFIXES.
_LEFT_OUT = ("-mmacosx-version-min", "-mcpu=", "-march=", "-mtune=", "-stdlib=", "-ObjC", "-flto", "-O", "-l", "-L")
# Modules of frameworks, which #import brings in here: with a precompiled header clang writes no object file for them.
_MODULES = ("-fmodules", "-fcxx-modules")
_OPENMP = "-fopenmp"
_PREFIXES = ("-Xpreprocessor", "-Xclang")


@dataclass(frozen=True)
class CompileOptions:
    """Compiler options by kind. `arc` is None by default."""

    arc: bool | None = None
    include: tuple[Path, ...] = ()
    definitions: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    def including(self, folders: Iterable[str | Path]) -> CompileOptions:
        """The same options with more include folders."""
        return replace(self, include=(*self.include, *(Path(folder) for folder in folders)))

    def from_folder(self, folder: Path) -> CompileOptions:
        """The same options with include folders that are relative to a folder."""
        return replace(self, include=tuple(folder / path for path in self.include))


NO_OPTIONS = CompileOptions()


def parse_options(flags: Sequence[str]) -> CompileOptions:
    """Parse the flags of a compiler's command line."""
    arc: bool | None = None
    include: list[Path] = []
    definitions: list[str] = []
    others: list[str] = []
    remaining = iter(flags)
    for flag in remaining:
        if flag in ("-fobjc-arc", "-fno-objc-arc"):
            arc = flag == "-fobjc-arc"
        elif flag in _MACOS_OPTIONS:
            next(remaining, None)
        elif flag.startswith((*_LEFT_OUT, *_MODULES, _OPENMP)):
            others = others[:-1] if others and others[-1] in _PREFIXES else others
        elif flag[:2] == "-I":
            include.append(Path(flag[2:] or next(remaining, ".")))
        elif flag[:2] == "-D":
            definitions.append(flag[2:] or next(remaining, ""))
        else:
            others.append(flag)
    return CompileOptions(arc, tuple(include), tuple(definitions), tuple(others))
