"""Finished families as packages: the patch's host code and Metal, and what PyTorch's build would generate."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.scaffold.errors import ScaffoldError
from mpsmith.scaffold.generation.from_kernel import FamilyScaffold, prepare_extension
from mpsmith.scaffold.operators.source import Source, source_of
from mpsmith.simulator.upstream.operations import KERNELS, OPERATIONS


@pytest.fixture(scope="module")
def source() -> Source:
    return source_of(None)


@pytest.fixture(scope="module")
def mode(source: Source, tmp_path_factory: pytest.TempPathFactory) -> FamilyScaffold:
    return prepare_extension(source, "mode", out=tmp_path_factory.mktemp("mode"))


def text_of(made: FamilyScaffold, place: str) -> str:
    return next(change.after for change in made.plan.changes if change.path == made.plan.folder / place)


def test_host_code_and_metal_are_the_patch_s(mode: FamilyScaffold) -> None:
    in_the_patch = mode.patch.generated.files
    assert text_of(mode, "src/Mode.mm") == in_the_patch[f"tree/{OPERATIONS}/Mode.mm"]
    header = text_of(mode, "src/include/ATen/native/mps/Mode_metallib.h")
    metal = [line for line in in_the_patch[f"tree/{KERNELS}/Mode.metal"].splitlines() if "#include" not in line]
    assert set(metal) <= set(header.splitlines())


def test_one_file_registers_every_overload_and_is_the_module(mode: FamilyScaffold) -> None:
    text = text_of(mode, "src/extension.mm")
    for overload in ("mode", "mode.values"):
        assert f'm.impl("{overload}",' in text
    assert '#include "Mode.mm"' in text
    assert "PyInit_##name" in text
    assert text_of(mode, "setup.py").count("src/extension.mm") == 1
    declarations = text_of(mode, "src/include/ATen/ops/mode_native.h")
    assert " mode_mps(" in declarations
    assert " mode_values_mps(" in declarations


def test_kernels_that_torch_declares_itself_are_left_to_it(source: Source, tmp_path: Path) -> None:
    declarations = text_of(prepare_extension(source, "variance", out=tmp_path), "src/include/ATen/ops/std_native.h")
    assert " std_correction_out_mps(" in declarations
    assert " std_mps(" not in declarations


def test_its_tests_run_the_family_s_cases_without_the_kernels_in_python(mode: FamilyScaffold) -> None:
    assert 'FamilySubject("mode", mode_mps.OVERLOADS)' in text_of(mode, "tests/test_mode.py")
    assert 'os.environ["MPSMITH_KERNELS"] = "off"' in text_of(mode, "tests/conftest.py")
    assert '"aten::mode.values",' in text_of(mode, "mode_mps/__init__.py")


def test_the_checker_is_told_how_it_is_compiled(mode: FamilyScaffold) -> None:
    manifest = mode.plan.manifest
    assert (manifest.target, manifest.arc, manifest.include) == ("extension", False, ("src/include",))
    assert "PYTORCH_JIT_COMPILE_SHADERS" in manifest.definitions


def test_rows_alone_make_no_extension(source: Source, tmp_path: Path) -> None:
    with pytest.raises(ScaffoldError, match=r"logit needs rows in native_functions\.yaml alone"):
        prepare_extension(source, "logit", out=tmp_path)
