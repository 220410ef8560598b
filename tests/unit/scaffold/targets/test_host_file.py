"""The host code of a family as a file of PyTorch's tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.scaffold.errors import ScaffoldError
from mpsmith.scaffold.targets.upstream.host_file import host_file, without_unused
from mpsmith.scaffold.targets.upstream.source_form import folded
from mpsmith.scaffold.targets.upstream.unused import defined, without

BODY = """#include <ATen/WrapDimUtils.h>
#include <cmath>

namespace {

#include "shared/launch.h"

} // namespace

Tensor& foo_out_mps(const Tensor& self, Tensor& out) {
  resize_output(out, self.sizes());
  return at::sum_out(out, at::empty_like(self, at::dtype(kFloat)));
}
"""
FILE = """#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/WrapDimUtils.h>
#include <ATen/mps/MPSProfiler.h>
#include <ATen/native/Resize.h>
#include <ATen/native/mps/OperationUtils.h>

#include <cmath>

#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/Functions.h>
#include <ATen/NativeFunctions.h>
#else
#include <ATen/ops/empty_like.h>
#include <ATen/ops/foo_native.h>
#include <ATen/ops/sum.h>
#endif

namespace at::native {
using namespace mps;

#ifndef PYTORCH_JIT_COMPILE_SHADERS
static auto& lib = MetalShaderLibrary::getBundledLibrary();
#else
#include <ATen/native/mps/MyFoo_metallib.h>
#endif

namespace {

int shared;

} // namespace

Tensor& foo_out_mps(const Tensor& self, Tensor& out) {
  resize_output(out, self.sizes());
  return at::sum_out(out, at::empty_like(self, at::dtype(kFloat)));
}

} // namespace at::native
"""


def test_a_host_file_includes_the_shared_header(tmp_path: Path) -> None:
    path = tmp_path / "my_foo" / "upstream.mm"
    path.parent.mkdir()
    path.write_text(BODY)
    with pytest.raises(ScaffoldError, match=r"cannot read .*launch\.h"):
        host_file(path, "MyFoo", ["foo"])
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "launch.h").write_text(
        "int shared;\n\n// Of another family.\ninline int unused(int x) { return x; }\n"
    )
    assert host_file(path, "MyFoo", ["foo_", "foo_backward"]) == FILE


USED = "// Called by both.\ntemplate <typename T>\nvoid launch(const T& x) {\n  if (x) {\n  }\n}\n\n"
HELPER = "// Of one kernel.\nvoid triangle(\n    const Tensor& x) {\n  launch(x);\n}\n\n"
OLD = "// Newer releases have it.\nTORCH_IMPL_FUNC(old_out_mps)\n(const Tensor& out) {\n  triangle(out);\n}\n\n"
PAIR = "std::tuple<Tensor, Tensor> pair_mps(const Tensor& self) { return {self, self}; }\n\n"
NEW = "Tensor new_mps(const Tensor& self) {\n  launch(self);\n}\n"


def test_leaves_out_kernels_that_a_release_does_not_take() -> None:
    text = f"namespace {{\n\n{USED}{HELPER}}} // namespace\n\n{OLD}{PAIR}{NEW}"
    assert without_unused(text, ["old_out_mps", "pair_mps", "new_mps"]) == text
    assert without_unused(text, ["new_mps"]) == f"namespace {{\n\n{USED}}} // namespace\n\n{NEW}"
    assert OLD in without_unused(text + "// old_out_mps is called here\n", ["new_mps"])


def test_helpers_that_nothing_uses_are_left_out_with_what_only_they_use() -> None:
    sizes = "inline float size(float a) { return a; }\ninline float size(float2 a) {\n  return size(a.x);\n}\n\n"
    pair = "// Of one type.\ntemplate <typename T> struct pair {\n  T a;\n};\n\n"
    largest = "template <typename T>\ninline pair<T> largest(T a) {\n  return {a};\n}\n\n"
    kernel = "kernel void length() {\n  size(1.0f);\n}\n"
    text = sizes + pair + largest + kernel
    assert without(text, defined(text), ["length"]) == without(text, ["largest", "size"]) == sizes + kernel
    assert without(text, ["pair"]) == text


def test_the_rest_of_a_folded_sentence_goes_on_in_the_next_line() -> None:
    assert folded(f"// {'word ' * 23}and\n// the rest.\n") == f"// {'word ' * 22}word\n// and the rest.\n"
