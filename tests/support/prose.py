"""Refuses words that are not the field's, in documents, comments, docstrings, messages and names: `make lint`."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import yaml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
RULES = Path(__file__).with_name("banned_words.yaml")
NATIVE = {".cpp", ".h", ".metal", ".mm"}
# Data of other projects, and what a command writes.
EXCLUDED = ("reports/published/", "registry/", "tests/unit/scaffold/targets/golden/")
NATIVE_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
NAME_PART = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


@cache
def rules() -> tuple[dict[re.Pattern[str], str], dict[str, str]]:
    """The banned phrases and the banned parts of names, each with what to write instead."""
    loaded = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    return {re.compile(phrase): instead for phrase, instead in loaded["phrases"].items()}, loaded["names"]


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """The prose of a file by line: a document whole, of code the comments, strings and names of tests."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield from enumerate(source.splitlines(), 1)
    elif path.suffix == ".py":
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type in (tokenize.COMMENT, tokenize.STRING):
                yield from enumerate(token.string.splitlines(), token.start[0])
        yield from ((line, name.replace("_", " ")) for line, name in names(source) if name.startswith("test_"))
    else:
        for comment in NATIVE_COMMENT.finditer(source):
            yield from enumerate(comment[0].splitlines(), source.count("\n", 0, comment.start()) + 1)


def names(source: str) -> Iterator[tuple[int, str]]:
    """The names that a Python module defines, by line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg


def problems(path: Path) -> Iterator[tuple[int, str]]:
    """Each banned phrase and name of a file: line, and what to write instead."""
    phrases, banned = rules()
    for line, text in texts(path):
        for phrase, instead in phrases.items():
            if match := phrase.search(text):
                yield line, f'"{match[0]}": write {instead}'
    if path.suffix == ".py":
        for line, name in names(path.read_text(encoding="utf-8")):
            for part in NAME_PART.findall(name):
                if part.lower() in banned:
                    yield line, f"{name}: {banned[part.lower()]}"


def checked_files() -> list[Path]:
    """The files whose words are checked, relative to the root."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    wanted = (path for path in map(Path, listed) if path.suffix in {".md", ".py", *NATIVE})
    return [path for path in wanted if (ROOT / path).is_file() and not path.as_posix().startswith(EXCLUDED)]


def refused() -> list[str]:
    """Every banned phrase and name of the repository: file, line, and what to write instead."""
    return [f"{path}:{line}: {text}" for path in checked_files() for line, text in problems(ROOT / path)]


def limit() -> int:
    """How many there may be, from the budget in pyproject.toml: those that are left, and no new ones."""
    budget = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mpsmith"]["budget"]
    return int(budget["banned-words"])


def main() -> int:
    """Print what is refused; 1 if there is more of it than the budget allows."""
    refusals, allowed = refused(), limit()
    if "--all" in sys.argv or len(refusals) > allowed:
        print(*refusals, sep="\n")
        print(f"{len(refusals)} banned words, {allowed} allowed by the budget in pyproject.toml")
    return 1 if len(refusals) > allowed else 0


if __name__ == "__main__":
    sys.exit(main())
