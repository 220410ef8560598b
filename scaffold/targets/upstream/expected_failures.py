"""Takes an operator's entries out of PyTorch's lists of what fails on mps (common_mps.py)."""

from __future__ import annotations

import ast
from collections.abc import Iterable

# What a new kernel ends: entries in lists of other failures (gradients, undefined values) need a person to look.
_LIST = "UNIMPLEMENTED"


def without_entries(text: str, opinfos: Iterable[str]) -> str:
    """The text of common_mps.py without the entries of these OpInfos in the lists of unimplemented operators."""
    names = {name.replace(".", "_") for name in opinfos}
    lines = text.splitlines(keepends=True)
    for start, end in sorted(_entries(ast.parse(text), names), reverse=True):
        del lines[start - 1 : end]
    return "".join(lines)


def _entries(tree: ast.Module, names: set[str]) -> Iterable[tuple[int, int]]:
    """First and last line of each entry that stands on lines of its own."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if not any(isinstance(target, ast.Name) and _LIST in target.id for target in targets):
            continue
        for table in (inner for inner in ast.walk(node.value) if isinstance(inner, ast.Dict)):
            for key, value in zip(table.keys, table.values, strict=True):
                if isinstance(key, ast.Constant) and key.value in names:
                    yield key.lineno, value.end_lineno or value.lineno
