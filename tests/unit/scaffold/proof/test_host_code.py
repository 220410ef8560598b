"""Host code that compiles and is wrong: what `mpsmith check` says of it without running it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.scaffold.proof.host_code import COALESCED, check_host_code

BUILT = "  auto iterator = at::TensorIteratorConfig()\n      .add_output(out).add_const_input(self).build();\n"


@pytest.mark.parametrize(
    "code",
    [
        BUILT + "  const at::Tensor dense = self.expand(iterator.shape()).contiguous();\n",
        "static void f(at::TensorIteratorBase& iter) {\n\n  auto out = at::empty(iter.shape(), self.options());\n}\n",
        "void f(TensorIterator* iter) {\n\n  x.view(IntArrayRef(iter->shape()));\n}\n",
    ],
)
def test_a_coalesced_shape_is_no_shape_for_a_tensor(code: str) -> None:
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
def test_other_shapes_are(code: str) -> None:
    assert check_host_code(Path("host.mm"), code) == []
