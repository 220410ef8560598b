"""Every path and module that a document, a docstring or a comment names is there."""

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from support.imports import imports_of

ROOT = Path(__file__).parents[2]
FOLDERS = "audit|benchmarks|cli|kernels|registry|reports|scaffold|simulator"

# A path from the root: not the end of a longer one, such as torch/audit/x or ~/docs/x, nor of a URL.
PATH = re.compile(rf"(?<![\w./~-])(?:{FOLDERS}|docs|tests|\.github|\.ci)/[\w.*/-]*[\w*/]")
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
DOTTED = re.compile(rf"(?<![\w./:])(?:mpsmith\.|(?=(?:{FOLDERS})\.[a-z_]\w*\.?[a-zA-Z_]))[a-z_]\w*(?:\.[a-zA-Z_]\w*)+")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
# What a reader replaces, and what only a run makes.
PLACEHOLDER = re.compile(r"\b[A-Z]{2,}\b")
MADE_BY_RUNS = ("reports/published/", "kernels/.scaffold/")


@cache
def tracked() -> tuple[Path, ...]:
    """The repository's files, those that are not committed yet included."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return tuple(path for line in listed.stdout.splitlines() if (path := ROOT / line).is_file())


def documents() -> list[Path]:
    return [path for path in tracked() if path.suffix == ".md" and "reports/published" not in path.as_posix()]


def modules() -> list[Path]:
    return [path for path in tracked() if path.suffix == ".py" and path != Path(__file__)]


def prose_of(source: str) -> Iterator[str]:
    """The docstrings and comments of a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def missing_paths(text: str) -> list[str]:
    """The paths from the root that `text` names and that are not there."""
    return [
        name
        for name in PATH.findall(text)
        if not PLACEHOLDER.search(name) and not name.startswith(MADE_BY_RUNS) and not any(ROOT.glob(name.rstrip("/")))
    ]


def missing_links(text: str, folder: Path) -> list[str]:
    prose = CODE.sub("", text)  # `float32[3](neg)` is a tensor and no link
    return [target for target in LINK.findall(prose) if not (folder / target).exists()]


@cache
def names_in(module: Path) -> frozenset[str]:
    """What a module defines or imports, wherever in it, and the entries of its folder where it is a package."""
    names = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    return frozenset(names)


def exists(dotted: str) -> bool:
    """Whether a dotted name, with or without `mpsmith.`, is a module, or a name in one."""
    parts = dotted.removeprefix("mpsmith.").split(".")
    here = ROOT
    for position, part in enumerate(parts):
        module = here / f"{part}.py"
        if module.is_file():
            rest = parts[position + 1 :]
        elif (here / part).is_dir():
            here /= part
            continue
        else:
            module, rest = here / "__init__.py", parts[position:]
        return not rest or (module.is_file() and rest[0] in names_in(module))
    return True


def missing_names(text: str) -> list[str]:
    """The dotted names of modules, and of what is in them, that are not there, but in fenced programs."""
    return [name for name in DOTTED.findall(FENCED.sub("", text)) if not exists(name) and not is_file_name(name)]


def is_file_name(name: str) -> bool:
    return name.rsplit(".", 1)[-1] in {"py", "md", "yaml", "json", "html", "csv", "sqlite", "metal", "tsv"}


@pytest.mark.parametrize("document", documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_names_in_documents_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert missing_links(text, document.parent) == []
    assert missing_paths(text) == []
    assert missing_names(text) == []


def test_names_in_docstrings_and_comments_exist() -> None:
    missing = {}
    for module in modules():
        prose = "\n".join(prose_of(module.read_text(encoding="utf-8")))
        if names := missing_paths(prose) + missing_names(prose):
            missing[module.relative_to(ROOT).as_posix()] = names
    assert missing == {}


def missing_imports(source: str, folder: tuple[str, ...]) -> list[str]:
    return [f"line {line}: {name}" for line, name in imports_of(source, folder) if not exists(name)]


def test_imports_of_tests_exist() -> None:
    """Those of a Mac and of a package index, too, which a change is landed without."""
    missing = {}
    for module in modules():
        path = module.relative_to(ROOT)
        if path.parts[0] not in ("benchmarks", "tests"):  # mypy reads the package
            continue
        if names := missing_imports(module.read_text(encoding="utf-8"), path.parent.parts):
            missing[path.as_posix()] = names
    assert missing == {}


def test_detects_a_stale_import() -> None:
    source = "from mpsmith.audit import store\ndef late():\n    from mpsmith.audit.store.store import gone, Store\n"
    assert missing_imports(source, ("tests",)) == ["line 3: audit.store.store.gone"]


def test_detects_stale_names() -> None:
    text = "see docs/gone.md, `audit/gone/store.py`, mpsmith.audit.gone.Store and registry.files.gone"
    assert missing_paths(text) == ["docs/gone.md", "audit/gone/store.py"]
    assert missing_names(text) == ["mpsmith.audit.gone.Store", "registry.files.gone"]
    assert missing_links("[here](gone.md) and [there](https://gone.example)", ROOT) == ["gone.md"]


def test_accepts_existing_names() -> None:
    text = "docs/registry.md, kernels/*/*.metal, kernels/NAME.py, torch/audit/gone.py, mpsmith.registry.files.load"
    assert missing_paths(text) == []
    assert missing_names(text) == []
