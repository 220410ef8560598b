"""What a tree's files define, and what torchgen makes of their rows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torchgen

from mpsmith.simulator.errors import UpstreamError
from mpsmith.simulator.objc.closed_functions import refusing
from mpsmith.simulator.upstream import building
from mpsmith.simulator.upstream.operations import (
    ATEN,
    KERNELS,
    OPERATIONS,
    OperationFile,
    changed_headers,
    defines,
    operation_files,
    shader_header,
)
from mpsmith.simulator.upstream.registrations import MpsKernel, MpsYaml
from mpsmith.simulator.upstream.shared_kernels import NATIVE, stubs_called

TAGS = Path(torchgen.__file__).parent / "packaged/ATen/native/tags.yaml"
YAML = """\
- func: special_airy_ai(Tensor x) -> Tensor
  python_module: special
  structured_delegate: special_airy_ai.out
  variants: function
  tags: pointwise

- func: special_airy_ai.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU, CUDA, MPS: special_airy_ai_out
  python_module: special
  structured_inherits: TensorIteratorBase
  structured: True
  variants: function
  tags: pointwise

- func: eye(int n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
  dispatch:
    CompositeExplicitAutograd: eye

- func: eye.out(int n, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU: eye_out_cpu
    MPS: eye_out_mps

- func: _pdist_forward(Tensor self, float p=2) -> Tensor
  dispatch:
    CPU, CUDA: _pdist_forward
    MPS: _pdist_forward_mps
"""
HOST = """\
#include <ATen/native/mps/Eye_metallib.h>
namespace at::native {
// MPSGraph is not needed.
Tensor& eye_out_mps(int64_t n, Tensor& out) {
  return out;
}
REGISTER_DISPATCH(special_airy_ai_stub, &kernel)
}
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / OPERATIONS).mkdir(parents=True)
    (tmp_path / KERNELS).mkdir(parents=True)
    (tmp_path / OPERATIONS / "Eye.mm").write_text(HOST)
    (tmp_path / KERNELS / "Eye.metal").write_text("#include <ATen/native/mps/kernels/Eye.h>\nkernel void eye() {}\n")
    (tmp_path / KERNELS / "Eye.h").write_text("#pragma once\nstruct EyeParameters { int n; };\n")
    return tmp_path


@pytest.fixture(scope="module")
def rows() -> MpsYaml:
    return MpsYaml(YAML, TAGS)


def test_rejects_another_folder_and_a_name_without_a_file(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(UpstreamError, match="give a checkout of PyTorch"):
        operation_files(tmp_path / "nowhere")
    with pytest.raises(UpstreamError, match=r"has no Ey\.mm"):
        operation_files(tree, ["Ey"])


@pytest.mark.parametrize(
    ("host", "defined"),
    [
        ("TORCH_IMPL_FUNC(f_mps)(const Tensor& x) {\n}\n", True),
        ("TORCH_IMPL_FUNC(f_mps)\n(const Tensor& x) {\n}\n", True),
        ("Tensor& f_mps(\n    const Tensor& x,\n    int64_t n) {\n}\n", True),
        ("CREATE_MPS_UNARY_FUNC(f_mps, sinh)\n", True),
        ("Tensor f_mps(const Tensor& x);\n", False),
        ("Tensor g() {\n  return f_mps(x);\n}\n", False),
        ("Tensor f_mps_out(const Tensor& x) {\n}\n", False),
    ],
)
def test_distinguishes_definitions_from_declarations_and_calls(host: str, defined: bool) -> None:
    assert defines(host, "f_mps") is defined


def test_a_file_serves_its_definitions_and_stubs(tree: Path, rows: MpsYaml) -> None:
    (eye,) = operation_files(tree, ["Eye"])
    assert eye.shaders == ("Eye",)
    assert [kernel.overload for kernel in rows.kernels if eye.serves(kernel)] == ["special_airy_ai.out", "eye.out"]


def test_a_stub_is_named_without_the_module_that_python_puts_an_operator_in(tmp_path: Path) -> None:
    (tmp_path / "Cross.mm").write_text("REGISTER_DISPATCH(cross_stub, &cross_mps_kernel)\n")
    cross = OperationFile(tmp_path, tmp_path / "Cross.mm")
    assert cross.serves(MpsKernel("linalg_cross.out", "linalg_cross_out", True, "linalg_cross"))
    assert not cross.serves(MpsKernel("across.out", "across_out", True, "across"))


def test_rows_name_the_kernels_that_other_backends_share(rows: MpsYaml) -> None:
    assert rows.kernels == (
        MpsKernel("special_airy_ai.out", "special_airy_ai_out", True, "special_airy_ai"),
        MpsKernel("eye.out", "eye_out_mps", False, "eye"),
        MpsKernel("_pdist_forward", "_pdist_forward_mps", False, "_pdist_forward"),
    )


def test_only_the_entries_that_are_asked_for_are_read() -> None:
    assert [kernel.overload for kernel in MpsYaml(YAML, TAGS, ["eye"]).kernels] == ["eye.out"]


def test_a_yaml_that_torchgen_refuses_is_an_error() -> None:
    with pytest.raises(UpstreamError, match=r"the installed torchgen refuses native_functions\.yaml"):
        MpsYaml(YAML.replace("CPU: eye_out_cpu", "Commodore: eye_out_c64"), TAGS)


def test_entries_of_types_that_torchgen_does_not_know_are_left_out() -> None:
    """A checkout of another release has them."""
    strange = "- func: sort.named(Tensor self, NoSuchType dim) -> Tensor\n  dispatch:\n    MPS: sort_mps\n\n"
    strange += "- func: sum.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)\n  dispatch:\n    MPS: sum_mps\n"
    read = MpsYaml(f"{strange}  use_const_ref_for_mutable_tensors: True\n\n{YAML}", TAGS)
    assert [kernel.overload for kernel in read.kernels] == ["special_airy_ai.out", "eye.out", "_pdist_forward"]


def test_declarations_go_on_to_the_header_that_torch_has(rows: MpsYaml, tmp_path: Path) -> None:
    own = tmp_path / "ATen/ops/special_airy_ai_native.h"
    own.parent.mkdir(parents=True)
    own.write_text("struct TORCH_API structured_special_airy_ai_out : public at::meta::structured_special_airy_ai {\n")
    headers = rows.headers(tmp_path)
    airy = headers["ATen/ops/special_airy_ai_native.h"]
    assert "#include_next <ATen/ops/special_airy_ai_native.h>" in airy
    assert "struct" not in airy  # it is there already
    eye = headers["ATen/ops/eye_native.h"]
    assert "#include_next" not in eye
    assert "eye_out_mps(int64_t n, at::Tensor & out);" in eye


def test_registrations_are_those_of_the_overloads_alone(rows: MpsYaml) -> None:
    text = rows.registrations(["special_airy_ai.out"])
    assert 'm.impl("special_airy_ai.out"' in text
    assert 'm.impl("special_airy_ai"' in text  # the functional form of a structured kernel
    assert "eye" not in text
    assert "empty_mps" not in text
    assert "TORCH_LIBRARY_IMPL(aten, MPS, m)" in text


def test_a_shader_becomes_a_library_with_the_tree_s_headers_in_it(tree: Path) -> None:
    text = shader_header(tree, "Eye")
    assert text.startswith('static ::at::native::mps::MetalShaderLibrary lib(R"MPSMITH(\n')
    assert text.endswith(')MPSMITH");\n')
    assert "struct EyeParameters" in text
    assert "#include" not in text
    with pytest.raises(UpstreamError, match=r"Ey\.metal"):
        shader_header(tree, "Ey")


def test_headers_that_torch_has_in_another_form_are_the_tree_s(tree: Path, tmp_path: Path) -> None:
    include = tmp_path / "include"
    place = "ATen/native/mps/kernels/Eye.h"
    assert list(changed_headers(tree, include)) == [place]
    (include / place).parent.mkdir(parents=True)
    (include / place).write_text("#if !defined(X)\n" + (tree / KERNELS / "Eye.h").read_text() + "#endif\n")
    assert changed_headers(tree, include) == {}
    above = "ATen/native/mps/OperationUtils.h"
    (tree / ATEN / above).write_text("int x;\n")
    assert changed_headers(tree, include) == {above: "int x;\n"}
    (include / above).write_text("what this torch was built with\n")
    assert changed_headers(tree, include) == {}


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UpstreamError, match="cannot read"):
        _ = OperationFile(tmp_path, tmp_path / "none.mm").text


SHARED = """\
DEFINE_DISPATCH(lengths_stub); // calls_stub
DEFINE_DISPATCH(offsets_stub);
namespace at::native {
namespace {
Tensor chosen(
    const Tensor& x) {
  return lengths_stub(x.device().type(), x);
}
} // namespace
Tensor segment_kernel(const Tensor& x, bool by_offsets) {
  if (by_offsets) {
    return offsets_stub(x.device().type(), x);
  }
  return chosen(x);
}
Tensor declared(const Tensor& x);
// offsets_stub
Tensor other_kernel(const Tensor& x) {
  return x;
}
TORCH_IMPL_FUNC(reduced_out)
(const Tensor& x, const Tensor& out) {
  chosen(x);
}
} // namespace at::native
"""


def test_a_stub_of_another_name_is_found_in_the_kernel_that_calls_it(tree: Path) -> None:
    (tree / NATIVE / "Segment.cpp").write_text(SHARED)
    (tree / NATIVE / "NoStubs.cpp").write_text("Tensor third(const Tensor& x) {\n  return offsets_stub(x);\n}\n")
    both, lengths = frozenset({"lengths_stub", "offsets_stub"}), frozenset({"lengths_stub"})
    assert stubs_called(tree) == {"chosen": lengths, "segment_kernel": both, "reduced_out": lengths}
    (tree / OPERATIONS / "Segment.mm").write_text("REGISTER_DISPATCH(offsets_stub, &kernel)\n")
    segment = OperationFile(tree, tree / OPERATIONS / "Segment.mm")
    assert segment.serves(MpsKernel("segment_reduce", "segment_kernel", True, "segment_reduce"))
    assert not segment.serves(MpsKernel("reduced.out", "reduced_out", True, "reduced"))


def test_functions_of_closed_files_have_stand_ins_and_nothing_else_has() -> None:
    function = "_ZN2at6native3mps9mps_copy_ERNS_6TensorERKS2_b"
    variable = "_ZN2at6native3mps6kCacheE"
    ends_with_an_argument = "_ZN2at6native1fESt6vectorIxSaIxEE"
    others = [variable, "PyList_New", "OBJC_CLASS_$_MPSGraph", "_ZTVN2at6native3mps5CacheE", "_ZN3c105raiseEv"]
    text = refusing([function, *others, ends_with_an_argument])
    assert re.findall(r'__asm__\("(\w+)"\)', text) == [function, ends_with_an_argument]
    assert refusing([variable, "PyList_New"]) == ""


def test_the_int64_of_macos_is_spelled_as_here(tree: Path) -> None:
    path = tree / OPERATIONS / "Wide.mm"
    path.write_text("std::vector<long long> sizes;\nunsigned long  long count; // belong longer\n")
    code = building._code(OperationFile(tree, path))
    assert code == f'#line 1 "{path}"\nstd::vector<long> sizes;\nunsigned long count; // belong longer\n'
    assert building._code(OperationFile(tree, tree / OPERATIONS / "Eye.mm")).startswith("#include")
