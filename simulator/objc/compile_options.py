"""The options with which an extension asks to be compiled, as torch's builder and setup.py pass them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

# Those for a Mac alone, with a value behind them.
_OF_MACS = ("-framework", "-arch", "-target")


@dataclass(frozen=True)
class CompileOptions:
    """Options by what they are for. `arc` is None where nothing was asked for."""

    arc: bool | None
    include: tuple[Path, ...]
    definitions: tuple[str, ...]
    others: tuple[str, ...]

    def including(self, folders: Iterable[str | Path]) -> CompileOptions:
        """The same with more folders to search."""
        return replace(self, include=(*self.include, *(Path(folder) for folder in folders)))


def options_of(flags: Sequence[str]) -> CompileOptions:
    """Sort the flags of a compiler's command line."""
    arc: bool | None = None
    include: list[Path] = []
    definitions: list[str] = []
    others: list[str] = []
    waiting = iter(flags)
    for flag in waiting:
        if flag in ("-fobjc-arc", "-fno-objc-arc"):
            arc = flag == "-fobjc-arc"
        elif flag in _OF_MACS:
            next(waiting, None)
        elif flag.startswith("-mmacosx-version-min"):
            continue
        elif flag[:2] == "-I":
            include.append(Path(flag[2:] or next(waiting, ".")))
        elif flag[:2] == "-D":
            definitions.append(flag[2:] or next(waiting, ""))
        else:
            others.append(flag)
    return CompileOptions(arc, tuple(include), tuple(definitions), tuple(others))
