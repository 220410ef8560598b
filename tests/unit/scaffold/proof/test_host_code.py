"""Host code that compiles and is wrong: what `mpsmith check` says of it without running it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.scaffold.proof.host_code import COALESCED, HOST_ADDRESS, check_host_code

BUILT = "  auto iterator = at::TensorIteratorConfig()\n      .add_output(out).add_const_input(self).build();\n"


@pytest.mark.parametrize(
    "code",
    [
        BUILT + "  const at::Tensor dense = self.expand(iterator.shape()).contiguous();\n",
        "static void f(at::TensorIteratorBase& iter) {\n\n  auto out = at::empty(iter.shape(), self.options());\n}\n",
        "void f(TensorIterator* iter) {\n\n  x.view(IntArrayRef(iter->shape()));\n}\n",
    ],
)
def test_a_coalesced_shape_is_not_a_shape_for_a_tensor(code: str) -> None:
    (finding,) = check_host_code(Path("host.mm"), code)
    assert (finding.rule, finding.severity, finding.line) == (COALESCED, "error", 3)
    assert "use the sizes of the output" in finding.message


@pytest.mark.parametrize(
    "code",
    [
        BUILT + "  const at::Tensor dense = self.expand(out.sizes()).contiguous();\n",
        BUILT + "  // self.expand(iterator.shape()) would be wrong\n",
        "  const auto shape = layout.shape();\n  self.expand(shape_of.shape());\n",
        BUILT + "  launch(iterator.shape()[0]);\n",
    ],
)
def test_other_shapes_are_accepted(code: str) -> None:
    assert check_host_code(Path("host.mm"), code) == []


@pytest.mark.parametrize(
    "code",
    [
        "\n\n  return x.data_ptr<float>()[0];\n",
        "\n\n  float* p = x.data_ptr<float>();\n  p[3] = 1;\n",
        "\n\n  const auto p = (const float*)x.const_data_ptr();\n  float y = *p;\n",
        "\n\n  const float y = *x.data_ptr<float>();\n",
        "\n  auto x = at::empty({3}, y.options());\n  int* p = x.mutable_data_ptr<int>();\n  p[0] = 1;\n",
        "\n\n  std::memcpy(to, x.mutable_data_ptr(), bytes);\n",
        "\n\n  id<MTLBuffer> b = [device newBufferWithBytes:x.data_ptr() length:n options:0];\n",
        "void f() { if (x.is_mps()) return;\n}\n  memcpy(to, x.data_ptr(), bytes);\n",
        "  TORCH_CHECK(x.is_mps());\n\n  memcpy(to, x.data_ptr(), bytes);\n",
    ],
)
def test_the_host_cannot_follow_the_address_of_a_tensor(code: str) -> None:
    (finding,) = check_host_code(Path("host.mm"), code)
    assert (finding.rule, finding.severity, finding.line) == (HOST_ADDRESS, "warning", 3)
    assert "x.data_ptr()" in finding.message
    assert check_host_code(Path("host.cpp"), code) == []


@pytest.mark.parametrize(
    "code",
    [
        "  id<MTLBuffer> b = __builtin_bit_cast(id<MTLBuffer>, x.data_ptr());\n",
        "  const auto y = x.cpu();\n  return y.data_ptr<float>()[0];\n",
        "  const at::Tensor y = x.to(at::kCPU);\n  const float* p = y.data_ptr<float>();\n  return p[0];\n",
        "  return x.cpu().data_ptr<float>()[0];\n",
        "  auto x = a.to(at::kCPU), y = b.to(at::kCPU);\n  int* p = y.data_ptr<int>();\n  p[0] = 1;\n",
        "  const auto n = at::empty({3}, at::dtype(kInt));\n  auto* p = n.mutable_data_ptr<int>();\n  p[0] = 1;\n",
        "  // x.data_ptr<float>()[0]\n",
        "  if (x.device().is_mps()) {\n    return f(x);\n  }\n  memcpy(to, x.data_ptr(), bytes);\n",
        "  if (x.data_ptr() == y.data_ptr()) return x;\n  bool same = a * x.data_ptr();\n",
    ],
)
def test_other_uses_of_an_address_are_right(code: str) -> None:
    assert check_host_code(Path("host.mm"), code) == []
