"""Caches that are named by the code that decides: everything that such code imports is part of the name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import mpsmith
from mpsmith.cache import fingerprint, fingerprint_of_code, source_files
from mpsmith.scaffold.proof import check_results
from mpsmith.simulator.metal.compiler import DECIDING_CODE
from mpsmith.simulator.objc.apple.location import GENERATORS

ROOT = Path(mpsmith.__file__).parent
# The names that go into a fingerprint, and the modules where the deciding begins.
CACHES = {
    "results of mpsmith check": (check_results.DECIDING_CODE, [ROOT / "scaffold/proof/checking.py"]),
    "declarations of Apple's frameworks": (
        GENERATORS,
        [ROOT / f"simulator/objc/apple/{name}.py" for name in ("metal_header", "mps_headers", "sources")],
    ),
    "compiled Metal programs": (DECIDING_CODE, sorted((ROOT / "simulator/metal").glob("*.py"))),
}


def imported(path: Path) -> Iterator[Path]:
    """The modules of mpsmith that a module names in its imports, those inside functions included."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            place = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            for name in (alias.name for alias in node.names):
                spelled = (place / f"{name}.py", place / name / "__init__.py", place.with_suffix(".py"))
                yield next(file for file in (*spelled, place / "__init__.py") if file.is_file())


def left_out(names: tuple[str, ...], starts: list[Path]) -> list[str]:
    """The modules that are reached through imports and are in no part of the fingerprint."""
    reached: set[Path] = set()
    waiting = list(starts)
    while waiting:
        module = waiting.pop()
        if module not in reached:
            reached.add(module)
            waiting += imported(module)
    covered = {path for name in names for path in source_files(name)}
    return sorted(str(path.relative_to(ROOT)) for path in reached - covered)


@pytest.mark.parametrize("cache", CACHES)
def test_every_module_that_decides_is_in_the_fingerprint(cache: str) -> None:
    assert left_out(*CACHES[cache]) == []


@pytest.mark.parametrize(("cache", "name"), [(cache, name) for cache, (names, _) in CACHES.items() for name in names])
def test_a_name_that_is_left_out_is_noticed(cache: str, name: str) -> None:
    names, starts = CACHES[cache]
    assert left_out(tuple(other for other in names if other != name), starts)


def test_a_changed_file_changes_the_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint_of_code("simulator.clang")
    header = source_files("simulator.clang")[0]
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + (b"#" if path == header else b""))
    fingerprint_of_code.cache_clear()
    try:
        assert fingerprint_of_code("simulator.clang") != before
    finally:
        fingerprint_of_code.cache_clear()


def test_a_package_brings_its_headers_and_no_compiled_python() -> None:
    suffixes = {path.suffix for path in source_files("simulator.metal")}
    assert {".py", ".h", ".cpp"} <= suffixes
    assert ".pyc" not in suffixes


def test_a_module_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"no module or package scaffold\.gone"):
        source_files("scaffold.gone")


def test_borders_between_texts_count() -> None:
    assert fingerprint("ab", "c") != fingerprint("a", "bc")
