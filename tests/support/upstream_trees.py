"""Folders that look like PyTorch's source."""

from __future__ import annotations

from pathlib import Path

from mpsmith.simulator.upstream.operations import NEEDED, OPERATIONS


def empty_tree(root: Path, without: Path | None = None) -> Path:
    """The folder, with empty files in place of those that every build needs, but one."""
    (root / OPERATIONS).mkdir(parents=True)
    for place in NEEDED[1:]:
        if place != without:
            (root / place).parent.mkdir(parents=True, exist_ok=True)
            (root / place).touch()
    return root
