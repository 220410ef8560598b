"""A rule about shipped kernels explains cases that launched them, in the releases that it names, and nothing beside."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpsmith.audit.findings.explanations import Explainer
from mpsmith.audit.findings.rules import SHIPPED_RULES
from mpsmith.audit.findings.rules.shipped_defects import SHIPPED_DEFECTS
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.verdicts import CaseVerdict, Grade, Outcome
from mpsmith.audit.releases.surface.overloads import Surface
from mpsmith.audit.store.records import StoredCase

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
NO_NUMBER = "1 of 1 elements differ; at [0]: nan, CPU 0.0, float64 0.0"
ONE_INFINITY = "1 of 1 elements differ; at [0]: (inf+2j), CPU (inf+nanj), float64 (inf+nanj)"
EXPLAINED = {
    "gamma-gradient-cancels": case(
        "schema", "_standard_gamma_grad.out", "float32", "standard_gamma_grad_float", max_error=3.0
    ),
    "subnormals-count-as-zero": case(
        "special values", "all", "float32", "all_reduction_float_uchar", "denormals: (float32[2])"
    ),
    "subnormals-on-the-way": case(
        "special values", "ldexp", "int8", "mul_dense_broadcast_cast_float_float", "extreme integers: (x)"
    ),
    "overflow-in-another-order": case(
        "special values", "masked.cumprod", "float32", "cumprod_innermost_float", "largest finite: (x)"
    ),
    "variance-overflows": case(
        *("special values", "native_group_norm", "float32", "group_norm_float_float", "largest finite: (x)"),
        "output 0: 4 of 12 elements differ; at [0]: 3.4028234663852886e+38, CPU nan, float64 9e+38",
    ),
    "infinite-degree-of-a-polynomial": case(
        *("special values", "special.hermite_polynomial_h", "float32", "hermite_polynomial_h_dense_float_float"),
        *("infinities: (x)", NO_NUMBER),
    ),
    "float-beyond-the-integers": case(
        *("special values", "masked.logsumexp", "int64", "copy_identity_dense_castout_long", "extreme integers: (x)"),
        "1 of 1 elements differ; at []: 9223372036854775807, CPU -9223372036854775808",
    ),
    "divisor-of-the-least-integer": case(
        "special values", "gcd", "int64", "gcd_dense_broadcast_long_long", "extreme integers: (x)"
    ),
    "dropped-gradients-are-zero": case(
        *("special values", "native_dropout_backward", "float16", "dropout_bwd_half", "nan: (x)"),
        "1 of 1 elements differ; at [0]: 0.0, CPU nan, float64 nan",
    ),
    "volume-sampler-takes-nan-for-a-place": case(
        *("special values", "grid_sampler_3d", "float32", "grid_sampler_3d_bilinear_zeros_i32_float", "nan: (x)"),
        NO_NUMBER,
    ),
    "infinities-in-complex-functions": case(
        "special values", "expm1", "complex64", f"expm1{COMPLEX}", "infinities: (x)"
    ),
    "infinities-times-a-complex-one": case(
        "special values",
        "__rsub__",
        "complex64",
        "sub_dense_broadcast_rhs_float2_float2",
        "infinities: (x)",
        ONE_INFINITY,
    ),
    "quantile-next-to-infinity": case(
        *("special values", "quantile", "float32", "lerp_dense_float_float_float", "infinities: (x)"),
        "1 of 1 elements differ; at []: inf, CPU nan, float64 nan",
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
    "lgamma-of-small-numbers": case(
        "sizes", "_foreach_lgamma", "float32", "lgamma_dense_scalar_float_float", max_error=1.9
    ),
    "complex-arcsines-cancel": case("opinfo", "asin", "complex64", f"asin{COMPLEX}"),
    "complex-square-roots-cancel": case("opinfo", "rsqrt", "complex64", f"rsqrt{COMPLEX}"),
    "quotient-rounded-down": case("special values", "floor_divide", "float32", "div_floor_dense_float_float"),
    "hypot-overflows": case("known wrong", "hypot", "float32", "hypot_dense_float_float"),
    "lerp-of-infinities": case("known wrong", "lerp", "float32", "lerp_alpha_dense_float_float_float"),
    "norm-loses-nan": case("opinfo", "_foreach_norm", "int8", "norm_float_float", "(x), ord=-inf", OF_NAN),
    "powers-of-a-norm-overflow": case(
        "special values", "linalg.vector_norm", "float32", "norm_float_float", "largest finite: (x)", INFINITE
    ),
    "lerp-from-the-first-end-alone": case(
        "schema", "_foreach_lerp_.Scalar", "float16", "lerp_alpha_dense_half_half_half"
    ),
    "shift-counts-out-of-range": case(
        "tensor layouts", "bitwise_left_shift", "int64", "bitwise_left_shift_dense_long_long"
    ),
    "zeta-in-single-precision": case(
        "schema", "special_zeta.other_scalar", "uint8", "zeta_dense_scalar_cast_float_float", "(x)", NO_NUMBER
    ),
    "remainder-by-a-rounded-quotient": case(
        "special values", "__rmod__", "float16", "remainder_dense_broadcast_rhs_half_half", "infinities: (x)"
    ),
    "adaptive-windows-of-one-size": case("modules", "nn.AdaptiveMaxPool2d.eval", "bfloat16", "max_pool_bfloat"),
    "complex-magnitude-in-both-parts": case(
        *("schema", "absolute.out", "complex64", f"abs{COMPLEX}", "(x), out=complex64[6]"),
        "output 0: 6 of 6 elements differ; at [0]: (0.25+0.25j), CPU (0.25+0j), float64 (0.25+0j)",
    ),
    "complex-sinh-and-log1p-cancel": case("schema", "_foreach_sinh_", "complex64", f"sinh{COMPLEX}"),
    "complex-expm1-reduced-by-a-short-logarithm": case(
        "schema", "_foreach_expm1_", "complex64", f"expm1{COMPLEX}", max_error=4.7
    ),
    "long-extremes-read-idle-lanes": case(
        *("special values", "aminmax", "int64", "min_reduction_long_long", "all equal: (x)"),
        "output 0: 1 of 1 elements differ; at []: 0, CPU 4",
    ),
    "one-reflector-without-a-barrier": case("schema", "orgqr", "float32", "orgqr_float", "(float32[6, 3], float32[1])"),
    "blocks-that-are-not-definite": case(
        "sizes", "linalg.cholesky_ex", "float32", "factorDiagonalBlockU", "33 in the last dimension: (x)"
    ),
    "complex-logaddexp-of-equal-real-parts": case(
        "tensor layouts", "logaddexp", "complex64", "logaddexp_dense_float2_float2"
    ),
    "complex-logarithm-of-a-signed-zero": case(
        *("special values", "log2", "complex64", f"log2{COMPLEX}", "signed zeros: (x)"),
        "3 of 20 elements differ; at [3]: (-inf+0j), CPU (-inf+4.5j), float64 (-inf+4.5j)",
    ),
    "complex-sinc-of-zero": case(
        *("special values", "sinc", "complex64", f"sinc{COMPLEX}", "signed zeros: (x)"),
        "7 of 20 elements differ; at [0]: 0j, CPU (1+0j), float64 (1+0j)",
    ),
    "index-reduce-loses-nan": case(
        "special values", "index_reduce", "float16", "index_reduce_amax_half_long", "nan: (x)", OF_NAN
    ),
    "max-pool-skips-nan": case(
        "special values", "nn.functional.max_pool2d", "float32", "max_pool_float", "nan: (x)", OF_NAN
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
        for name, error in (
            ("halves-added-up-by-atomics", 8.1),
            ("reflectors-in-another-order", 4.1),
            ("complex-expm1-reduced-by-a-short-logarithm", 8.1),
            ("lgamma-of-small-numbers", 8.1),
            ("gamma-gradient-cancels", 111.0),
        )
    ),
    *(
        replace(EXPLAINED[name], group=replace(EXPLAINED[name].group, source="opinfo"))
        for name in (
            *("lgamma-of-infinity", "quotient-rounded-down", "hypot-overflows", "lerp-of-infinities"),
            *("subnormals-on-the-way", "overflow-in-another-order", "remainder-by-a-rounded-quotient"),
            *("divisor-of-the-least-integer", "index-reduce-loses-nan", "max-pool-skips-nan"),
        )
    ),
    *(
        replace(EXPLAINED[name], inputs="(x)")
        for name in (
            *("triangle-out-of-another-layout", "average-ignores-strides-of-out", "powers-of-a-norm-overflow"),
            *("factor-at-the-edge-of-definite", "grid-sampler-takes-nan-for-outside"),
            *("subnormals-on-the-way", "overflow-in-another-order", "variance-overflows"),
            *("infinite-degree-of-a-polynomial", "float-beyond-the-integers", "divisor-of-the-least-integer"),
            *("infinities-in-complex-functions", "infinities-times-a-complex-one", "quantile-next-to-infinity"),
            *("volume-sampler-takes-nan-for-a-place", "remainder-by-a-rounded-quotient"),
            *("complex-logarithm-of-a-signed-zero", "max-pool-skips-nan"),
            *("one-reflector-without-a-barrier", "blocks-that-are-not-definite"),
        )
    ),
    *(
        replace(EXPLAINED[name], outcome=Outcome(CaseVerdict.WRONG, "forward", DIFFER))
        for name in (
            *("lgamma-of-infinity", "norm-loses-nan", "grid-sampler-reads-out-of-bounds", "variance-overflows"),
            *("infinite-degree-of-a-polynomial", "dropped-gradients-are-zero", "zeta-in-single-precision"),
            *("volume-sampler-takes-nan-for-a-place", "infinities-times-a-complex-one", "quantile-next-to-infinity"),
            *("complex-magnitude-in-both-parts", "complex-logarithm-of-a-signed-zero", "complex-sinc-of-zero"),
            *("index-reduce-loses-nan", "max-pool-skips-nan", "float-beyond-the-integers"),
        )
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


@pytest.mark.parametrize("rule", SHIPPED_DEFECTS, ids=lambda rule: rule.name)
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
