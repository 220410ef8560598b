"""Finished families as patches against PyTorch: rows, moved Metal, lists of expected failures, the description."""

from __future__ import annotations

import re

import pytest
import torch

from mpsmith.kernels.runtime import catalog
from mpsmith.kernels.verification.accuracy import Accuracy, ulps
from mpsmith.registry.files import load
from mpsmith.scaffold.errors import NothingToPatchError, ScaffoldError
from mpsmith.scaffold.operators.source import Source, source_of
from mpsmith.scaffold.release_files import files_of
from mpsmith.scaffold.suggestions import finished_families
from mpsmith.scaffold.targets.upstream import family
from mpsmith.scaffold.targets.upstream.evidence import FamilyEvidence
from mpsmith.scaffold.targets.upstream.expected_failures import narrowed, with_complex
from mpsmith.scaffold.targets.upstream.family import Family
from mpsmith.scaffold.targets.upstream.family_metal import elementwise_functors, moved
from mpsmith.scaffold.targets.upstream.family_rows import planned_rows
from mpsmith.scaffold.targets.upstream.patch import Tree, tree_of

IN_PYTORCH = {
    "count_distributions",
    "ctc_loss",
    "eigh",
    "frexp",
    "int_mm",
    "logspace",
    "matrix_exp",
    "put_take",
    "shrink",
    "svd",
}
WITHOUT_HOST_CODE = {"convolution": "_slow_conv2d_forward"}
YAML = """\
- func: airy.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    CPU, CUDA: airy_out

- func: pdist(Tensor self) -> Tensor
  dispatch:
    CPU: pdist_cpu
    CUDA: pdist_cuda

- func: split(Tensor key) -> Tensor
  dispatch:
    CUDA: split_cuda

- func: logit_(Tensor(a!) self) -> Tensor(a!)
  dispatch:
    CPU, CUDA: logit_

- func: logit.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU, CUDA: logit_out
    MPS: logit_out_mps

- func: mode.values(Tensor self, *, Tensor(a!) values) -> Tensor(a!)
  dispatch:
    CompositeExplicitAutograd: mode_out
"""


@pytest.fixture(scope="module")
def source() -> Source:
    return source_of(None)


@pytest.fixture(scope="module")
def tree() -> Tree:
    return tree_of(files_of(None))


def test_a_row_names_the_kernel_of_the_host_code_or_the_shared_one() -> None:
    rows = planned_rows(YAML, ["airy.out"], "REGISTER_DISPATCH(airy_stub, &airy_kernel_mps)\n")
    assert dict(rows.kernels) == {"airy.out": "airy_out"}
    assert rows.shared == ("airy.out",)
    rows = planned_rows(
        YAML, ["airy.out", "pdist"], "TORCH_IMPL_FUNC(airy_out_mps)(x) {\n}\nTensor pdist_mps(x) {\n}\n"
    )
    assert dict(rows.kernels) == {"airy.out": "airy_out_mps", "pdist": "pdist_mps"}
    assert rows.shared == ()


def test_existing_rows_and_composite_overloads_are_left_alone() -> None:
    rows = planned_rows(YAML, ["logit.out", "mode.values", "logit_"], None)
    assert rows.native == ("logit.out",)
    assert rows.composed == ("mode.values",)
    assert dict(rows.kernels) == {"logit_": "logit_"}  # it only calls logit.out
    delegate = "- func: scaled(Tensor self) -> Tensor\n  structured_delegate: scaled.out\n"
    assert planned_rows(delegate, ["scaled"], "Tensor scaled_mps(x) {\n}\n").composed == ("scaled",)


@pytest.mark.parametrize(
    ("host", "message"),
    [(None, "needs host code in PyTorch's idiom: {}_mps"), ("int x;", ": the host code has no {}_mps")],
)
@pytest.mark.parametrize("overload", ["pdist", "split"])
def test_names_an_undefined_kernel(overload: str, host: str | None, message: str) -> None:
    with pytest.raises(ScaffoldError, match=message.format(overload)):
        planned_rows(YAML, [overload], host)


def test_every_finished_family_serves_a_gap_of_the_release(source: Source, tree: Tree) -> None:
    for name in sorted({entry.kernel for entry in catalog.finished_entries()}):
        chosen = Family.named(name)
        if name in IN_PYTORCH or name in WITHOUT_HOST_CODE:
            continue
        overloads = family._served(chosen, source)
        host = family._host_code(chosen, family._operators(overloads, source), tree)
        rows = planned_rows(tree.native_functions, overloads, host)  # raises where a kernel is missing
        assert {*rows.kernels, *rows.native, *rows.composed} == set(overloads)


def test_every_family_that_next_names_has_a_patch_that_a_reviewer_takes(source: Source, tree: Tree) -> None:
    for finished in finished_families(load()):
        if finished.family == "nested":  # no OpInfo tests it, so that its patch brings a test
            continue
        files = family.generate(Family.named(finished.family), source, tree).generated.files
        patch = files[f"{finished.family}.patch"]
        assert "mpsmith:" not in patch
        assert "b/test/" not in patch, "OpInfos test it"
        assert max(len(line) for line in patch.splitlines() if line.startswith("+")) <= 121, finished.family


@pytest.mark.parametrize("name", WITHOUT_HOST_CODE)
def test_a_family_without_host_code_says_which_operator_needs_it(name: str, source: Source, tree: Tree) -> None:
    overloads = family._served(Family.named(name), source)
    with pytest.raises(ScaffoldError, match=f"{WITHOUT_HOST_CODE[name]} needs host code in PyTorch's idiom"):
        planned_rows(tree.native_functions, overloads, None)


def test_elementwise_functors_go_through_the_kernels_of_the_tree() -> None:
    path = catalog.folder_of("heaviside") / "heaviside.metal"
    (functor,) = elementwise_functors(path)
    assert (functor.name, functor.operands, len(functor.types)) == ("heaviside", 2, 9)
    text = moved(path)
    assert "REGISTER_BINARY_OP(heaviside, bool, bool);" in text
    assert "#include <c10/metal/indexing.h>\n#include <metal_stdlib>\nusing namespace metal;\n" in text
    assert "constant float*" not in text
    assert "shared/" not in text


@pytest.mark.parametrize("name", ["shrink", "fake_quantize", "put_take"])
def test_functors_with_numbers_or_two_results_and_separate_kernels_do_not(name: str) -> None:
    assert elementwise_functors(catalog.folder_of(name) / f"{name}.metal") == ()


def test_separate_kernels_are_one_file_that_reports_errors() -> None:
    text = moved(catalog.folder_of("put_take") / "put_take.metal")
    assert text.count("using namespace metal;") == text.count("#include <metal_stdlib>") == 1
    assert text.startswith("#include <c10/metal/error.h>\n")
    assert "#line" not in text
    assert "#ifdef REPORTS" not in text
    assert "#define REPORT(...) TORCH_REPORT_ERROR(reports, __VA_ARGS__)" in text


COMMON_MPS = """\
SUPPORTED_COMPLEX_OPS = {
    "abs",
    "tan",
}
UNIMPLEMENTED_XFAILLIST = {
    "nn.functional.pdist": None,
    "take": [
        torch.int8,
    ],
    "x": None,
}
"""


def test_an_entry_stays_for_the_dtypes_that_still_fail() -> None:
    text = narrowed(COMMON_MPS, {"nn.functional.pdist": frozenset(), "take": {"int16", "bool"}})
    assert '"nn.functional.pdist"' not in text
    assert '    "take": [torch.bool, torch.int16],\n    "x": None,\n' in text


def test_an_operator_with_complex_dtypes_is_listed_once() -> None:
    text = with_complex(COMMON_MPS, ["take", "abs", "zeros"])
    assert text.startswith('SUPPORTED_COMPLEX_OPS = {\n    "abs",\n    "take",\n    "tan",\n    "zeros",\n}\n')


def evidence_of(name: str, **fields: object) -> FamilyEvidence:
    values: dict[str, object] = {
        "family": name,
        "source": "0123",
        "torch": "2.13.0",
        "simulated": True,
        "accuracy": (Accuracy("special.airy_ai", "float32", 6, 0, 1.25, 0.5, True),),
        "timing": None,
        "opinfo_dtypes": {"special.airy_ai": frozenset({"float32", "bool"})},
    }
    return FamilyEvidence(**(values | fields))  # type: ignore[arg-type]


def test_a_family_of_functors_gets_rows_host_code_metal_and_a_description(source: Source, tree: Tree) -> None:
    patch = family.generate(Family.named("airy"), source, tree, evidence_of("airy"))
    files = patch.generated.files
    host = files["tree/aten/src/ATen/native/mps/operations/Airy.mm"]
    assert 'lib.exec_unary_kernel(iter, "special_airy_ai");' in host
    assert "REGISTER_DISPATCH(special_airy_ai_stub, &special_airy_ai_kernel_mps)" in host
    assert "+    CPU, CUDA, MPS: special_airy_ai_out\n" in files["airy.patch"]
    assert "include/ATen/ops/special_airy_ai_native.h" in files
    description = files["description.md"]
    assert "| special.airy_ai | float32 | 6 | 0 | 1.25 | 0.50 | compared |" in description
    assert "*not on a Mac*" in description
    assert "No times" in description
    # The dtypes in which the OpInfo's sample ran are expected to fail no longer; those of the integers still are.
    assert '-            "special.airy_ai": None,' in files["airy.patch"]
    assert '+            "special.airy_ai": [' in files["airy.patch"]


def test_without_evidence_no_expectation_changes(source: Source, tree: Tree) -> None:
    patch = family.generate(Family.named("airy"), source, tree)
    assert "common_mps.py" not in patch.generated.files["airy.patch"]
    assert "Nothing was measured" in patch.generated.files["description.md"]


@pytest.mark.parametrize("name", sorted(IN_PYTORCH))
def test_a_family_whose_kernels_pytorch_has_needs_no_patch(name: str, source: Source, tree: Tree) -> None:
    message = f"torch 2.15.0 has kernels on mps for all that {name} serves: nothing to patch"
    with pytest.raises(NothingToPatchError, match=re.escape(message)):
        family.generate(Family.named(name), source, tree)


def test_a_row_alone_may_be_all(source: Source, tree: Tree) -> None:
    patch = family.generate(Family.named("logit"), source, tree)
    assert dict(patch.rows.kernels) == {"logit_": "logit_"}
    assert "new file" not in patch.generated.files["logit.patch"]
    assert not any(path.endswith((".mm", ".metal")) for path in patch.generated.files)
    assert "nothing but the rows is new" in patch.generated.files["description.md"]


def test_the_family_is_found_by_any_operator_that_it_serves() -> None:
    assert Family.serving("special_log_ndtr").name == "normal_distribution"


def test_distances_are_counted_in_units_of_the_last_place() -> None:
    results = torch.tensor([1.0, 0.0, float("nan")])
    assert ulps(results, torch.tensor([1.0 + 2**-23, 0.0, 0.0], dtype=torch.float64)) == 1.0
    assert ulps(results.half(), torch.tensor([1.0 + 2**-11, 0.0, 0.0], dtype=torch.float64)) == 0.5
    assert ulps(torch.tensor([2j]), torch.tensor([(2 + 2**-22) * 1j], dtype=torch.complex128)) == 1.0
    assert ulps(torch.tensor([float("inf")]), torch.tensor([1.0], dtype=torch.float64)) == 0.0
