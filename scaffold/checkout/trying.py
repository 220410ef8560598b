"""Tries a checkout: its Metal files, the extensions of its setup.py, its tests."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock, Timeout

from ...cache import cache_folder, fingerprint
from ...errors import MpsmithError, one_line
from ...simulator.objc.compile_options import CompileOptions
from ..building.apple_tools import tools_folder
from ..building.kernel_builder import BUILD_FILE, LOCAL_KERNEL, requests_of_build_file
from ..building.setup_script import ExtensionRequest, SetupScript, requests_of
from ..building.simulated import built_or_kept
from ..building.subject import SETUP
from ..errors import ScaffoldError
from ..proof.checking import check_files
from ..proof.host_code import check_host_code
from .classification import build_rows, diagnostic_row, joined_row, script_row, test_row
from .pytest_plugin import HOST_CODE
from .results import TryPlan, TryResult, TryRow
from .scripts import SCRIPT
from .worker import run_tests

CODE = (".mm", ".cpp", ".cc", ".cxx", ".c")
_HEADERS = (".h", ".hpp", ".hh")
# The compiler's macros for its target. Only the project's code is compiled as for a Mac: torch's headers are Linux's.
_TARGET_MACRO = re.compile(rb"\b__(APPLE|MACH|linux|gnu_linux)__\b")
_LEFT_OUT = (".git", ".venv", "venv", "node_modules", "build", "dist", "__pycache__", ".tox", "*.so")
_NO_HEADER = re.compile(r"'(?P<name>[^']+)' file not found")
_TESTS = ("test_*.py", "*_test.py", "test.py", "tests.py")
_COMPILES = re.compile(r"compile_shader|\.mm\b|\.metal\b|\bmps\b")
_A_TEST = re.compile(r"^\s*(?:async )?def test|^class Test|unittest|^if __name__ ==", re.MULTILINE)

Say = Callable[[str], None]


@dataclass(frozen=True)
class Checkout:
    """A project's folder, and the copy of it that is built and run. The folder itself is not changed."""

    folder: Path
    copy: Path

    def files(self, *patterns: str) -> list[Path]:
        """The files of the copy that match one of the patterns, in a fixed order."""
        return sorted({path for pattern in patterns for path in self.copy.rglob(pattern) if path.is_file()})

    def compile_for_a_mac(self) -> None:
        """Rename target macros in the copy's C and C++, so that `__APPLE__` is defined and `__linux__` is not."""
        for path in self.files(*(f"*{suffix}" for suffix in (*CODE, *_HEADERS))):
            if self.copy.resolve() in path.resolve().parents and _TARGET_MACRO.search(text := path.read_bytes()):
                path.unlink()  # it may be read-only
                path.write_bytes(_TARGET_MACRO.sub(rb"MPSMITH_\1", text))

    def named(self, path: str | Path) -> str:
        """A path in the copy, relative to the folder."""
        return str(path).replace(f"{self.copy}{os.sep}", "").replace(str(self.copy), ".")


def try_checkout(
    folder: Path,
    limit: float,
    say: Say = lambda line: None,
    plan: TryPlan | None = None,
    chosen: str = "",
    host_code: Path | None = None,
) -> Iterator[TryRow]:
    """Yield a row for each Metal file, extension and test, as soon as its result is known.

    Args:
        folder: the project's folder.
        limit: the time limit of one test, in seconds.
        say: called with the name of each step when it begins.
        plan: gets the names of all rows to come, as soon as they are known.
        chosen: only tests that match, as pytest's -k.
        host_code: the folder with the manifest of the host code that computes in the tests; None for the device's own.

    Raises:
        ScaffoldError: there is no such folder, or nothing in it is for mps.
    """
    if not folder.is_dir():
        raise ScaffoldError(f"there is no folder {folder}" if not folder.exists() else f"{folder} is not a folder")
    with _copied(folder.resolve(), say) as checkout:
        for row in _rows(checkout, limit, say, plan or TryPlan(), chosen, host_code):
            yield replace(
                row, name=checkout.named(row.name), reason=checkout.named(row.reason), file=checkout.named(row.file)
            )


@contextmanager
def _copied(folder: Path, say: Say) -> Iterator[Checkout]:
    """A copy of the folder, always at the same path, so that compiled files are reused."""
    place = cache_folder() / "checkouts" / fingerprint(str(folder))
    place.mkdir(parents=True, exist_ok=True)
    copy = place / folder.name
    lock = FileLock(place / "lock")
    try:
        held = lock.acquire(blocking=False)
    except Timeout:
        say(f"waiting: another mpsmith try of {folder} is running")
        held = lock.acquire()
    with held:
        shutil.rmtree(copy, ignore_errors=True)
        try:
            shutil.copytree(folder, copy, symlinks=True, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        except OSError as error:  # shutil.Error has a list of files
            raise ScaffoldError(f"cannot copy {folder}: {one_line(error)}") from error
        try:
            yield Checkout(folder, copy)
        finally:
            shutil.rmtree(copy, ignore_errors=True)


def _rows(
    checkout: Checkout, limit: float, say: Say, plan: TryPlan, chosen: str, host_code: Path | None
) -> Iterator[TryRow]:
    metal = checkout.files("*.metal", "*.metallib")
    host = checkout.files("*.mm")
    python = [path for path in checkout.files("*.py") if _COMPILES.search(path.read_text("utf-8", "replace"))]
    if not metal and not host and not python:
        raise ScaffoldError(
            f"{checkout.folder} has no .metal, .metallib or .mm file, and no Python that uses mps: nothing to try"
        )
    build = next((name for name in (SETUP, BUILD_FILE) if (checkout.copy / name).is_file()), "")
    plan.add("metal", map(checkout.named, metal))
    plan.add("extension", [build] if build else [])
    plan.add("test", map(checkout.named, _files_with_tests(checkout)))
    for path in metal:
        say(f"checking {checkout.named(path)}")
        row = _metal_row(path, checkout)
        readers = (checkout.named(source) for source in (*host, *python) if _names(source, path))
        reader = next(readers, "")
        yield joined_row(row, reader, path.read_text("utf-8", "replace")) if reader else row
    packages = checkout.copy / "src" if (checkout.copy / "src").is_dir() else checkout.copy
    checkout.compile_for_a_mac()
    extensions: set[str] = set()
    kernel = ""
    if build:
        say(f"reading {build}")
        try:
            script = requests_of(checkout.copy) if build == SETUP else requests_of_build_file(checkout.copy)
        except ScaffoldError as error:
            yield script_row(build, one_line(error), has_host_code=bool(host))
        else:
            packages, extensions = script.packages, {request.name for request in script.requests}
            kernel = script.kernel
            plan.add("extension", extensions, instead=build)
            if script.problem:
                yield TryRow("metal", build, TryResult.WRONG, f"build_ext fails: {script.problem}", build)
            checkout.compile_for_a_mac()
            yield from _extension_rows(checkout, script, say)
    elif host:
        deeper = [path.parent for path in checkout.files(SETUP, BUILD_FILE)]
        hint = f"try {checkout.named(deeper[0])}, which has one" if deeper else "only a test can build the .mm files"
        yield TryRow("extension", SETUP, TryResult.SKIPPED, f"there is none: {hint}")
    tests = _files_with_tests(checkout)
    if not tests:
        yield TryRow("test", "tests", TryResult.SKIPPED, f"no file {', '.join(_TESTS)} has tests for pytest")
        return
    say(f"files with tests: {len(tests)}; each test may take {limit:g} s")
    environment = {
        "MPSMITH_METAL_MODE": os.environ.get("MPSMITH_METAL_MODE", "checked"),
        LOCAL_KERNEL: kernel,
        HOST_CODE: "" if host_code is None else str(host_code),
        "PATH": os.pathsep.join([str(tools_folder()), os.environ.get("PATH", os.defpath)]),
    }
    own = frozenset(path.stem for folder in (packages, checkout.copy) for path in folder.iterdir())
    folders = list(dict.fromkeys([packages, checkout.copy]))
    seen: set[str] = set()  # each process reports the files that cannot be imported
    invalid: set[str] = set()
    for end in run_tests(checkout.copy, tests, folders, limit, environment, plan.add_tests, chosen):
        if end.outcome == "invalid" and end.text not in invalid:
            invalid.add(end.text)
            yield TryRow("host", end.test, TryResult.DEFECT, f"Metal's validation refuses it: {end.text}")
        if end.test in seen or end.outcome == "invalid":
            continue
        file = end.test.removesuffix(SCRIPT)
        if end.outcome == "hung" and file != end.test and any(f"{file}test" in test for test in seen):
            end = replace(end, outcome="skipped", text=f"what follows the script's tests takes longer than {end.text}")
        seen.add(end.test)
        yield test_row(end, own, extensions)


def _names(code: Path, metal: Path) -> bool:
    """Whether this code, if it is not the build script, names a Metal file."""
    return code.name != SETUP and metal.name in code.read_text("utf-8", "replace")


def _metal_row(path: Path, checkout: Checkout, include: tuple[Path, ...] = ()) -> TryRow:
    """The row of a file. Searches the whole checkout for missing headers, as the build may name their folders."""
    name = str(path)
    try:
        (result,) = check_files([path], options=CompileOptions(include=include))
    except MpsmithError as error:
        return TryRow("metal", name, TryResult.REFUSED, one_line(error))
    errors = [finding for finding in result.findings if finding.severity == "error"]
    header = next((match["name"] for error in errors if (match := _NO_HEADER.search(error.message))), "")
    folders = [place.parents[header.count("/")] for place in checkout.files(Path(header).name)] if header else []
    with_header = tuple(folder for folder in folders if (folder / header).is_file() and folder not in include)
    if with_header:
        return _metal_row(path, checkout, (*include, *with_header[:1]))
    if errors:
        rows = [diagnostic_row("metal", name, error) for error in errors]
        return next((row for row in rows if row.result is TryResult.DEFECT), rows[0])
    if not result.checked:
        return TryRow("metal", name, TryResult.SKIPPED, "; ".join(finding.message for finding in result.findings))
    return TryRow("metal", name, TryResult.ACCEPTED)


def _extension_rows(checkout: Checkout, script: SetupScript, say: Say) -> Iterator[TryRow]:
    for request in script.requests:
        say(f"building {request.name}: {', '.join(checkout.named(path) for path in request.sources)}")
        yield from _built_rows(request, checkout.copy)


def _built_rows(request: ExtensionRequest, folder: Path) -> Sequence[TryRow]:
    others = [path.name for path in request.sources if path.suffix not in CODE]
    if others or not request.sources:
        reason = f"{', '.join(others) or 'an extension without sources'}: only {', '.join(CODE)} are built here"
        return [TryRow("extension", request.name, TryResult.SKIPPED, reason)]
    gone = next((path for path in request.sources if not path.is_file()), None)
    if gone is not None:
        return [TryRow("extension", request.name, TryResult.DEFECT, f"there is no file {gone}", SETUP)]
    rows = [row for path in request.sources for row in _host_rows(path)]
    try:
        built_or_kept(request, folder)
    except MpsmithError as error:
        rows += build_rows(request.name, error)
        older = [option for option in request.options.others if option.startswith("-std=")]
        if not older or not any("/torch/include/" in row.file for row in rows):
            return rows
        # torch's own builder would ask for the standard that its headers need.
        kept = tuple(option for option in request.options.others if option not in older)
        try:
            built_or_kept(replace(request, options=replace(request.options, others=kept)), folder)
        except MpsmithError as error:
            return list(build_rows(request.name, error))
        rows = [
            row
            if row.kind == "host"
            else replace(row, reason=f"{older[-1]} does not compile torch's headers: {row.reason}")
            for row in rows
        ]
    return [*rows, TryRow("extension", request.name, TryResult.ACCEPTED)]


def _host_rows(path: Path) -> Iterator[TryRow]:
    """Rows for code that compiles and runs here, but is wrong on a Mac."""
    for finding in check_host_code(path, path.read_text("utf-8", "replace")):
        yield TryRow("host", str(path), TryResult.DEFECT, finding.message, finding.file, finding.line)


def _files_with_tests(checkout: Checkout) -> list[Path]:
    return [path for path in checkout.files(*_TESTS) if _A_TEST.search(path.read_text("utf-8", "replace"))]
