"""A rule about shipped kernels explains cases that launched them, in the releases that it names, and nothing beside."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpsmith.audit.findings.explanations import Explainer
from mpsmith.audit.findings.shipped_rules import DEFECTS, SHIPPED_RULES
from mpsmith.audit.findings.store import StoredCase
from mpsmith.audit.group import GroupKey
from mpsmith.audit.surface.overloads import Surface
from mpsmith.audit.verdicts import CaseVerdict, Grade, Outcome

SURFACE = Surface((), release="2.13.0", source="made by hand")
DIFFER = "67 of 400 elements differ; at [0, 3]: 2147483647, CPU -2147483648"


def case(
    source: str,
    operator: str,
    dtype: str,
    kernel: str,
    inputs: str = "(x)",
    message: str = DIFFER,
    stage: str = "forward",
    max_error: float | None = None,
) -> StoredCase:
    outcome = Outcome(CaseVerdict.WRONG, stage, message, max_error=max_error)
    key = GroupKey(source, operator, "", dtype, "fallback")
    return StoredCase(1, key, 0, outcome, inputs, grade=Grade.SHIPPED_KERNEL, kernels=(kernel, "copy_strided"))


GRADIENT = f"gradient 0: {DIFFER}"
FAULT = "raises KernelFault: shipped kernel grid_sampler_2d_float of torch 2.13.0: out of bounds load far out"
OF_NAN = "1 of 1 elements differ; at [0]: 2.0, CPU nan, float64 nan"
NAN = "1 of 1 elements differ; at [0]: nan, CPU inf, float64 inf"
INFINITE = "1 of 1 elements differ; at [0]: inf, CPU 3e+38, float64 3e+38"
COMPLEX = "_dense_scalar_float2_float2"
EXPLAINED = {
    "subnormals-count-as-zero": case(
        "special values", "all", "float32", "all_reduction_float_uchar", "denormals: (float32[2])"
    ),
    "halves-added-up-by-atomics": case(
        *("opinfo", "nn.functional.interpolate", "float16", "upsample_trilinear_backward_half", "(x)"),
        *(GRADIENT, "backward", 8.0),
    ),
    "infinite-quotients-of-complex-numbers": case("special values", "div", "complex64", f"div_true{COMPLEX}"),
    "factor-at-the-edge-of-definite": case(
        "special values", "linalg.cholesky_ex", "float32", "factorDiagonalBlockU", "largest finite: (x)"
    ),
    "reflectors-in-another-order": case(
        "opinfo", "linalg.householder_product", "float32", "orgqr_float", "(x)", GRADIENT, "backward", 4.0
    ),
    "triangle-out-of-another-layout": case("forms", "tril", "float32", "tril_int_float", "out= transposed: (x)"),
    "average-ignores-strides-of-out": case("forms", "avg_pool3d", "float32", "avg_pool_float", "out= transposed: (x)"),
    "abs-of-integers-through-float": case("pairs", "abs", "int32", "abs_dense_scalar_int_int"),
    "erfc-as-one-less-erf": case("opinfo", "_foreach_erfc", "int8", "erfc_dense_scalar_float_char"),
    "expm1-by-exp-from-1e-5-on": case("opinfo", "expm1", "float32", "expm1_strided_float_float"),
    "digamma-by-the-fraction-of-a-negative": case("schema", "digamma", "float32", "digamma_dense_float_float"),
    "lgamma-of-infinity": case("special values", "lgamma", "float16", "lgamma_dense_half_half", "(x)", NAN),
    "complex-arcsines-cancel": case("opinfo", "asin", "complex64", f"asin{COMPLEX}"),
    "complex-square-roots-cancel": case("opinfo", "rsqrt", "complex64", f"rsqrt{COMPLEX}"),
    "quotient-rounded-down": case("special values", "floor_divide", "float32", "div_floor_dense_float_float"),
    "hypot-overflows": case("known wrong", "hypot", "float32", "hypot_dense_float_float"),
    "lerp-of-infinities": case("known wrong", "lerp", "float32", "lerp_alpha_dense_float_float_float"),
    "norm-loses-nan": case("opinfo", "_foreach_norm", "int8", "norm_float_float", "(x), ord=-inf", OF_NAN),
    "powers-of-a-norm-overflow": case(
        "special values", "linalg.vector_norm", "float32", "norm_float_float", "largest finite: (x)", INFINITE
    ),
    "grid-sampler-reads-out-of-bounds": case(
        "special values", "grid_sampler_2d", "float16", "grid_sampler_2d_bilinear_zeros_i32_half", "(x)", FAULT
    ),
    "grid-sampler-takes-nan-for-outside": case(
        "special values", "grid_sampler_2d", "float32", "grid_sampler_2d_bilinear_zeros_i32_float", "nan: (x)", OF_NAN
    ),
    "reflectors-multiply-zero-by-nan": case(
        "special values", "linalg.householder_product", "float32", "orgqr_float", "infinities: (x)", NAN
    ),
}
# What else is not explained: an error that is larger, another source, other inputs, another kind of difference.
BEYOND = (
    *(
        replace(EXPLAINED[name], outcome=replace(EXPLAINED[name].outcome, max_error=error))
        for name, error in (("halves-added-up-by-atomics", 8.1), ("reflectors-in-another-order", 4.1))
    ),
    *(
        replace(EXPLAINED[name], group=replace(EXPLAINED[name].group, source="opinfo"))
        for name in ("lgamma-of-infinity", "quotient-rounded-down", "hypot-overflows", "lerp-of-infinities")
    ),
    *(
        replace(EXPLAINED[name], inputs="(x)")
        for name in (
            *("triangle-out-of-another-layout", "average-ignores-strides-of-out", "powers-of-a-norm-overflow"),
            *("factor-at-the-edge-of-definite", "grid-sampler-takes-nan-for-outside"),
        )
    ),
    *(
        replace(EXPLAINED[name], outcome=Outcome(CaseVerdict.WRONG, "forward", DIFFER))
        for name in ("lgamma-of-infinity", "norm-loses-nan", "grid-sampler-reads-out-of-bounds")
    ),
)


def rule_for(stored: StoredCase, shipped: str | None = "2.13.0", *, simulated: bool = True) -> str:
    rule = Explainer(SURFACE, simulated=simulated, shipped=shipped).rule_for(stored)
    return rule.name if rule else ""


def test_every_rule_has_a_case_that_it_explains() -> None:
    assert {name: rule_for(stored) for name, stored in EXPLAINED.items()} == {
        rule.name: rule.name for rule in SHIPPED_RULES
    }


@pytest.mark.parametrize("name", EXPLAINED)
def test_without_shipped_kernels_it_explains_nothing(name: str) -> None:
    stored = EXPLAINED[name]
    assert rule_for(replace(stored, kernels=())) == ""
    assert rule_for(stored, None) == ""
    assert rule_for(stored, None, simulated=False) == ""
    assert rule_for(replace(stored, outcome=Outcome(CaseVerdict.CRASH, "forward", DIFFER))) == ""
    assert rule_for(replace(stored, outcome=Outcome(CaseVerdict.WRONG, "forward", "shape is [1], not [2]"))) == ""


@pytest.mark.parametrize("rule", DEFECTS, ids=lambda rule: rule.name)
def test_a_defect_is_that_of_its_release_and_of_its_kernels(rule) -> None:  # type: ignore[no-untyped-def]
    stored = EXPLAINED[rule.name]
    assert rule_for(stored, "2.99.0") == ""
    assert rule_for(replace(stored, kernels=("other_dense_scalar_int_int",))) == ""
    if rule.dtypes:
        assert rule_for(replace(stored, group=replace(stored.group, dtype="complex128"))) == ""
    assert rule_for(replace(stored, group=replace(stored.group, operator="neg"))) == ""


def test_other_special_values_are_no_subnormals() -> None:
    assert rule_for(replace(EXPLAINED["subnormals-count-as-zero"], inputs="nan: (float32[2])")) == ""
    assert rule_for(case("opinfo", "all", "float32", "all_reduction_float_uchar", "denormals: (float32[2])")) == ""


@pytest.mark.parametrize("stored", BEYOND, ids=lambda stored: f"{stored.group.operator} {stored.outcome.message[:9]}")
def test_what_goes_beyond_a_rule_is_not_explained(stored: StoredCase) -> None:
    assert rule_for(stored) == ""
