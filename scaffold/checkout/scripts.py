"""Test files that are scripts: pytest cannot run their tests, whose arguments the file's own `__main__` part passes."""

from __future__ import annotations

import ast
import functools
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
_FALSE = "the test returned False"

# Called with a test that begins, and with one that ended and its exception.
Begin = Callable[[str], None]
End = Callable[[str, BaseException | None], None]


def is_script(text: str) -> bool:
    """Whether a test file must be run as a script: it has a `__main__` part, and no tests that pytest can call."""
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return False
    guards = [ast.unparse(statement) for statement in body if _is_guard(statement)]
    functions = [node for node in body if isinstance(node, ast.FunctionDef)]
    fixtures = {f.name for f in functions if any("fixture" in ast.unparse(each) for each in f.decorator_list)}
    tests = [f for f in functions if f.name.startswith("test")]
    if not guards or any(runner in guard for guard in guards for runner in _RUNNERS):
        return False
    if not tests:
        return not any(isinstance(node, ast.ClassDef) and node.name.startswith("Test") for node in body)
    return any(not f.decorator_list and _required(f) - fixtures for f in tests)


def checked(test: Callable[..., Any]) -> Callable[..., Any]:
    """The test, which raises where it returns False: pytest would let it pass."""

    @functools.wraps(test)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = test(*args, **kwargs)
        if result is False:
            raise AssertionError(_FALSE)
        return result

    return call


class ScriptFile(pytest.File):
    """A test file that is run as a script."""

    begin: Begin
    end: End

    def collect(self) -> Iterator[pytest.Item]:
        """The one item."""
        yield ScriptItem.from_parent(self, name=SCRIPT)


class ScriptItem(pytest.Item):
    """A run of a script. Each call of a function `test...` is reported as a separate test."""

    def runtest(self) -> None:
        """Run the file; its `__main__` part calls the tests."""
        parent: Any = self.parent
        tree = ast.parse(self.path.read_text("utf-8"), str(self.path))
        names: dict[str, Any] = {"__name__": SCRIPT, "__file__": str(self.path)}
        with _as_command(self.path):
            for is_guard in (False, True):
                part = ast.Module([each for each in tree.body if _is_guard(each) is is_guard], [])
                try:
                    exec(compile(part, str(self.path), "exec"), names)
                except SystemExit as end:
                    if end.code not in (None, 0):
                        raise RuntimeError(f"the script ended with status {end.code}") from None
                tests = {name: value for name, value in names.items() if name.startswith("test") and callable(value)}
                names |= {name: self._reported(value, parent.begin, parent.end) for name, value in tests.items()}

    def _reported(self, test: Callable[..., Any], begin: Begin, end: End) -> Callable[..., Any]:
        @functools.wraps(test)
        def call(*args: Any, **kwargs: Any) -> Any:
            given = ", ".join([*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())])
            place = self.nodeid.removesuffix(SCRIPT)
            name = f"{place}{test.__name__}({given[:_LONGEST_CALL]})"
            begin(name)
            try:
                result = test(*args, **kwargs)
            except Exception as error:
                end(name, error)
                raise
            finally:
                begin(self.nodeid)
            end(name, AssertionError(_FALSE) if result is False else None)
            return result

        return call


@contextmanager
def _as_command(path: Path) -> Iterator[None]:
    before = sys.argv, list(sys.path)
    sys.argv = [str(path)]
    sys.path.insert(0, str(path.parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = before


def _is_guard(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and ast.unparse(statement.test).replace("'", '"') in (
        '__name__ == "__main__"',
        '"__main__" == __name__',
    )


def _required(function: ast.FunctionDef) -> set[str]:
    arguments = function.args.posonlyargs + function.args.args
    return {each.arg for each in arguments[: len(arguments) - len(function.args.defaults)]}
