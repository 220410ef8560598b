"""The host code of a family as a file of PyTorch's tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.scaffold.errors import ScaffoldError
from mpsmith.scaffold.targets.upstream.host_file import host_file, without_unused

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


def test_adds_what_every_file_of_the_tree_has(tmp_path: Path) -> None:
    path = tmp_path / "my_foo" / "upstream.mm"
    path.parent.mkdir()
    path.write_text(BODY)
    with pytest.raises(ScaffoldError, match=r"cannot read .*launch\.h"):
        host_file(path, "MyFoo", ["foo"])
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "launch.h").write_text("int shared;\n")
    assert host_file(path, "MyFoo", ["foo_", "foo_backward"]) == FILE


HELPERS = """namespace {

constexpr int64_t side = 32;

// Both kernels need it.
template <typename... Args>
void launch(const Args&... args) {
  if (side) {
  }
}

// Of one kernel alone.
void triangle(
    const Tensor& x) {
  launch(x);
}

} // namespace

"""
OLD = """// A kernel that newer releases have.
TORCH_IMPL_FUNC(old_out_mps)
(const Tensor& self, const Tensor& out) {
  triangle(out);
}

std::tuple<Tensor, Tensor> old_pair_mps(const Tensor& self) { return {self, self}; }

"""
NEW = """Tensor new_mps(const Tensor& self) {
  launch(self);
}
"""


def test_leaves_out_kernels_that_a_release_does_not_take() -> None:
    text = HELPERS + OLD + NEW
    assert without_unused(text, ["old_out_mps", "old_pair_mps", "new_mps"]) == text
    start, end = text.index("// Of one"), text.index("} // namespace")
    assert without_unused(text, ["new_mps"]) == (text[:start] + text[end:]).replace(OLD, "")
    assert "old_out_mps" in without_unused(text + "// old_out_mps is called here\n", ["new_mps"])
