"""Precompiled headers for the leading includes of files; files with the same includes share one."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from ...cache import fingerprint
from .compiler import Clang

# Instantiating templates takes most of the time after parsing: precompile that, too.
_PRECOMPILING = ("-Xclang", "-fpch-instantiate-templates", "-Xclang", "-fno-pch-timestamp")
# `-x` for headers of a language; with the language itself, clang would compile an object file.
_HEADERS_OF = {"objective-c++": "objective-c++-header", "c++": "c++-header"}
_KEPT_HEADERS = 24  # of 25 to 85 MB each
_INCLUDED = re.compile(r"#\s*(?:include|import)\s*<([^>]+)>")
_PREFIX_LINE = re.compile(r"^\s*(#\s*(define|include\s*<|import\s*<).*|//.*)?$")


@dataclass(frozen=True)
class PrecompiledHeaders:
    """Precompiled headers below `folder`. `identity` changes with the compiler and the included files."""

    clang: Clang
    folder: Path
    identity: str

    def find(self, text: str, flags: Sequence[str], include: Sequence[Path]) -> Path | None:
        """The header for a file with this text, built if needed; None if there is none.

        `flags` compile the file; `include` are the folders in them that only this file uses.
        """
        prefix = leading_includes(text)
        if not prefix:
            return None
        # The name of an extension differs, and no header uses it.
        flags = [flag for flag in flags if not flag.startswith("-DTORCH_EXTENSION_NAME=")]
        own: tuple[bytes, ...] = ()
        if any((place / name).is_file() for place in include for name in _INCLUDED.findall(prefix)):
            own = tuple(path.read_bytes() for place in include for path in sorted(place.rglob("*.h")))
        else:
            flags = [flag for flag in flags if flag not in {"-I", *map(str, include)}]
        flags = [_HEADERS_OF.get(flag, flag) for flag in flags]
        key = fingerprint(self.identity, *_PRECOMPILING, *flags, prefix, *own)
        target = self.folder / f"{key}.pch"
        if _is_kept(target):
            return target
        self.folder.mkdir(parents=True, exist_ok=True)
        # Files with the same includes are often compiled at the same time: one process builds, the others wait.
        with FileLock(target.with_suffix(".lock")):
            return target if _is_kept(target) else self._build(prefix, flags, target)

    def _build(self, prefix: str, flags: Sequence[str], target: Path) -> Path | None:
        header = target.with_suffix(".h")
        header.write_text(prefix)
        with tempfile.TemporaryDirectory(dir=self.folder, prefix=".new-") as temporary:
            built = Path(temporary) / "prefix.pch"
            done = self.clang.run("clang", *flags, "-w", *_PRECOMPILING, "-c", str(header), "-o", str(built))
            if not done.succeeded:
                return None  # compiling the file reports the error with its line
            built.replace(target)
        self._keep_newest()
        return target

    def _keep_newest(self) -> None:
        """Remove the least recently used headers."""
        by_age = sorted(self.folder.glob("*.pch"), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in by_age[_KEPT_HEADERS:]:
            old.unlink(missing_ok=True)
            for beside in (".h", ".lock"):
                old.with_suffix(beside).unlink(missing_ok=True)


def _is_kept(header: Path) -> bool:
    """Whether a header exists; marks it as used.

    `touch` could create an empty file if another process removes the header.
    """
    try:
        os.utime(header)
        return header.stat().st_size > 0
    except FileNotFoundError:
        return False


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
