"""A three-way merge of lines with `git merge-file`."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from ..errors import ScaffoldError


def merged_three_ways(base: str, mine: str, theirs: str) -> str | None:
    """The text with the changes of both sides; None if they conflict.

    Raises ScaffoldError if git is not installed.
    """
    with tempfile.TemporaryDirectory(prefix="mpsmith-merge-") as folder:
        paths = [Path(folder) / name for name in ("mine", "base", "theirs")]
        for path, text in zip(paths, (mine, base, theirs), strict=True):
            path.write_text(text, encoding="utf-8")
        try:
            done = subprocess.run(["git", "merge-file", "-p", *map(str, paths)], capture_output=True, check=False)
        except FileNotFoundError:
            raise ScaffoldError("git is needed to merge edited files; install git, or use --force") from None
    return done.stdout.decode("utf-8") if done.returncode == 0 else None
