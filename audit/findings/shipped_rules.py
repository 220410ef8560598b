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
SIGNED = ("int8", "int16", "int32", "int64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "bool")

# ---- what the Metal specification leaves free

FREEDOM = (
    ExplainingRule(
        "subnormals-count-as-zero",
        "the kernels are compiled to take subnormal numbers for zero, which the Metal specification allows; the CPU "
        "computes with them",
        WRONG,
        rf"(?:{VALUES_DIFFER})|^returns where the CPU raises ValueError: var has negative",
        sources=("special values", "module special values"),
        inputs=r"^denormals: ",
        shipped=ANY_RELEASE,
    ),
    ExplainingRule(
        "subnormals-on-the-way",
        "a reciprocal, a power or a partial product below the normal range counts as zero, which the Metal "
        "specification allows; the result that the CPU computes from it is an ordinary number",
        WRONG,
        VALUES_DIFFER,
        ("__rdiv__", "ldexp", "special.zeta", "cumprod"),
        sources=("special values", "sizes"),
        dtypes=("float32", "bfloat16", "int8"),
        inputs=r"^(largest finite|extreme integers|1,025 rows): ",
        kernels=("reciprocal_*", "mul_dense_*", "zeta_*_float_float"),
        shipped=ANY_RELEASE,
    ),
    ExplainingRule(
        "overflow-in-another-order",
        "threads add and multiply in another order than the CPU: where numbers are next to overflow, or infinities of "
        "both signs meet, a partial result overflows on one side alone, and beside an infinite part nothing but "
        "equality counts",
        WRONG,
        VALUES_DIFFER,
        ("cumprod", "cumsum", "masked.cumprod", "masked.cumsum", "masked.std", "*cross", "nn.functional.embedding_bag"),
        sources=("special values", "sizes"),
        inputs=r"^(infinities|largest finite|257 in the last dimension): ",
        kernels=("cumprod_*", "cumsum_*", "sum_reduction_*", "cross_dense_*", "embedding_bag_*"),
        shipped=ANY_RELEASE,
    ),
    ExplainingRule(
        "variance-overflows",
        "the variance overflows on both sides, and its root's reciprocal is zero: the kernel is left with the bias, "
        "the CPU multiplies an infinite mean by it, which is NaN",
        WRONG,
        r": 3\.\d+e\+38, CPU nan",
        ("*layer_norm", "*group_norm"),
        sources=SPECIAL,
        dtypes=("float32", "bfloat16"),
        inputs=r"^largest finite: ",
        kernels=("layer_norm_*", "group_norm_*"),
        shipped=ANY_RELEASE,
    ),
    ExplainingRule(
        "infinite-degree-of-a-polynomial",
        "what integer an infinite or huge degree is converted to, the specification leaves open: the largest here, so "
        "that the recurrence goes on until it is NaN; the lowest on the CPU, which gives zero for negative degrees",
        WRONG,
        r"nan, CPU 0\.0",
        ("*_polynomial_*",),
        sources=SPECIAL,
        dtypes=("float32",),
        inputs=r"^(infinities|largest finite): ",
        kernels=("*_polynomial_*",),
        shipped=ANY_RELEASE,
    ),
    ExplainingRule(
        "float-beyond-the-integers",
        "what integer a float beyond its range is converted to, the specification leaves open: the largest here, the "
        "lowest on the CPU",
        WRONG,
        r"9223372036854775807, CPU -9223372036854775808",
        ("masked.logsumexp",),
        sources=SPECIAL,
        dtypes=("int64",),
        inputs=r"^extreme integers: ",
        kernels=("copy_identity_*_castout_long",),
        shipped=ANY_RELEASE,
    ),
    ExplainingRule(
        "divisor-of-the-least-integer",
        "the least integer has no positive counterpart, and both sides overflow where they take its absolute value",
        WRONG,
        VALUES_DIFFER,
        ("gcd*",),
        sources=SPECIAL,
        dtypes=SIGNED,
        inputs=r"^extreme integers: ",
        kernels=("gcd_*",),
        shipped=ANY_RELEASE,
    ),
    ExplainingRule(
        "dropped-gradients-are-zero",
        "the kernel selects zero where the mask drops an element; the CPU multiplies by zero, which leaves NaN",
        WRONG,
        r": 0\.0, CPU nan",
        ("native_dropout_backward*",),
        sources=SPECIAL,
        dtypes=FLOATS,
        kernels=("dropout_bwd_*",),
        shipped=ANY_RELEASE,
    ),
    ExplainingRule(
        "volume-sampler-takes-nan-for-a-place",
        "what a GPU converts NaN to, the specification leaves open: here it is zero, a place inside of the volume, of "
        "which the weights are NaN; the CPU finds it outside and gives the padding",
        WRONG,
        r"nan, CPU 0\.0",
        ("grid_sampler_3d*",),
        sources=SPECIAL,
        dtypes=FLOATS,
        inputs=r"^nan: ",
        kernels=("grid_sampler_3d_*",),
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
        ("*div*", "*reciprocal*", "masked.mean"),
        sources=SPECIAL,
        dtypes=("complex64",),
        kernels=("div_true_*_float2_float2", "reciprocal_*_float2_float2"),
        shipped=ANY_RELEASE,
    ),
    ExplainingRule(
        "infinities-in-complex-functions",
        "which infinity or NaN a complex function gives of infinities, C's annex G leaves open in part: the kernel and "
        "the CPU compute it by different formulas",
        WRONG,
        VALUES_DIFFER,
        ("expm1", "logcumsumexp"),
        sources=SPECIAL,
        dtypes=("complex64",),
        inputs=r"^infinities: ",
        kernels=("expm1_*_float2_float2", "logcumsumexp_*_float2"),
        shipped=ANY_RELEASE,
    ),
    ExplainingRule(
        "factor-at-the-edge-of-definite",
        "numbers so large or so small that rounding decides whether the matrix is positive definite",
        WRONG,
        rf"(?:{VALUES_DIFFER})|^raises _LinAlgError: linalg.cholesky: ",
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
        "infinities-times-a-complex-one",
        "the CPU multiplies by the factor of add and sub, and divides a mean by its count, as complex numbers even "
        "where those are real: zero times infinity is NaN; the kernels leave the other part alone",
        WRONG,
        r"CPU \S*nan",
        (*("add", "sub", "rsub", "__radd__", "__rsub__", "mean"), *("gradient", "*trapezoid", "trapz")),
        sources=SPECIAL,
        dtypes=("complex64",),
        inputs=r"^infinities: ",
        kernels=("add_*_float2_float2", "sub_*_float2_float2", "sum_reduction_float2_float2"),
        shipped=ANY_RELEASE,
    ),
    ExplainingRule(
        "quantile-next-to-infinity",
        "the CPU's lerp from the end that is infinite subtracts infinity from infinity, which is NaN; the kernel goes "
        "from the other end",
        WRONG,
        r": -?inf, CPU nan",
        ("quantile", "nanquantile"),
        sources=SPECIAL,
        dtypes=("float32",),
        inputs=r"^infinities: ",
        kernels=("lerp_*",),
        shipped=ANY_RELEASE,
    ),
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
        "a defect of this release: its kernels of abs for integers convert to float and back, which loses what a float "
        "does not hold beyond 2^24 and makes the largest integer of the least; 2.15.0 has an integer abs",
        WRONG,
        VALUES_DIFFER,
        ("abs", "abs.*", "abs_", "absolute", "absolute.*", "absolute_", "_foreach_abs*", "nn.functional.softsign"),
        dtypes=SIGNED,
        kernels=("abs_*_char_char", "abs_*_short_short", "abs_*_int_int", "abs_*_long_long"),
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
        "a defect of this release: for negative numbers its kernel of digamma takes the fraction of x up from the "
        "integer below, which rounds away what is left near the integer above: digamma(-1e-8) is 2.1e7 for 1e8",
        WRONG,
        VALUES_DIFFER,
        ("*digamma*", "special_psi*", "special.polygamma*", "*polygamma*", "_foreach_lgamma*"),
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
        "lgamma-of-small-numbers",
        "a defect of this release: below one its kernel of gamma divides by 1 + x less 1, of which few digits are left "
        "where x is small, down to 0.001 where it changes to a series",
        WRONG,
        VALUES_DIFFER,
        ("_foreach_lgamma*", "lgamma*", "special.gammaln", "special_gammaln*"),
        dtypes=("float32",),
        stages=("forward",),
        at_most=8.0,
        kernels=("lgamma_*_float_float",),
        shipped=BOTH,
    ),
    ExplainingRule(
        "complex-arcsines-cancel",
        "a defect of this release: its kernels of asin and acos for complex numbers take the arctangent of "
        "z / sqrt(1 - z z), and that of atan the logarithm of a quotient, in which small parts are lost; infinities "
        "give NaN",
        WRONG,
        VALUES_DIFFER,
        ("*asin*", "*acos*", "*arcsin*", "*arccos*", "*atan", "*atan_", "*atan.out", "arctan", "arctan_", "arctan.out"),
        dtypes=("complex64",),
        kernels=("asin_*_float2_float2", "acos_*_float2_float2", "atan_*_float2_float2"),
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
        kernels=("norm_float_float", "norm_half_half", "norm_bfloat_bfloat", "norm_float2_float"),
        shipped=("2.13.0",),
    ),
    ExplainingRule(
        "powers-of-a-norm-overflow",
        "a defect of this release: its kernel of norms adds up powers without scaling, which overflow where the norm "
        "itself is finite, so that renorm makes zeros of finite rows; the CPU does so for other inputs",
        WRONG,
        r": (inf|0\.0), CPU [-\d]",
        ("*norm*",),
        sources=SPECIAL,
        inputs=r"^largest finite: ",
        kernels=("norm_float_float", "norm_half_half", "norm_bfloat_bfloat"),
        shipped=("2.13.0",),
    ),
    ExplainingRule(
        "lerp-from-the-first-end-alone",
        "a defect of this release: its kernel of lerp adds the weighted difference to the first end whatever the "
        "weight, so that a weight of one does not give the second end and digits cancel; the CPU goes from the nearer "
        "end",
        WRONG,
        VALUES_DIFFER,
        ("_foreach_lerp*",),
        dtypes=(*FLOATS, "complex64"),
        kernels=("lerp_alpha_*",),
        shipped=("2.13.0",),
    ),
    ExplainingRule(
        "shift-counts-out-of-range",
        "a defect of this release: its kernels shift by whatever count they get, and a negative count, or one of the "
        "width or more, leaves the result to the processor; the CPU gives zero, or the sign",
        WRONG,
        VALUES_DIFFER,
        ("*bitwise_left_shift*", "*bitwise_right_shift*"),
        dtypes=INTEGERS,
        kernels=("bitwise_left_shift_*", "bitwise_right_shift_*"),
        shipped=("2.13.0",),
    ),
    ExplainingRule(
        "zeta-in-single-precision",
        "a defect of this release: its kernel of zeta computes in float, where the powers vanish and the product that "
        "they are multiplied by overflows: NaN for next to zero; the CPU computes in double",
        WRONG,
        r"nan, CPU 0\.0",
        ("special.zeta", "special_zeta*"),
        dtypes=INTEGERS,
        kernels=("zeta_*",),
        shipped=BOTH,
    ),
    ExplainingRule(
        "remainder-by-a-rounded-quotient",
        "a defect of this release: its kernel of remainder subtracts the divisor times the quotient rounded down, "
        "which is NaN of infinities and loses all digits where the quotient is large",
        WRONG,
        VALUES_DIFFER,
        ("remainder*", "__rmod__"),
        sources=SPECIAL,
        dtypes=FLOATS,
        inputs=r"^(infinities|largest finite): ",
        kernels=("remainder_*",),
        shipped=("2.13.0",),
    ),
    ExplainingRule(
        "adaptive-windows-of-one-size",
        "a defect of this release: its host code gives all windows of an adaptive maximum one size and one step, which "
        "is wrong where the sizes do not divide; 2.15.0 has a kernel with windows of their own",
        WRONG,
        VALUES_DIFFER,
        ("*adaptive_max_pool1d*", "*adaptive_max_pool2d*", "nn.AdaptiveMaxPool1d*", "nn.AdaptiveMaxPool2d*"),
        dtypes=FLOATS,
        kernels=("max_pool_*",),
        shipped=("2.13.0",),
    ),
    ExplainingRule(
        "complex-magnitude-in-both-parts",
        "a defect of this release: its kernel of abs writes the magnitude of a complex number to both parts, which is "
        "seen where out= is complex",
        WRONG,
        r": \((\S+)\+\1j\), CPU",
        ("abs.out", "absolute.out"),
        dtypes=("complex64", "float32"),
        kernels=("abs_*_float2_float2",),
        shipped=("2.13.0",),
    ),
    ExplainingRule(
        "complex-sinh-and-log1p-cancel",
        "a defect of this release: its kernels for complex numbers take sinh as half the difference of two "
        "exponentials and log1p as the logarithm of the magnitude of 1 + z, in which small results cancel",
        WRONG,
        VALUES_DIFFER,
        ("*sinh", "*sinh_", "*sinh.out", "*log1p", "*log1p_", "*log1p.out", "*soft_margin_loss*"),
        dtypes=("complex64",),
        kernels=("sinh_*_float2_float2", "log1p_*_float2_float2"),
        shipped=("2.13.0",),
    ),
    ExplainingRule(
        "complex-expm1-reduced-by-a-short-logarithm",
        "a defect of this release: for real numbers that come as complex ones, its kernel of expm1 subtracts multiples "
        "of the leading digits of log(2) alone, without the rest that its original has: an error of 1.4e-6 for each "
        "power of two",
        WRONG,
        VALUES_DIFFER,
        ("*expm1", "*expm1_", "*expm1.out"),
        dtypes=("complex64",),
        at_most=8.0,
        kernels=("expm1_*_float2_float2",),
        shipped=("2.13.0",),
    ),
    ExplainingRule(
        "long-extremes-read-idle-lanes",
        "a defect of this release: the last step of its reductions shuffles 64-bit numbers among the few lanes that "
        "are left, and reads idle ones, which hold zero: the least of positive numbers is zero",
        WRONG,
        r": 0, CPU -?\d",
        ("aminmax*", "amin*", "amax*"),
        dtypes=("int64",),
        kernels=("min_reduction_long_long", "max_reduction_long_long"),
        shipped=("2.13.0",),
    ),
    ExplainingRule(
        "one-reflector-without-a-barrier",
        "a defect of this release: with a single reflector its kernel has no barrier between reading the matrix and "
        "writing to it, and threads that come later read what others wrote",
        WRONG,
        VALUES_DIFFER,
        ("orgqr", "orgqr.out"),
        dtypes=("float32", "complex64"),
        inputs=r"^\(\w+\[[\d, ]+\], \w+\[1\]\)",
        kernels=("orgqr_*",),
        shipped=("2.13.0",),
    ),
    ExplainingRule(
        "blocks-that-are-not-definite",
        "a defect of this release: its kernel leaves a block that is not positive definite as it was, goes on with the "
        "next and counts the minor from that block's start; what the factor holds then is unspecified",
        WRONG,
        VALUES_DIFFER,
        ("linalg.cholesky_ex",),
        sources=("sizes",),
        dtypes=("float32",),
        inputs=r"^33 columns: ",
        kernels=("factorDiagonalBlock*",),
        shipped=("2.13.0",),
    ),
    ExplainingRule(
        "complex-logaddexp-of-equal-real-parts",
        "a defect of this release: where the real parts are equal, its kernel of logaddexp takes the second number "
        "for both",
        WRONG,
        VALUES_DIFFER,
        ("logaddexp*",),
        dtypes=("complex64",),
        kernels=("logaddexp_*_float2_float2",),
        shipped=BOTH,
    ),
    ExplainingRule(
        "complex-logarithm-of-a-signed-zero",
        "a defect of this release: its kernels of log, log2 and log10 give the angle zero for every complex zero, "
        "whatever its signs",
        WRONG,
        r": \(-inf\+0j\), CPU \(-inf",
        ("log", "log2", "log10"),
        sources=SPECIAL,
        dtypes=("complex64",),
        inputs=r"^signed zeros: ",
        kernels=("log_*_float2_float2", "log2_*_float2_float2", "log10_*_float2_float2"),
        shipped=("2.13.0",),
    ),
    ExplainingRule(
        "complex-sinc-of-zero",
        "a defect of this release: its kernel of sinc gives zero for a complex zero, not one",
        WRONG,
        r": 0j, CPU \(1\+0j\)",
        ("sinc*", "special.sinc", "special_sinc*"),
        dtypes=("complex64",),
        kernels=("sinc_*_float2_float2",),
        shipped=BOTH,
    ),
    ExplainingRule(
        "index-reduce-loses-nan",
        "a defect of this release: its kernels of index_reduce combine by Metal's min and max, of which a number wins "
        "over NaN",
        WRONG,
        r"CPU nan",
        ("index_reduce*",),
        sources=SPECIAL,
        dtypes=("float32", "float16"),
        kernels=("index_reduce_amax_*", "index_reduce_amin_*"),
        shipped=BOTH,
    ),
    ExplainingRule(
        "max-pool-skips-nan",
        "a defect of this release: its kernel of max_pool compares as numbers do, and passes over a NaN that is not "
        "the first element of its window; the gradient goes to the number",
        WRONG,
        r"CPU nan|: 1\.0, CPU 0\.0",
        ("*max_pool*",),
        sources=SPECIAL,
        dtypes=FLOATS,
        inputs=r"^nan: ",
        kernels=("max_pool_*",),
        shipped=BOTH,
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
