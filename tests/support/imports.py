"""The imports between the modules of the package, read from their sources."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
NOT_THE_PACKAGE = {"benchmarks", "build", "dist", "docs", "tests", "work"}

# An import of one module by another: who imports, in which line, and what; names without `mpsmith.`.
Arrow = tuple[str, int, str]


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name without `mpsmith.`; packages by the name of their folder."""
    named: dict[str, Path] = {}
    for folder, names, files in os.walk(ROOT):
        here = Path(folder).relative_to(ROOT)
        outside = NOT_THE_PACKAGE if here == Path() else set()
        names[:] = [name for name in names if name not in outside and not name.startswith((".", "__"))]
        if "__init__.py" not in files:
            continue
        for file in files:
            if file.endswith(".py"):
                parts = here.parts if file == "__init__.py" else (*here.parts, Path(file).stem)
                named[".".join(parts)] = ROOT / here / file
    return named


def imports_of(source: str, package: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """The line and name, without `mpsmith.`, of everything of mpsmith that a module in `package` imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = (*("mpsmith", *package)[: len(package) + 2 - node.level],) if node.level else ()
            module = (*base, *(node.module.split(".") if node.module else ()))
            names = [".".join((*module, alias.name)) for alias in node.names]
        else:
            continue
        yield from ((node.lineno, name.partition(".")[2]) for name in names if name.startswith("mpsmith."))


def package_of(module: str, path: Path) -> tuple[str, ...]:
    """The package that relative imports of a module start from."""
    parts = tuple(module.split(".")) if module else ()
    return parts if path.name == "__init__.py" else parts[:-1]


def arrows() -> list[Arrow]:
    """Each import between two modules of the package; "" is the package itself."""
    named = modules()
    imported = []
    for module, path in named.items():
        for line, name in imports_of(path.read_text(encoding="utf-8"), package_of(module, path)):
            target = name
            while target not in named and "." in target:
                target = target.rpartition(".")[0]
            imported.append((module, line, target if target in named else ""))
    return imported
