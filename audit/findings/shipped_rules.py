"""Why a case with shipped kernels may come out wrong: what the specification leaves free, and defects of releases.

A rule names the kernels and the releases that it is true of, and holds for cases alone that launched one of them: in a
run of another release it neither explains nor is missed. A defect that is explained stays in the list of wrong results
of shipped kernels; what nobody has understood yet is unexplained, like anything else.
"""

from __future__ import annotations

from .rules import HALVES, VALUES_DIFFER, WRONG, ExplainingRule

ANY_RELEASE = ("*",)
# The releases whose kernels were looked at: what is true of both says nothing of others.
BOTH = ("2.13.0", "2.15.0")
SPECIAL = ("special values", "schema special values", "module special values", "known wrong")
FLOATS = ("float32", *HALVES)
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "bool")

# ---- what the Metal specification leaves free

FREEDOM = (
    ExplainingRule(
        "subnormals-count-as-zero",
        "the kernels are compiled to take subnormal numbers for zero, which the Metal specification allows; the CPU "
        "computes with them",
        WRONG,
        VALUES_DIFFER,
        sources=("special values", "module special values"),
        inputs=r"^denormals: ",
        shipped=ANY_RELEASE,
    ),
    ExplainingRule(
        "halves-added-up-by-atomics",
        "gradients of half precision are added up in half precision, each addition rounded and in the order of the "
        "threads; the CPU adds in float32",
        WRONG,
        r"^gradient \d+: .*elements differ",
        ("nn.functional.interpolate*", "nn.functional.upsample*", "nn.Upsample*", "cummin*", "cummax*"),
        dtypes=HALVES,
        stages=("backward",),
        at_most=8.0,
        kernels=("upsample_*_backward_half", "upsample_*_backward_bfloat", "scatter_add_*"),
        shipped=ANY_RELEASE,
    ),
    ExplainingRule(
        "infinite-quotients-of-complex-numbers",
        "which infinity or NaN a complex division by zero or of infinities gives, C's annex G leaves open in part; "
        "the kernel multiplies by the conjugate",
        WRONG,
        VALUES_DIFFER,
        ("*div*", "*reciprocal*"),
        sources=SPECIAL,
        dtypes=("complex64",),
        kernels=("div_true_*_float2_float2", "reciprocal_*_float2_float2"),
        shipped=ANY_RELEASE,
    ),
    ExplainingRule(
        "factor-at-the-edge-of-definite",
        "numbers so large or so small that rounding decides whether the matrix is positive definite",
        WRONG,
        VALUES_DIFFER,
        ("*cholesky*",),
        sources=SPECIAL,
        inputs=r"^(denormals|largest finite): ",
        kernels=("factorDiagonalBlock*",),
        shipped=ANY_RELEASE,
    ),
    ExplainingRule(
        "reflectors-in-another-order",
        "the kernel multiplies whole matrices where LAPACK applies one reflector after the other, so that rounding "
        "differs",
        WRONG,
        r"^gradient \d+: .*elements differ",
        ("linalg.householder_product", "linalg_householder_product*", "ormqr*"),
        dtypes=("float32", "complex64"),
        stages=("backward",),
        at_most=4.0,
        kernels=("orgqr_*",),
        shipped=ANY_RELEASE,
    ),
)

# ---- what the CPU computes wrong, and the kernels right

OF_THE_CPU = (
    ExplainingRule(
        "triangle-out-of-another-layout",
        "a defect of the CPU's kernel: tril and triu with an out= whose memory is laid out otherwise keep elements of "
        "the other triangle; the shipped kernel gives zeros there",
        WRONG,
        VALUES_DIFFER,
        ("tril", "triu", "tril.out", "triu.out"),
        inputs=r"^out= ",
        kernels=("tril_*", "triu_*"),
        shipped=ANY_RELEASE,
    ),
    ExplainingRule(
        "average-ignores-strides-of-out",
        "a defect of the CPU's kernel: avg_pool3d with out= writes as if that were contiguous, whatever its strides",
        WRONG,
        VALUES_DIFFER,
        ("avg_pool3d", "avg_pool3d.*", "nn.functional.avg_pool3d", "avg_pool3d_backward.*"),
        inputs=r"^out= ",
        kernels=("avg_pool_*",),
        shipped=ANY_RELEASE,
    ),
)

# ---- what a release computes wrong, seen in the code of its kernel

DEFECTS = (
    ExplainingRule(
        "abs-of-integers-through-float",
        "a defect of this release: its kernels of abs for int32 and int64 convert to float and back, which loses what "
        "a float does not hold beyond 2^24; 2.15.0 has an integer abs",
        WRONG,
        VALUES_DIFFER,
        ("abs", "abs.*", "abs_", "absolute", "absolute.*", "absolute_"),
        dtypes=("int32", "int64"),
        kernels=("abs_*_int_int", "abs_*_long_long"),
        shipped=("2.13.0",),
    ),
    ExplainingRule(
        "erfc-as-one-less-erf",
        "a defect of this release: its kernel of erfc subtracts erf from one, so that nothing is left of a result "
        "below 2^-24; upstream's tests allow 1e-5, and 2.15.0 has another kernel",
        WRONG,
        VALUES_DIFFER,
        ("*erfc*",),
        dtypes=("float32", *INTEGERS),
        kernels=("erfc_*_float_*",),
        shipped=("2.13.0",),
    ),
    ExplainingRule(
        "expm1-by-exp-from-1e-5-on",
        "a defect of this release: its kernel of expm1 takes its own series below 1e-5 alone and subtracts one from "
        "exp above, which loses digits of small results; upstream's tests allow 1e-5, and 2.15.0 does so from 0.1 on",
        WRONG,
        VALUES_DIFFER,
        ("*expm1*",),
        dtypes=("float32",),
        kernels=("expm1_*_float_float",),
        shipped=("2.13.0",),
    ),
    ExplainingRule(
        "digamma-by-the-fraction-of-a-negative",
        "a defect of this release: for negative numbers its kernel of digamma takes 1 + x as the fraction of x, which "
        "rounds away what is left near a pole: digamma(-1e-8) is 2.1e7 for 1e8",
        WRONG,
        VALUES_DIFFER,
        ("*digamma*", "special_psi*", "special.polygamma*", "*polygamma*"),
        dtypes=("float32",),
        kernels=("digamma_*",),
        shipped=BOTH,
    ),
    ExplainingRule(
        "lgamma-of-infinity",
        "a defect of this release: its kernel of lgamma subtracts infinity from infinity where the argument is "
        "infinite, which is NaN",
        WRONG,
        r"elements differ; at \[[^\]]*\]: nan, CPU inf",
        ("*lgamma*", "*gammaln*"),
        sources=SPECIAL,
        dtypes=FLOATS,
        kernels=("lgamma_*",),
        shipped=BOTH,
    ),
    ExplainingRule(
        "complex-arcsines-cancel",
        "a defect of this release: its kernels of asin and acos for complex numbers take the arctangent of "
        "z / sqrt(1 - z z), itself the logarithm of a quotient, in which small parts are lost; infinities give NaN",
        WRONG,
        VALUES_DIFFER,
        ("*asin*", "*acos*", "*arcsin*", "*arccos*"),
        dtypes=("complex64",),
        kernels=("asin_*_float2_float2", "acos_*_float2_float2"),
        shipped=BOTH,
    ),
    ExplainingRule(
        "complex-square-roots-cancel",
        "a defect of this release: its kernels of sqrt and rsqrt for complex numbers subtract the real part from the "
        "magnitude, in which a small part of the root cancels, and give NaN for infinities",
        WRONG,
        VALUES_DIFFER,
        ("*sqrt*", "asinh", "acosh", "arcsinh", "arccosh", "asin", "acos", "arcsin", "arccos"),
        dtypes=("complex64",),
        kernels=("sqrt_*_float2_float2", "rsqrt_*_float2_float2"),
        shipped=BOTH,
    ),
    ExplainingRule(
        "quotient-rounded-down",
        "a defect of this release: its kernel divides and rounds down, so that infinities and quotients that underflow "
        "give another result than Python's division with a remainder, which the CPU has; mended in 2.14",
        WRONG,
        VALUES_DIFFER,
        ("div", "div.*", "div_", "divide", "divide.*", "floor_divide", "floor_divide.*", "floor_divide_"),
        sources=SPECIAL,
        dtypes=FLOATS,
        kernels=("div_floor_*",),
        shipped=("2.13.0",),
        upstream="pytorch/pytorch#189243",
    ),
    ExplainingRule(
        "hypot-overflows",
        "a defect of this release: its kernel adds up squares, which overflow or vanish; mended in 2.14",
        WRONG,
        VALUES_DIFFER,
        ("hypot", "hypot.*", "hypot_"),
        sources=SPECIAL,
        dtypes=FLOATS,
        kernels=("hypot_*",),
        shipped=("2.13.0",),
        upstream="pytorch/pytorch#192507",
    ),
    ExplainingRule(
        "lerp-of-infinities",
        "a defect of this release: its kernel multiplies the difference of the ends by a weight of zero, which is NaN "
        "where an end is infinite",
        WRONG,
        VALUES_DIFFER,
        ("lerp", "lerp.*", "lerp_"),
        sources=SPECIAL,
        dtypes=FLOATS,
        kernels=("lerp_*",),
        shipped=BOTH,
        upstream="pytorch/pytorch#111374",
    ),
    ExplainingRule(
        "norm-loses-nan",
        "a defect of this release: its kernel of norms takes Metal's min and max, of which a number wins over NaN",
        WRONG,
        r"CPU nan",
        ("*norm*",),
        kernels=("norm_float_float", "norm_half_half", "norm_bfloat_bfloat"),
        shipped=("2.13.0",),
    ),
    ExplainingRule(
        "powers-of-a-norm-overflow",
        "a defect of this release: its kernel of norms adds up powers without scaling, which overflow where the norm "
        "itself is finite; the CPU does so for other inputs",
        WRONG,
        r"inf, CPU [-\d]",
        ("*norm*",),
        sources=SPECIAL,
        inputs=r"^largest finite: ",
        kernels=("norm_float_float", "norm_half_half", "norm_bfloat_bfloat"),
        shipped=("2.13.0",),
    ),
    ExplainingRule(
        "grid-sampler-reads-out-of-bounds",
        "a defect of this release: an infinite or huge coordinate wraps around past the kernel's check of bounds, and "
        "it reads memory far outside of the input",
        WRONG,
        r"^raises KernelFault: shipped kernel grid_sampler_.*out of bounds load",
        ("*grid_sample*",),
        sources=SPECIAL,
        kernels=("grid_sampler_*",),
        shipped=BOTH,
    ),
    ExplainingRule(
        "grid-sampler-takes-nan-for-outside",
        "its kernel finds a place whose coordinate is NaN outside of the input and gives the padding, zero; the CPU "
        "gives NaN. What a GPU converts NaN to, the specification leaves open: here it is zero",
        WRONG,
        r"elements differ; at \[[^\]]*\]: \S+, CPU nan",
        ("*grid_sample*",),
        sources=SPECIAL,
        inputs=r"^nan: ",
        kernels=("grid_sampler_*",),
        shipped=BOTH,
    ),
    ExplainingRule(
        "reflectors-multiply-zero-by-nan",
        "its kernel multiplies the matrices of all reflectors, also where a factor is zero: NaN, infinities and "
        "overflows spread to rows that a reflector leaves alone",
        WRONG,
        r"nan",
        ("linalg.householder_product", "linalg_householder_product*"),
        sources=SPECIAL,
        inputs=r"^(nan|infinities|largest finite): ",
        kernels=("orgqr_*",),
        shipped=BOTH,
    ),
)

SHIPPED_RULES: tuple[ExplainingRule, ...] = (*FREEDOM, *OF_THE_CPU, *DEFECTS)
