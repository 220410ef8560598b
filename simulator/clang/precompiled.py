"""Precompiled headers: the `#include <...>` lines at the top of a file, read once for all files that begin alike."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...fingerprint import fingerprint
from .compiler import Clang

_INCLUDED = re.compile(r"#\s*(?:include|import)\s*<([^>]+)>")
_PREFIX_LINE = re.compile(r"^\s*(#\s*(define|include\s*<|import\s*<).*|//.*)?$")
# Most of what a file costs beyond its headers' syntax are the templates that they instantiate: do that once, too.
_PRECOMPILING = ("-Xclang", "-fpch-instantiate-templates")
# Every extension has another name, which no header uses before its own PYBIND11_MODULE.
_NAME_OF_EXTENSION = "-DTORCH_EXTENSION_NAME="
_KEPT_HEADERS = 24  # of 25 to 85 MB each


@dataclass(frozen=True)
class PrecompiledHeaders:
    """The precompiled headers in a folder.

    Attributes:
        clang: builds them.
        folder: where they are kept: those that were used last.
        identity: changes with the compiler and with the headers that it reads.
    """

    clang: Clang
    folder: Path
    identity: str

    def header_for(self, text: str, flags: Sequence[str], include: Sequence[Path], scratch: Path) -> Path | None:
        """The precompiled header for a file, built if need be; None where its includes do not compile.

        `text`: the file. `flags`: those that it is compiled with, `include`: the folders among them that are its own.
        `scratch`: gets what is only half done.
        """
        prefix = leading_includes(text)
        if not prefix:
            return None
        flags = [flag for flag in flags if not flag.startswith(_NAME_OF_EXTENSION)]
        if not any((place / name).is_file() for place in include for name in _INCLUDED.findall(prefix)):
            flags = [flag for flag in flags if flag not in {"-I", *map(str, include)}]
        key = fingerprint(self.identity, *_PRECOMPILING, *flags, prefix)
        target = self.folder / f"{key}.pch"
        if target.is_file():
            target.touch()  # what was used last is kept
            return target
        header = self.folder / f"{key}.h"
        header.parent.mkdir(parents=True, exist_ok=True)
        header.write_text(prefix)
        built = scratch / "prefix.pch"
        as_header = [f"{flag}-header" if flag in ("objective-c++", "c++") else flag for flag in flags]
        done = self.clang.run("clang", *as_header, "-w", *_PRECOMPILING, "-c", str(header), "-o", str(built))
        if not done.succeeded:
            return None  # compiling the file itself says what is wrong, at its own lines
        built.replace(target)
        _keep_newest(self.folder)
        return target


def leading_includes(text: str) -> str:
    """The `#define` and `#include <...>` lines with which a file begins; empty when it begins with something else.

    The first empty line after an include ends them: what follows may differ between files that begin alike.
    """
    kept: list[str] = []
    for line in text.splitlines():
        if not _PREFIX_LINE.match(line) or (not line.strip() and any("<" in include for include in kept)):
            break
        if line.lstrip().startswith("#"):
            kept.append(line.strip())
    return "\n".join(kept) + "\n" if any("<" in line for line in kept) else ""


def _keep_newest(folder: Path) -> None:
    """Remove the precompiled headers that were not used for longest."""
    by_age = sorted(folder.glob("*.pch"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in by_age[_KEPT_HEADERS:]:
        old.unlink(missing_ok=True)
        old.with_suffix(".h").unlink(missing_ok=True)
