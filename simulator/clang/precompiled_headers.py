"""Precompiled headers for the leading includes of files; files with the same includes share one."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from ...cache import fingerprint
from .compiler import Clang

# Instantiating templates takes most of the time after parsing: precompile that, too.
_PRECOMPILING = ("-Xclang", "-fpch-instantiate-templates", "-Xclang", "-fno-pch-timestamp")
# `-x` for headers of a language; with the language itself, clang would compile an object file.
_HEADERS_OF = {"objective-c++": "objective-c++-header", "c++": "c++-header"}
_KEPT_HEADERS = 24  # of 25 to 85 MB each
_IN_USE_SECONDS = 600  # between the time that a process finds a header and the time that clang has read it
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
        with tempfile.TemporaryDirectory(dir=self.folder, prefix=".new-") as temporary:
            built = Path(temporary) / "prefix.pch"
            # clang refuses a precompiled header while its file has another size: never truncate the file.
            aside = built.with_suffix(".h")
            aside.write_text(prefix)
            aside.replace(header)
            done = self.clang.run("clang", *flags, "-w", *_PRECOMPILING, "-c", str(header), "-o", str(built))
            if not done.succeeded:
                return None  # compiling the file reports the error with its line
            built.replace(target)
        self._keep_newest()
        return target

    def _keep_newest(self) -> None:
        """Remove the least recently used headers, unless a process is about to read them. Lock files are kept.

        If a lock file were removed, a waiting process and a new one would both build the header.
        """
        for old in sorted(self.folder.glob("*.pch"), key=_last_used, reverse=True)[_KEPT_HEADERS:]:
            with contextlib.suppress(Timeout), FileLock(old.with_suffix(".lock"), timeout=0):
                if time.time() - _last_used(old) > _IN_USE_SECONDS:
                    old.unlink(missing_ok=True)
                    old.with_suffix(".h").unlink(missing_ok=True)


def _last_used(header: Path) -> float:
    try:
        return header.stat().st_mtime
    except FileNotFoundError:  # another process removed it
        return 0


def _is_kept(header: Path) -> bool:
    """Whether a header exists; marks it as used.

    `touch` could create an empty file if another process removes the header.
    """
    try:
        os.utime(header)
        return header.stat().st_size > 0 and header.with_suffix(".h").exists()
    except FileNotFoundError:
        return False


def leading_includes(text: str) -> str:
    """The `#define` and `#include <...>` lines with which a file begins; empty if it begins with anything else.

    The first empty line after an include ends them, because files that begin alike may differ after it.
    """
    kept: list[str] = []
    for line in text.splitlines():
        if not _PREFIX_LINE.match(line) or (not line.strip() and any("<" in include for include in kept)):
            break
        if line.lstrip().startswith("#"):
            kept.append(line.strip())
    return "\n".join(kept) + "\n" if any("<" in line for line in kept) else ""
