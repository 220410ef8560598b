"""Writes reports to files: whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from ..audit.findings.results import AuditSummary
from ..errors import MpsmithError
from . import csv_report, json_report, markdown

# The report in one file, by format; a site has all of them.
FILES: dict[str, tuple[str, Callable[[AuditSummary], str]]] = {
    "markdown": ("coverage.md", markdown.render),
    "json": ("coverage.json", json_report.render),
    "csv": ("coverage.csv", csv_report.render),
}


def write(path: Path, text: str) -> None:
    """Write a file atomically: a reader sees the old text or the new one. Raises MpsmithError."""
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", newline="\n", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as file:
            temporary = Path(file.name)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)  # temporary files are private, a report is not
        temporary.replace(path)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise MpsmithError(f"cannot write {path}: {error.strerror} (choose another place)") from error
