"""Which lines run on a Mac alone, and which of them some test executes.

    MPSMITH_MAC_LINES=FOLDER pytest ...                  # tests and processes that pose as a Mac note what they run
    PYTHONPATH=tests python -m support.mac_lines FOLDER  # the share, and the lines that nothing executed

A line runs on a Mac alone if it is in a module of MODULES, or behind a condition that asks for the system or for a
device that is not simulated.
"""

from __future__ import annotations

import ast
import builtins
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

VARIABLE = "MPSMITH_MAC_LINES"
ROOT = Path(__file__).parents[2]
FOLDERS = ("audit", "cli", "kernels", "registry", "reports", "scaffold", "simulator", "tracing")
# Modules, and where not all of one, the classes and functions.
MODULES: dict[str, tuple[str, ...]] = {
    "audit/running/canary.py": (),
    "audit/running/device_health.py": (),
    "audit/running/isolated.py": ("_run_each_alone", "_rerun_after_lost_device"),
    "reports/evidence/machine.py": ("is_virtual", "_mac_facts", "_gpu_cores"),
    "reports/evidence/preflight.py": (),
    "reports/evidence/preflight_steps.py": (),
    "scaffold/building/macos.py": (),
    "simulator/fallback_recorders.py": ("WarningRecorder",),
    "tracing/device_clock.py": ("DeviceClock",),
}
# Lines by a part of their text that no test can execute without a Mac.
REASONS: dict[str, str] = {}
# A module without one of them has no condition that asks for a Mac.
_WORDS = ("arwin", "simulated", "_real", "is_mac()", "on_a_mac", "real and kind")
_ENDS = (ast.Return, ast.Raise, ast.Continue)


def mac_only_lines(root: Path = ROOT) -> dict[Path, set[int]]:
    """The lines of statements that run on a Mac alone, by file."""
    files = sorted(file for folder in FOLDERS for file in (root / folder).rglob("*.py"))
    return {file: lines for file in files if (lines := _lines_of(file, root))}


def _lines_of(file: Path, root: Path = ROOT) -> set[int]:
    text = file.read_text("utf-8")
    names = MODULES.get(file.relative_to(root).as_posix())
    if names is None and not any(word in text for word in _WORDS):
        return set()
    tree = ast.parse(text)
    return {*_behind_conditions(tree), *(_of_functions(tree, names) if names is not None else ())}


def _of_functions(tree: ast.AST, names: tuple[str, ...]) -> Iterator[int]:
    """The lines in functions: of all, or in those and the classes of these names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and (not names or node.name in names):
            yield from _statements(node.body)
        elif isinstance(node, ast.ClassDef) and node.name in names:
            yield from _of_functions(node, ())


def _statements(body: list[ast.stmt]) -> Iterator[int]:
    """The first lines of statements that execute, docstrings left out."""
    for top in body:
        for node in ast.walk(top):
            if isinstance(node, ast.stmt) and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
                yield node.lineno


def _behind_conditions(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        for body in (getattr(node, name, []) for name in ("body", "orelse", "finalbody")):
            for at, statement in enumerate(body if isinstance(body, list) else []):
                mac = _on_a_mac(statement.test) if isinstance(statement, ast.If) else None
                if mac is None:
                    continue
                yield from _statements(statement.body if mac else statement.orelse)
                if not mac and isinstance(statement.body[-1], _ENDS):
                    yield from _statements(body[at + 1 :])


def _on_a_mac(test: ast.expr) -> bool | None:
    """Whether a condition is true on a Mac alone (True), elsewhere alone (False), or neither."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _on_a_mac(test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        parts = [_on_a_mac(value) for value in test.values]
        decisive = isinstance(test.op, ast.And)
        return decisive if decisive in parts else None
    text = ast.unparse(test)
    if isinstance(test, ast.Compare) and "arwin'" in text:
        return isinstance(test.ops[0], ast.Eq)
    if text.endswith((".simulated", "['simulated']", ".get('simulated')")) or text == "simulated":
        return False
    return True if text in ("self._real", "is_mac()", "on_a_mac", "real and kind is not DeviceKind.SIMULATED") else None


class _Noting(SourceFileLoader):
    """Compiles a module with a call before each of its lines of a Mac, which notes the line: all else stays fast."""

    def get_code(self, fullname: str) -> CodeType:
        """The module's code, which is not written to the cache of other processes."""
        file = Path(self.path)
        tree = ast.parse(file.read_bytes())
        _insert_calls(tree, file.relative_to(ROOT).as_posix(), _lines_of(file))
        return compile(tree, file, "exec", dont_inherit=True)


def _insert_calls(tree: ast.Module, module: str, lines: set[int]) -> None:
    for node in list(ast.walk(tree)):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list):
                setattr(node, name, [added for line in body for added in (*_calls(line, module, lines), line)])


def _calls(statement: ast.stmt, module: str, lines: set[int]) -> list[ast.stmt]:
    if statement.lineno not in lines:
        return []
    (call,) = ast.parse(f"note_mac_line({f'{module}:{statement.lineno}'!r})").body
    ast.increment_lineno(call, statement.lineno - 1)  # what a traceback shows
    return [call]


class _Finder(MetaPathFinder):
    """Finds the modules with lines of a Mac."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of such a module; None for others."""
        spec = PathFinder.find_spec(name, path) if name.startswith("mpsmith.") else None
        file = Path(spec.origin or "") if spec is not None else Path()
        if spec is None or ROOT not in file.parents or file.suffix != ".py" or not _lines_of(file):
            return None
        spec.loader = _Noting(name, str(file))
        return spec


def record() -> None:
    """Note from now on which of these lines this process executes, if the environment names a folder."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        return
    seen: set[str] = set()

    def note(line: str) -> None:
        if line not in seen:
            seen.add(line)
            with (Path(folder) / f"{os.getpid()}.txt").open("a", encoding="utf-8") as notes:
                notes.write(f"{line}\n")

    builtins.note_mac_line = note  # type: ignore[attr-defined]
    sys.meta_path.insert(0, _Finder())


def main(folder: Path) -> int:
    """Print the share, and the lines that nothing executed; 1 if one of them has no reason."""
    executed = {line for notes in folder.glob("*.txt") for line in notes.read_text("utf-8").splitlines()}
    every = [(path, line) for path, lines in mac_only_lines().items() for line in sorted(lines)]
    left, without = [], 0
    for path, line in every:
        name = f"{path.relative_to(ROOT)}:{line}"
        if name not in executed:
            text = path.read_text("utf-8").splitlines()[line - 1].strip()
            reason = next((why for part, why in REASONS.items() if part in text), "")
            without += not reason
            left.append(f"{name}: {text}{f'  ({reason})' if reason else ''}")
    print("\n".join(left))
    print(f"{len(every) - len(left)} of {len(every)} lines of a Mac were executed; {without} others have no reason")
    return int(without > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
