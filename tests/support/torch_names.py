"""The names of torch that our modules use, and which of them a release of torch lacks.

Names are read from the source (imports, attribute chains, keywords of a config's `patch`), and looked up as words in
the Python files of the release. A name behind `getattr` is not read: code that asks so has an answer for its absence.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

# torch itself takes most of its names from C++; the stubs list them.
_STUBS = ("torch/_C/__init__.pyi", "torch/_C/_VariableFunctions.pyi", "torch/functional.py")
# Made at run time: operators, and classes of operators.
_NOT_IN_FILES = ("torch.ops", "torch.classes")

# Where names are used, such as {"torch._inductor.config.max_autotune": ["audit/compiled/judging.py:155"]}.
Uses = dict[str, list[str]]


def names_used(paths: Iterable[Path], root: Path) -> Uses:
    """Each dotted name of torch or torchgen that these modules use, with the lines that do."""
    uses: Uses = {}
    for path in sorted(paths):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for name, line in _names_in(tree):
            uses.setdefault(name, []).append(f"{path.relative_to(root)}:{line}")
    return uses


def _names_in(tree: ast.Module) -> Iterator[tuple[str, int]]:
    modules: dict[str, str] = {}  # the local name of an imported module or name -> its dotted name
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in filter(lambda alias: _is_of_torch(alias.name), node.names):
                modules[alias.asname or "torch"] = alias.name if alias.asname else "torch"
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom) and not node.level and _is_of_torch(node.module or ""):
            for alias in node.names:
                modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                yield f"{node.module}.{alias.name}", node.lineno
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and id(node) not in inner and (name := _dotted(node, modules)):
            yield name, node.lineno
        if isinstance(node, ast.Call) and (name := _dotted(node.func, modules)).endswith(".patch"):
            for keyword in node.keywords:
                yield f"{name.removesuffix('.patch')}.{keyword.arg}", node.lineno


def _is_of_torch(module: str) -> bool:
    return module.partition(".")[0] in ("torch", "torchgen")


def _dotted(node: ast.expr, modules: dict[str, str]) -> str:
    """The dotted name of an attribute chain on an imported name; "" for any other expression."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in modules:
        return ""
    return ".".join([modules[node.id], *reversed(attributes)])


def names_missing(uses: Uses, read: Callable[[str], str | None]) -> Uses:
    """The names that a release lacks.

    Args:
        uses: see `names_used`.
        read: the text of a file of the release, such as "torch/mps/__init__.py"; None where it has none.
    """
    return {name: lines for name, lines in uses.items() if not _has(name, read)}


def _has(name: str, read: Callable[[str], str | None]) -> bool:
    if any(name == made or name.startswith(f"{made}.") for made in _NOT_IN_FILES):
        return True
    parts = name.split(".")
    texts: list[str] = []
    for length in range(1, len(parts) + 1):
        deeper = _texts_of(parts[:length], read)
        if not deeper:
            return any(re.search(rf"(?<!\w){re.escape(parts[length - 1])}(?!\w)", text) for text in texts)
        texts = deeper
    return True


def _texts_of(module: Sequence[str], read: Callable[[str], str | None]) -> list[str]:
    """The files of a module and of the modules that it imports with a star; empty where there is no such module."""
    path = "/".join(module)
    files = [f"{path}/__init__.py", f"{path}.py", f"{path}/__init__.pyi", f"{path}.pyi"]
    texts = [text for file in [*files, *(_STUBS if path == "torch" else ())] if (text := read(file)) is not None]
    starred = {name for text in texts for name in re.findall(r"^from (\S+) import \*", text, re.MULTILINE)}
    for name in sorted(starred):
        whole = f"{path}/{name[1:]}" if name.startswith(".") else name.replace(".", "/")
        texts += [text for file in (f"{whole}/__init__.py", f"{whole}.py") if (text := read(file)) is not None]
    return texts
