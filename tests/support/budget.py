"""Measures what the budget in pyproject.toml limits: lines, modules, parameters, commands and options."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from support import prose

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
SUFFIXES = {".c", ".cjs", ".cpp", ".css", ".golden", ".h", ".hpp", ".j2", ".js", ".metal", ".mm", ".py"}


@dataclass(frozen=True)
class Usage:
    """What one limit counts, and where the most of it is."""

    used: int
    largest: tuple[str, ...] = ()


def budget() -> dict[str, int]:
    """The limits by name, from `[tool.mpsmith.budget]`."""
    limits: dict[str, int] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mpsmith"]["budget"]
    return limits


def code_files() -> list[Path]:
    """The repository's files of code, relative to its root, those that are not committed yet included."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return sorted(path for path in map(Path, listed) if path.suffix in SUFFIXES and (ROOT / path).is_file())


def lines_in(path: Path) -> int:
    """The number of lines of a file."""
    return len((ROOT / path).read_text(encoding="utf-8").splitlines())


def is_test(path: Path) -> bool:
    """Whether a file is below tests/."""
    return path.parts[0] == "tests"


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """The functions of a Python file: name with line, and number of parameters without `self` and `cls`."""
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            named = [argument for argument in arguments if argument.arg not in {"self", "cls"}]
            yield f"{path}:{node.lineno} {node.name}", len(named)


def line_usage(files: list[Path]) -> Usage:
    """The sum of the files' lines."""
    return Usage(sum(map(lines_in, files)))


def largest_usage(measured: dict[str, int], limit: int) -> Usage:
    """The largest of some numbers, and the names of all that are above the limit."""
    above = sorted((name for name, number in measured.items() if number > limit), key=lambda name: -measured[name])
    return Usage(max(measured.values(), default=0), tuple(f"{name}: {measured[name]}" for name in above))


def exempt_parameters() -> tuple[str, ...]:
    """Folders whose functions may have any number of parameters: typer makes options of those in cli/, and a kernel's
    function, a model of a kernel and a call of a kernel have the parameters of the operator.
    """
    return ("cli/", "kernels/", "audit/judging/predictions/", "audit/cases/calls/")


def usage() -> dict[str, Usage]:
    """What each limit of the budget has used, but commands and options (`support.command_counts`)."""
    limits = budget()
    files = code_files()
    source = [path for path in files if not is_test(path)]
    modules = [path for path in source if path.suffix == ".py"]
    counted = [path for path in modules if not path.as_posix().startswith(exempt_parameters())]
    parameters = {name: number for path in counted for name, number in functions(path)}
    return {
        "source-lines": line_usage(source),
        "test-lines": line_usage([path for path in files if is_test(path)]),
        "module-lines": largest_usage({str(path): lines_in(path) for path in modules}, limits["module-lines"]),
        "parameters": largest_usage(parameters, limits["parameters"]),
        "banned-words": Usage(len(prose.refused())),
    }


def main() -> None:
    """Print each limit beside what is used, and lines by folder."""
    limits = budget()
    for name, used in usage().items():
        print(f"{name:14} {used.used:>7,} of {limits[name]:>7,}", *used.largest, sep="\n    " if used.largest else "")
    folders: dict[str, int] = {}
    for path in code_files():
        folder = "/".join(path.parts[:2]) if len(path.parts) > 2 else path.parts[0] if len(path.parts) > 1 else "."
        folders[folder] = folders.get(folder, 0) + lines_in(path)
    for folder, number in sorted(folders.items()):
        print(f"{number:>8,} {folder}")


if __name__ == "__main__":
    main()
