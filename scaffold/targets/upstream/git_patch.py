"""Writes patches that `git apply` takes: changed files with their context, new files whole."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def changed(path: str, before: str, after: str) -> str:
    """The part of a patch for a file that exists; empty when nothing changes."""
    if before == after:
        return ""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{path}", f"b/{path}"
    )
    return f"diff --git a/{path} b/{path}\n{_closed(lines)}"


def added(path: str, text: str) -> str:
    """The part of a patch for a new file."""
    lines = text.splitlines(keepends=True)
    body = _closed(f"+{line}" for line in lines)
    head = f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n"
    return f"{head}@@ -0,0 +1,{len(lines)} @@\n{body}"


def _closed(lines: Iterable[str]) -> str:
    """The text of patch lines, with the marker of `diff` after a line without a line break."""
    written = []
    for line in lines:
        written.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(written)
