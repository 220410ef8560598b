import pytest

from mpsmith.audit.releases.surface import installed_surface, surface_of
from mpsmith.audit.releases.surface.derivatives import differentiable_overloads, is_out
from mpsmith.audit.releases.surface.native_functions import parse

FUNCTIONS = """
- func: sin(Tensor self) -> Tensor
- func: sin_(Tensor(a!) self) -> Tensor(a!)
- func: sin.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
- func: pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor
- func: pow_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)
- func: pow.Scalar(Scalar self, Tensor exponent) -> Tensor
- func: acosh(Tensor self) -> Tensor
- func: acosh_(Tensor(a!) self) -> Tensor(a!)
- func: select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)
- func: select_copy.int(Tensor self, int dim, SymInt index) -> Tensor
- func: _foreach_sin(Tensor[] self) -> Tensor[]
- func: _foreach_sin.out(Tensor[] self, *, Tensor(a!)[] out) -> ()
- func: _foreach_zero_(Tensor(a!)[] self) -> ()
- func: chunk(Tensor(a -> *) self, int chunks) -> Tensor(a)[]
- func: all(Tensor self) -> Tensor
"""

DERIVATIVES = """
- name: sin(Tensor self) -> Tensor
  self: grad * self.cos().conj()
  result: auto_element_wise
- name: pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor
  self, exponent: pow_backward(grad, self, exponent)
- name: acosh(Tensor self) -> Tensor
  self: grad * (self * self - 1).rsqrt()
- name: acosh_(Tensor(a!) self) -> Tensor(a!)
  self: not_implemented("inplace version of acosh")
- name: select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)
  dispatch:
    Default:
      self: select_backward(grad, self.sym_sizes(), dim, index)
- name: chunk(Tensor(a -> *) self, int chunks) -> Tensor(a)[]
  dispatch:
    Default:
      self: not_implemented("chunk")
    AutogradNestedTensor:
      self: chunk_backward_nested(grads, self, chunks)
- name: all(Tensor self) -> Tensor
  output_differentiability: [False]
"""


def test_a_formula_serves_the_overloads_that_are_built_on_it() -> None:
    differentiable = differentiable_overloads(parse(FUNCTIONS, "f.yaml"), DERIVATIVES, "d.yaml")
    assert differentiable == {
        "sin",
        "sin_",
        "pow.Tensor_Tensor",
        "pow_.Tensor",
        "acosh",
        "select.int",
        "select_copy.int",
        "_foreach_sin",
    }


def test_functional_overloads_that_are_generated_have_the_formula_too() -> None:
    functions = b"- func: zero_(Tensor(a!) self) -> Tensor(a!)\n  autogen: zero, zero.out\n  dispatch: {CPU: zero_}\n"
    formulas = b"- name: zero_(Tensor(a!) self) -> Tensor(a!)\n  self: zeros_like(grad)\n"
    overloads = surface_of(functions, formulas, "2.13.0").by_name
    assert overloads["aten::zero"].has_autograd_formula
    assert not overloads["aten::zero.out"].has_autograd_formula


@pytest.mark.parametrize(
    ("schema", "out"),
    [
        ("abs.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", True),
        (
            "frexp.Tensor_out(Tensor self, *, Tensor(a!) mantissa, Tensor(b!) exponent) -> (Tensor(a!), Tensor(b!))",
            True,
        ),
        ("abs_(Tensor(a!) self) -> Tensor(a!)", False),
        ("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", False),
    ],
)
def test_arguments_show_out_overloads(schema: str, out: bool) -> None:
    assert is_out(schema) is out


@pytest.mark.parametrize(
    ("name", "differentiable"),
    [
        ("softshrink", True),
        ("mode", True),
        ("_ctc_loss", True),
        ("argmax", False),
        ("add.out", False),
        ("mul_.Tensor", True),
    ],
)
def test_differentiable_overloads_of_the_installed_torch(name: str, differentiable: bool) -> None:
    assert installed_surface().by_name[f"aten::{name}"].has_autograd_formula is differentiable
