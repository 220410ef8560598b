"""Every gap of the installed torch can be scaffolded for every target, in a form that its readers accept."""

from __future__ import annotations

import ast
import importlib
import re
import runpy
from pathlib import Path

import pytest
import torch

from mpsmith.scaffold.operators.isolated_observation import observations_of
from mpsmith.scaffold.operators.kinds import KernelKind, kind_of
from mpsmith.scaffold.operators.source import Source, source_of
from mpsmith.scaffold.release_files import files_of
from mpsmith.scaffold.targets import Generated, Request, extension, shader
from mpsmith.scaffold.targets.regions import regions_of
from mpsmith.scaffold.targets.upstream import patch as upstream

LACKING = ("missing", "always falls back")


@pytest.fixture(scope="module")
def source() -> Source:
    return source_of(None)


@pytest.fixture(scope="module")
def requests(source: Source) -> list[Request]:
    """Every operator that lacks a kernel, those that no user reaches included."""
    names = sorted({o.operator.removeprefix("aten::") for o in source.surface.overloads if o.dispatch.value in LACKING})
    operators = [source.operator(name) for name in names]
    return [Request(operator, kind_of(operator).kind, (operator.name,)) for operator in operators if operator.kernels]


def test_there_are_as_many_gaps_as_the_surface_says(requests: list[Request]) -> None:
    assert len(requests) > 100


def is_python_whose_imports_resolve(generated: Generated) -> None:
    for path, text in generated.files.items():
        for node in ast.walk(ast.parse(text, path)) if path.endswith(".py") else ():
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mpsmith."):
                module = importlib.import_module(str(node.module))
                assert all(hasattr(module, alias.name) for alias in node.names), ast.unparse(node)


def says_that_it_is_not_written(generated: Generated, request: Request, kernels: str) -> None:
    text = "".join(text for path, text in generated.files.items() if path.endswith(kernels))
    assert "is not written yet" in text, request.operator.name


def marks_are_whole(generated: Generated) -> None:
    for path, text in generated.files.items():
        if not path.endswith(".patch"):
            regions_of(text, path)


@pytest.mark.parametrize("target", [shader, extension], ids=lambda module: module.__name__.rpartition(".")[2])
def test_every_gap_has_a_scaffold(requests: list[Request], target: object) -> None:
    for request in requests:
        generated = target.generate(request)  # type: ignore[attr-defined]
        is_python_whose_imports_resolve(generated)
        marks_are_whole(generated)
        says_that_it_is_not_written(generated, request, f"/{request.operator.stem}.py" if target is shader else ".mm")
        for kernel in request.launches:
            assert any(f"aten::{kernel.name}" in text for text in generated.files.values())


def test_in_the_repository_a_kernel_gets_a_folder_with_cases(source: Source, tmp_path: Path) -> None:
    operator = source.operator("special_ndtri")
    generated = shader.generate(Request(operator, KernelKind.UNARY, ("special.ndtri",)), in_package=True)
    is_python_whose_imports_resolve(generated)
    names = {path.rpartition("/")[2] for path in generated.files if path.startswith("kernels/special_ndtri/")}
    assert names == {"__init__.py", "cases.py", "special_ndtri.py", "special_ndtri.metal"}
    cases = generated.files["kernels/special_ndtri/cases.py"].replace("from ..", "from mpsmith.kernels.")
    module = tmp_path / "cases.py"
    module.write_text(cases)
    (call,) = runpy.run_path(str(module))["CASES"]
    assert (call.name, call.operators, call.elementwise) == ("special.ndtri", ("aten::special_ndtri",), True)
    (case,) = call.cases(torch.float32)
    assert torch.equal(case.call(case.args[0].sigmoid()), torch.special.ndtri(case.args[0].sigmoid()))
    assert "cases.py" not in "".join(shader.generate(Request(operator, KernelKind.UNARY)).files)


@pytest.mark.parametrize(("name", "count"), [("heaviside", 2), ("_linalg_eigvals", 1), ("normal_functional", 1)])
def test_the_first_inputs_of_its_cases_are_as_many_as_the_schema_requires(
    source: Source, name: str, count: int
) -> None:
    generated = shader.generate(Request(source.operator(name), KernelKind.BINARY), in_package=True)
    (cases,) = (text for path, text in generated.files.items() if path.endswith("/cases.py"))
    assert cases.count("values((7, 5), dtype)") == count
    is_python_whose_imports_resolve(generated)


def test_every_gap_has_an_upstream_patch(requests: list[Request], source: Source) -> None:
    tree = upstream.tree_of(files_of(source.release))
    for request in requests:
        generated = upstream.generate(request, tree)
        is_python_whose_imports_resolve(generated)
        marks_are_whole(generated)
        patch = generated.files[f"{request.operator.stem}.patch"]
        rows = re.findall(r"^\+    (?:.*, )?MPS: \S+$", patch, re.MULTILINE)
        changed_rows = re.findall(r"^\+    .*\bMPS\b.*: \S+$", patch, re.MULTILINE)
        assert len(rows) + len(changed_rows) >= len(request.launches), request.operator.name


def test_every_overload_that_shares_no_kernel_is_registered(requests: list[Request]) -> None:
    for request in requests:
        generated = extension.generate(request)
        host = generated.files[f"src/{request.operator.stem}.mm"]
        for overload in request.operator.kernels:
            assert f'm.impl("{overload.name}"' in host
            assert f"at::_ops::{overload.identifier}::schema" in host
        assert set(generated.registers) == {overload.name for overload in request.operator.kernels}


def test_an_elementwise_operator_with_a_stub_only_fills_it_in(source: Source) -> None:
    tree = upstream.tree_of(files_of(source.release))
    generated = upstream.generate(Request(source.operator("special_ndtri"), KernelKind.UNARY), tree)
    host = generated.files["tree/aten/src/ATen/native/mps/operations/SpecialNdtri.mm"]
    assert "REGISTER_DISPATCH(special_ndtri_stub, &special_ndtri_kernel)" in host
    assert "+    CPU, CUDA, MPS: special_ndtri_out" in generated.files["special_ndtri.patch"]
    assert (files_of(None).include / "ATen/native/UnaryOps.h").is_file()


def test_generated_tests_remove_only_the_served_kernels(source: Source) -> None:
    """A kernel of torch's stays where this one does not serve the overload: its tests call it on the way."""
    logit, largest = source.operator("logit_"), source.operator("max")
    assert Request(logit, KernelKind.UNARY).under_test == ["logit_"]
    assert "max.unary_out" in Request(largest, KernelKind.REDUCTION).under_test
    assert "max.dim_max" not in Request(largest, KernelKind.REDUCTION).under_test
    relu = source.operator("relu")
    assert {"relu", "relu_"} <= set(Request(relu, KernelKind.UNARY).under_test)


def test_samples_of_a_functional_form_that_is_composed_of_others_test_no_kernel_of_it(source: Source) -> None:
    assert not source.operator("adaptive_avg_pool3d").is_reached_by_samples
    for name in ("adaptive_max_pool3d", "max", "logit_", "mode", "frexp"):
        assert source.operator(name).is_reached_by_samples, name


def test_the_patch_takes_the_operator_off_the_list_of_failures(source: Source) -> None:
    generated = upstream.generate(
        Request(source.operator("mode"), KernelKind.SORT, ("mode",)), upstream.tree_of(files_of(source.release))
    )
    assert re.search(r'^-\s+"mode": None,$', generated.files["mode.patch"], re.MULTILINE)


@pytest.mark.parametrize("kind", list(KernelKind))
def test_every_kind_has_a_body(source: Source, kind: KernelKind) -> None:
    request = Request(source.operator("mode"), kind)
    assert "mpsmith: begin mode" in extension.generate(request).files["src/mode_metal.h"]


def test_no_two_gaps_share_a_file_name(requests: list[Request]) -> None:
    stems = [request.operator.stem for request in requests]
    assert len(set(stems)) == len(stems)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        # torchgen gives the kernel numbers in place of lists that the meta function has looked at.
        ("fractional_max_pool3d", "  const std::array<int64_t, 3> kernel_size = {poolSizeT, poolSizeH, poolSizeW};"),
        ("_slow_conv2d_backward", "static std::vector<int64_t> list_of(const std::array<bool, count>& values) {"),
    ],
)
def test_lists_come_to_the_host_code_of_a_patch_as_torchgen_declares_them(source: Source, name: str, line: str) -> None:
    operator = source.operator(name)
    request = Request(operator, kind_of(operator).kind)
    files = upstream.generate(request, upstream.tree_of(files_of(operator.release))).files
    (host,) = (text for path, text in files.items() if path.endswith(".mm"))
    assert line in host


def test_the_tests_ask_for_the_integers_that_the_cpu_takes(source: Source) -> None:
    operator = source.operator("heaviside")
    integers = ("int64", "int32", "int16", "int8", "uint8", "bool")
    observations = observations_of(operator)
    request = Request(operator, KernelKind.BINARY, ("heaviside",), observations, cpu_dtypes=frozenset(integers))
    files = shader.generate(request).files
    assert "BINARY(heaviside_out, uchar)" in files["kernels/heaviside/heaviside.metal"]
    assert "integers=(torch.int64, torch.int32" in files["kernels/heaviside/heaviside.py"]
    for name in integers:
        assert f'"{name}"' in files["tests/test_heaviside.py"]
    airy = source.operator("special_airy_ai")  # its results are floats
    asked = Request(airy, KernelKind.UNARY, (), observations_of(airy), cpu_dtypes=frozenset(integers))
    assert asked.tested_integers(promotes=True) == integers
    assert asked.tested_integers(promotes=False) == ()
