"""Each public class name is used once in the package: a reader of `Rule` knows which one it is."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import mpsmith

ROOT = Path(mpsmith.__file__).parent
FOLDERS = ("audit", "cli", "kernels", "registry", "reports", "scaffold", "simulator", "tracing")


def class_names(source: str) -> list[str]:
    """The public classes that a module defines at its top."""
    body = ast.parse(source).body
    return [node.name for node in body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]


def test_public_classes_at_the_top_are_found() -> None:
    source = "class Rule:\n    class Inner: ...\nclass _Hidden: ...\ndef f():\n    class Local: ...\n"
    assert class_names(source) == ["Rule"]


def test_every_class_name_is_used_once() -> None:
    places = defaultdict(list)
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for name in class_names(path.read_text(encoding="utf-8")):
                places[name].append(str(path.relative_to(ROOT)))
    assert len(places) > 100
    assert {name: files for name, files in places.items() if len(files) > 1} == {}
