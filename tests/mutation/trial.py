"""Runs the tests of one module against its mutants, in forks of one process.

`python trial.py` reads a job from standard input and writes a line of JSON for the baseline and for each mutant. The
process imports everything that the tests need but the module and what imports it; a fork puts the mutant in the
module's place and runs pytest. The baseline runs the tests as they are: it must be green, and it says which tests
execute which lines. A mutant meets the tests that execute its statement, the quick ones before the slow; one of a
statement that runs at import, or in a function whose results are cached, meets them all.
"""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.util
import json
import os
import resource
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import hypothesis
import pytest

PACKAGE = "mpsmith"
QUIET = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--hypothesis-profile=mutation"]


class InPlace(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives a module its mutated source, under its own file's name."""

    def __init__(self, module: str, file: Path, source: str) -> None:
        self._module, self._file, self._source = module, file, source

    def find_spec(self, name: str, path: object, target: object = None) -> Any:
        if name != self._module:
            return None
        search = [str(self._file.parent)] if self._file.name == "__init__.py" else None
        spec = importlib.util.spec_from_file_location(name, self._file, loader=self, submodule_search_locations=search)
        return spec

    def exec_module(self, module: Any) -> None:
        exec(compile(self._source, str(self._file), "exec"), module.__dict__)


class Lines:
    """A pytest plugin that notes which lines of one file each test executes, and how long it takes.

    What the set-up of a test executes counts for all tests of its file: they may share the fixture.
    """

    def __init__(self, path: str) -> None:
        self._path = f"/{path}"  # the folder may be seen through a link
        self.imported: set[int] = set()
        self._now = self.imported
        self._set_up: dict[str, set[int]] = defaultdict(set)
        self._called: dict[str, set[int]] = {}
        self.seconds: dict[str, float] = defaultdict(float)
        self.failed: list[str] = []
        sys.settrace(self._enter)

    @property
    def lines(self) -> dict[str, list[int]]:
        """The lines by test."""
        return {test: sorted(lines | self._set_up[_file(test)]) for test, lines in self._called.items()}

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self._now = self._set_up[_file(item.nodeid)]
        sys.settrace(self._enter)

    def pytest_runtest_call(self, item: pytest.Item) -> None:
        self._now = self._called.setdefault(item.nodeid, set())
        sys.settrace(self._enter)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def _enter(self, frame: FrameType, event: str, argument: object) -> Any:
        code: CodeType = frame.f_code
        return self._line if code.co_filename.endswith(self._path) else None

    def _line(self, frame: FrameType, event: str, argument: object) -> Any:
        self._now.add(frame.f_lineno)
        return self._line


class InOrder:
    """A pytest plugin that runs some of the collected tests in an order, and notes the first that fails."""

    def __init__(self, order: dict[str, int]) -> None:
        self._order = order
        self.killer = ""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        order = self._order
        items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.killer = self.killer or report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.killer = self.killer or f"{report.nodeid} (collection)"


def _file(test: str) -> str:
    return test.partition("::")[0]


# ---- the baseline


def baseline(tests: list[str], path: str) -> dict[str, Any]:
    """What the tests do with the module as it is; runs in a fork."""
    plugin = Lines(path)
    status = pytest.main([*QUIET, *tests], plugins=[plugin])
    sys.settrace(None)
    return {
        "green": status == 0 and not plugin.failed,
        "failed": plugin.failed[:5],
        "lines": plugin.lines,
        "imported": sorted(plugin.imported),
        "seconds": plugin.seconds,
        "cpu": time.process_time(),
        "modules": sorted(sys.modules),
    }


def imported_by(root: Path, module: str) -> set[str]:
    """The modules of the package that import this one, directly or through others, and the module itself."""
    importers: dict[str, set[str]] = defaultdict(set)
    for file in _sources(root):
        name = module_name(root, file)
        for imported in _imports(ast.parse(file.read_text()), name, is_package=file.name == "__init__.py"):
            importers[imported].add(name)
        if "." in name:  # a package is imported before what is in it
            importers[name.rpartition(".")[0]].add(name)
    reached, todo = {module}, [module]
    while todo:
        new = importers[todo.pop()] - reached
        reached |= new
        todo += new
    return reached


def module_name(root: Path, file: Path) -> str:
    """The dotted name of a file: audit/judging/compare.py is mpsmith.audit.judging.compare."""
    parts = file.relative_to(root).with_suffix("").parts
    return ".".join((PACKAGE, *parts)).removesuffix(".__init__")


def _sources(root: Path) -> Iterator[Path]:
    folders = [folder for folder in root.iterdir() if (folder / "__init__.py").exists() and folder.name != "benchmarks"]
    yield from root.glob("*.py")
    for folder in folders:
        yield from folder.rglob("*.py")


def _imports(tree: ast.AST, name: str, *, is_package: bool) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = name.split(".")
            base = base[: len(base) - node.level + is_package] if node.level else []
            start = ".".join([*base, *([node.module] if node.module else [])])
            yield start
            yield from (f"{start}.{alias.name}" for alias in node.names)


def preload(names: Iterable[str], root: Path, without: set[str]) -> None:
    """Import what the tests will need, but the modules that must meet the mutant and the tests themselves."""
    tests = root / "tests"
    for name in names:
        if name in without or name.startswith(("test_", "conftest", "tests.")):
            continue
        try:
            if name.startswith(f"{PACKAGE}.") or tests not in Path(_origin(name)).parents:
                importlib.import_module(name)
        except BaseException:  # whatever cannot be imported by its name alone is left to the forks
            continue


def _origin(name: str) -> str:
    spec = importlib.util.find_spec(name)
    return spec.origin or "" if spec else ""


class Meeting:
    """Says which tests a mutant of a line meets, the quick ones first; none where no test executes its statement."""

    def __init__(self, source: str, baseline: dict[str, Any]) -> None:
        self._tree = ast.parse(source)
        self._lines: dict[str, list[int]] = baseline["lines"]
        self._imported = set(baseline["imported"])
        self._seconds: dict[str, float] = baseline["seconds"]

    def tests(self, line: int) -> list[str]:
        statement, at_call = self._statement(line)
        everywhere = not at_call or not self._imported.isdisjoint(statement)
        chosen = [test for test, lines in self._lines.items() if everywhere or not statement.isdisjoint(lines)]
        return sorted(chosen, key=lambda test: self._seconds.get(test, 0.0))

    def _statement(self, line: int) -> tuple[set[int], bool]:
        """The lines of the innermost statement, without its body, and whether each call executes it."""
        lines, functions = {line}, []
        todo: list[ast.AST] = [self._tree]
        while todo:
            node = todo.pop()
            if isinstance(node, ast.stmt):
                body = getattr(node, "body", None)
                end = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or 0
                if node.lineno <= line <= end:
                    lines = set(range(node.lineno, end + 1))
                elif not node.lineno <= line <= (node.end_lineno or 0):
                    continue
                elif isinstance(node, ast.FunctionDef):
                    functions.append(node)
            todo += list(ast.iter_child_nodes(node))
        cached = any("cache" in ast.dump(decorator) for node in functions for decorator in node.decorator_list)
        return lines, bool(functions) and not cached


# ---- forks


def in_a_fork(work: Callable[[], dict[str, Any]], cpu_seconds: int, wall_seconds: int = 300) -> dict[str, Any] | None:
    """What the work returns, or None when the process died or ran past its time."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 5))
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        signal.alarm(wall_seconds)
        try:
            answer = json.dumps(work())
        except BaseException as error:
            answer = json.dumps({"killer": f"{type(error).__name__} outside of tests"})
        with os.fdopen(writing, "w") as pipe:
            pipe.write(answer)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else None


def try_mutant(finder: InPlace, order: dict[str, int]) -> dict[str, Any]:
    """Run these tests in their order with the mutant in place, to the first that fails; runs in a fork."""
    sys.meta_path.insert(0, finder)
    plugin = InOrder(order)
    status = pytest.main([*QUIET, "-x", *dict.fromkeys(map(_file, order))], plugins=[plugin])
    stopped = status in (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR)  # a conftest cannot be imported
    return {"killer": plugin.killer or ("the import of a conftest" if stopped else "")}


def main() -> None:
    """Read a job, write the results."""
    job = json.loads(sys.stdin.readline())
    out = os.fdopen(os.dup(1), "w")

    def say(**message: Any) -> None:
        print(json.dumps(message), file=out, flush=True)

    root = Path(job["root"])
    file = root / job["path"]
    module = module_name(root, file)
    os.chdir(root)
    _settle_hypothesis()
    if job["simulated"]:
        load_device()
    first = in_a_fork(lambda: baseline(job["tests"], job["path"]), cpu_seconds=600, wall_seconds=900)
    if first is None or not first.get("green"):
        say(error=f"the tests fail without a mutant: {first and (first.get('failed') or first)}")
        return
    preload(first["modules"], root, imported_by(root, module))
    if module in sys.modules:
        say(error=f"something imports {module} that has no import statement for it")
        return
    say(tests=len(first["lines"]))
    limit = int(first["cpu"] * 3) + 20
    meeting = Meeting(file.read_text(), first)
    for line, source in job["mutants"]:
        order = {test: position for position, test in enumerate(meeting.tests(line))}
        trial = partial(try_mutant, InPlace(module, file, source), order)
        answer = in_a_fork(trial, limit) if order else {"killer": ""}
        say(killer="time-out or crash" if answer is None else answer["killer"], met=len(order))


def _settle_hypothesis() -> None:
    """The same examples for every mutant, and no search for a smaller one."""
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile("mutation", derandomize=True, database=None, deadline=None, phases=phases)


def load_device() -> None:
    """The simulated device, as tests/simulated/conftest.py loads it: once, before the forks."""
    from mpsmith.audit.releases.surface.profiles import coverage_profile
    from mpsmith.simulator.device import loading

    os.environ.pop(loading.FALLBACK_VARIABLE, None)
    loading.load(coverage_profile(None))


if __name__ == "__main__":
    main()
