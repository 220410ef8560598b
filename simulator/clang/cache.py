"""A cache of built files and diagnostics on disk.

A file name holds the key of the inputs and the hash of the content. So a damaged entry is detected and built again, and
two processes that build the same file write equal contents.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path


class BuildCache:
    """Files by key and suffix below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find(self, key: str, suffix: str) -> tuple[Path, bytes] | None:
        """The intact file for `key` and its content; a damaged one is removed."""
        folder = self.folder / key[:2]
        if not folder.is_dir():
            return None
        for path in folder.glob(f"{key}-*{suffix}"):
            try:
                content = path.read_bytes()
            except OSError:
                continue
            if path.name == self._name(key, content, suffix):
                with contextlib.suppress(OSError):
                    os.utime(path)  # mark it as used for `discard_old` and `shrink`
                return path, content
            with contextlib.suppress(OSError):
                path.unlink()
        return None

    def store(self, key: str, suffix: str, content: bytes) -> Path:
        """Write `content` under `key` atomically."""
        folder = self.folder / key[:2]
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / self._name(key, content, suffix)
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.replace(temporary, path)  # noqa: PTH105  (atomic on every platform)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        return path

    def discard_old(self, days: int) -> None:
        """Remove files that were not used for `days` days."""
        limit = time.time() - days * 24 * 3600
        for path, used, _ in self._files():
            if used < limit:
                path.unlink(missing_ok=True)

    def shrink(self, limit: int) -> None:
        """Remove the least recently used files if all files have more than `limit` bytes.

        A quarter of `limit` more is removed, so that the next file does not repeat this.
        """
        files = sorted(self._files(), key=lambda file: file[1])
        excess = sum(size for _, _, size in files) - limit
        if excess <= 0:
            return
        excess += limit // 4
        for path, _, size in files:
            if excess <= 0:
                return
            path.unlink(missing_ok=True)
            excess -= size

    def _files(self) -> Iterator[tuple[Path, float, int]]:
        """Every file with its time of last use and its size."""
        for path in self.folder.glob("*/*"):
            with contextlib.suppress(OSError):
                status = path.stat()
                yield path, status.st_mtime, status.st_size

    @staticmethod
    def _name(key: str, content: bytes, suffix: str) -> str:
        return f"{key}-{hashlib.sha256(content).hexdigest()[:16]}{suffix}"
