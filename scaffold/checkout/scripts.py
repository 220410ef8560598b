"""Test files that are scripts: their tests take arguments that the `__main__` part of the file passes."""

from __future__ import annotations

import ast
import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

SCRIPT = "__main__"
"""The name of the item that runs a file as a script."""
_RUNNERS = ("pytest.main", "unittest.main", "run_tests(")
_LONGEST_CALL = 80
RETURNED_FALSE = "the test returned False"
Report = Callable[[str, bool, BaseException | None], None]
"""Called with a test, whether it has ended, and its exception."""


def is_script(path: Path) -> bool:
    """Whether a test file must be run as a script: it has a `__main__` part, and no tests that pytest can call."""
    try:
        body = ast.parse(path.read_text("utf-8", "replace")).body
    except SyntaxError:
        return False
    guards = [ast.unparse(statement) for statement in body if _is_guard(statement)]
    functions = [node for node in body if isinstance(node, ast.FunctionDef)]
    fixtures = {f.name for f in functions if "fixture" in " ".join(map(ast.unparse, f.decorator_list))}
    tests = [f for f in functions if f.name.startswith("test")]
    if not guards or any(runner in guard for guard in guards for runner in _RUNNERS):
        return False
    if not tests:
        return not any(isinstance(node, ast.ClassDef) and node.name.startswith("Test") for node in body)
    return any(not f.decorator_list and _required(f) - fixtures for f in tests)


def checked(test: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a test so that it fails if it returns False, which pytest would let pass."""

    @functools.wraps(test)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = test(*args, **kwargs)
        if result is False:
            raise AssertionError(RETURNED_FALSE)
        return result

    return call


class ScriptModule(pytest.Module):
    """A test file that is also run as a script, after the tests in it that pytest can call."""

    report: Report

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """Its tests, and the script."""
        if "def test" in self.path.read_text("utf-8", "replace"):
            yield from super().collect()
        yield ScriptItem.from_parent(self, name=SCRIPT)


class ScriptItem(pytest.Item):
    """A run of a script. Each call of a function `test...` is reported as a separate test."""

    def runtest(self) -> None:
        """Run the file; its `__main__` part calls the tests."""
        tree = ast.parse(self.path.read_text("utf-8"), str(self.path))
        names: dict[str, Any] = {"__name__": SCRIPT, "__file__": str(self.path)}
        with _as_command(self.path):
            for is_guard in (False, True):
                part = ast.Module([statement for statement in tree.body if _is_guard(statement) is is_guard], [])
                try:
                    exec(compile(part, str(self.path), "exec"), names)
                except SystemExit as end:
                    if end.code not in (None, 0):
                        raise RuntimeError(f"the script ended with status {end.code}") from None
                tests = {name: value for name, value in names.items() if name.startswith("test") and callable(value)}
                names |= {name: self._reported(value) for name, value in tests.items()}

    def _reported(self, test: Callable[..., Any]) -> Callable[..., Any]:
        report: Report = self.parent.report  # type: ignore[union-attr]

        @functools.wraps(test)
        def call(*args: Any, **kwargs: Any) -> Any:
            given = ", ".join([*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())])
            name = f"{self.nodeid.removesuffix(SCRIPT)}{test.__name__}({given[:_LONGEST_CALL]})"
            report(name, False, None)
            try:
                result = test(*args, **kwargs)
            except Exception as error:
                report(name, True, error)
                raise
            report(name, True, AssertionError(RETURNED_FALSE) if result is False else None)
            return result

        return call


@contextmanager
def _as_command(path: Path) -> Iterator[None]:
    """Set `sys.argv` and `sys.path` as `python FILE` does; change to its folder if Metal or Objective-C++ is there."""
    before, folder = (sys.argv, list(sys.path)), Path.cwd()
    sys.argv = [str(path)]
    sys.path.insert(0, str(path.parent))
    if any(sibling.suffix in (".mm", ".metal") for sibling in path.parent.iterdir()):
        os.chdir(path.parent)
    try:
        yield
    finally:
        os.chdir(folder)
        sys.argv, sys.path[:] = before


def _is_guard(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and ast.unparse(statement.test) == f"__name__ == '{SCRIPT}'"


def _required(function: ast.FunctionDef) -> set[str]:
    arguments = function.args.posonlyargs + function.args.args
    return {argument.arg for argument in arguments[: len(arguments) - len(function.args.defaults)]}
