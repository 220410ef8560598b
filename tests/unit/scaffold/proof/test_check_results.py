"""Which results of `mpsmith check` are kept, and what makes a kept one void."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith import cache
from mpsmith.scaffold.proof import check_results as results
from mpsmith.scaffold.proof import metal_sources
from mpsmith.scaffold.proof.check_results import DECIDING_CODE
from mpsmith.scaffold.proof.checking import CheckResult, check_files
from mpsmith.simulator.clang import CompilerMissingError
from mpsmith.simulator.objc.compile_options import CompileOptions
from support.needs import needs_metal_on_host

WITH_DOUBLE = """\
#include <metal_stdlib>
kernel void twice(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] = double(x[i]); }
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPSMITH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "twice.metal"
    path.write_text(WITH_DOUBLE)
    return path


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every program that the shader checker is asked about; it finds nothing wrong with any."""
    programs: list[str] = []
    monkeypatch.setattr(metal_sources, "check_key", lambda program, *_, **options: program)
    monkeypatch.setattr(metal_sources, "check", lambda program, *_, **options: programs.append(program) or [])
    return programs


def checked(file: Path) -> CheckResult:
    (result,) = check_files([file])
    return result


def without_compiler(*_: object, **__: object) -> list[object]:
    raise CompilerMissingError("no compiler here")


def test_unchecked_files_are_neither_accepted_nor_cached(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as machine:
        machine.setattr(metal_sources, "check", without_compiler)
        machine.setattr(metal_sources, "check_key", without_compiler)
        for _ in range(2):
            result = checked(file)
            assert (result.checked, result.accepted, result.cached) == (False, False, False)
    needs_metal_on_host()
    with_compiler = checked(file)
    assert not with_compiler.accepted
    assert "'double' is not supported" in with_compiler.findings[0].message


def test_a_result_is_cached_until_the_program_changes(file: Path, runs: list[str]) -> None:
    assert [checked(file).cached, checked(file).cached] == [False, True]
    file.write_text(WITH_DOUBLE.replace("double", "float"))
    assert not checked(file).cached
    assert len(runs) == 2


def test_included_headers_are_part_of_the_cache_key(tmp_path: Path) -> None:
    needs_metal_on_host()
    header, file = tmp_path / "factor.h", tmp_path / "twice.metal"
    header.write_text("constant float factor = 2.0f;\n")
    file.write_text('#include "factor.h"\n' + WITH_DOUBLE.replace("double(x[i])", "factor"))
    before = metal_sources.cache_keys(file, [file.read_text()], "3.1")
    header.write_text("constant double factor = 2.0;\n")
    assert metal_sources.cache_keys(file, [file.read_text()], "3.1") != before


def test_a_header_of_an_include_folder_is_part_of_a_program(tmp_path: Path) -> None:
    needs_metal_on_host()
    include, file = tmp_path / "include", tmp_path / "twice.metal"
    include.mkdir()
    (include / "factor.h").write_text("constant float factor = 2.0f;\n")
    file.write_text("#include <factor.h>\n" + WITH_DOUBLE.replace("double(x[i])", "factor"))
    options = CompileOptions(include=(include,))
    (first,), (again,) = check_files([file], options=options), check_files([file], options=options)
    assert (first.accepted, first.cached, again.cached) == (True, False, True)
    (include / "factor.h").write_text("constant double factor = 2.0;\n")
    (changed,) = check_files([file], options=options)
    assert (changed.accepted, changed.cached) == (False, False)


def test_address_spaces_are_real_in_a_check(file: Path) -> None:
    needs_metal_on_host()
    file.write_text("kernel void k(device float* x) { thread float* wrong = x; wrong[0] = 1; }\n")
    (finding,) = metal_sources.check_metal(file, metal_sources.metal_programs(file, file.read_text()), "3.1")
    assert (finding.line, finding.severity, finding.rule) == (1, "error", "metal: address-space")


@pytest.mark.parametrize("judge", DECIDING_CODE)
def test_a_changed_dependency_invalidates_the_result(
    file: Path, runs: list[str], judge: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not checked(file).cached
    changed = cache.source_files(judge)[-1]
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + (b"# changed\n" if path == changed else b""))
    cache.fingerprint_of_code.cache_clear()
    try:
        assert not checked(file).cached
    finally:
        cache.fingerprint_of_code.cache_clear()
    assert len(runs) == 2


def test_a_damaged_result_is_not_used(file: Path, runs: list[str]) -> None:
    checked(file)
    (kept,) = (results.check_folder() / "results").rglob("*.json")
    kept.write_text("{}")
    assert not checked(file).cached
