"""Why a case may come out otherwise than on the CPU with the kernels of mpsmith.kernels, and be right.

They answer where torch would hand the call to the CPU, so that only here a result is not the CPU's own. A rule holds
for runs alone that imported the kernels; anywhere else it neither explains nor is missed.
"""

from __future__ import annotations

from .rule import VALUES_DIFFER, WRONG, ExplainingRule

OURS = "mpsmith.kernels"

OWN_KERNEL_RULES = (
    ExplainingRule(
        "narrow-copy-writes-rows",
        "the CPU's narrow_copy with out= writes row after row into its memory, whatever strides it has; a kernel that "
        "looks at them puts each element where it belongs",
        WRONG,
        VALUES_DIFFER,
        ("narrow_copy",),
        sources=("pairs", "forms"),
        inputs=r"out= transposed: ",
        imported=OURS,
    ),
    ExplainingRule(
        "memory-taken-for-rows",
        "the CPU's kernels of these operators take the memory of some arguments, and of what they write, for rows, "
        "whatever strides it has",
        WRONG,
        VALUES_DIFFER,
        ("fractional_max_pool*", "adaptive_max_pool3d*"),
        sources=("schema targets", "schema twins", "schema tensor layouts"),
        inputs=r"^((written|tensor [24]) )?(transposed|channels last)(, out= resized)?: ",
        imported=OURS,
    ),
    ExplainingRule(
        "lists-taken-for-rows",
        "the CPU's kernel takes the memory of each parameter, its gradient and its sum for rows, whatever strides they "
        "have",
        WRONG,
        VALUES_DIFFER,
        ("_fused_adagrad*",),
        sources=("schema targets", "schema twins", "schema tensor layouts"),
        inputs=r"^(written|out=|tensor [0-4]) (transposed|channels last): ",
        imported=OURS,
    ),
    ExplainingRule(
        "memory-taken-for-another-shape",
        "the CPU's kernel takes as many elements of the memory of gradients and sums as the parameter has, whatever "
        "shapes they have; ours refuses them",
        WRONG,
        r"^raises RuntimeError: _fused_adagrad_: a parameter, its gradient and its sum must have one dtype and one ",
        ("_fused_adagrad*",),
        imported=OURS,
    ),
    ExplainingRule(
        "roots-less-one",
        "with an eps of -1 the denominator is the difference of two numbers that are nearly equal, a root and one: "
        "what float32 loses in the root grows with their likeness",
        WRONG,
        r"^output \d+: 1 of 1 elements differ",
        ("_fused_adagrad_", "_fused_adagrad_.tensor_lr"),
        sources=("arguments",),
        dtypes=("float32",),
        inputs=r"^eps=-1: ",
        at_most=10.0,
        imported=OURS,
    ),
    ExplainingRule(
        "places-named-twice",
        "torch leaves undefined which value stays where put_ without accumulation names a place more than once; the "
        "CPU's order follows the strides of the values",
        WRONG,
        r"^output 0: [12] of \d+ elements differ",
        ("put_",),
        sources=("schema twins",),
        inputs=r"^tensor 2 transposed: .*, False\)",
        imported=OURS,
    ),
    ExplainingRule(
        "rows-before-the-first",
        "the CPU's kernel does not look at a negative index, and renormalizes memory in front of the rows; ours "
        "reports it",
        WRONG,
        r"^raises AcceleratorError: embedding_renorm_\(\): index -1 is out of range of \d+ rows",
        ("embedding_renorm_",),
        sources=("arguments",),
        imported=OURS,
    ),
    ExplainingRule(
        "infinities-as-integers",
        "the CPU casts quotients to int64 before it clamps them, which leaves the least integer of infinities of "
        "either sign; a kernel that clamps first keeps their side, as both do in the forward",
        WRONG,
        r"^output 1: \d+ of \d+ elements differ",
        ("_fake_quantize_learnable_per_*_affine_backward",),
        sources=("schema special values", "schema twins"),
        inputs=r"^(infinities|signed zeros|largest finite): ",
        imported=OURS,
    ),
    ExplainingRule(
        "indices-of-other-windows",
        "the second call has the indices in reverse order: each names an element outside of its own window, which the "
        "forward never returns; the CPU adds the gradient wherever an index points, a kernel that gathers looks into "
        "windows",
        WRONG,
        r"^output \d: \d+ of \d+ elements differ",
        ("adaptive_max_pool3d_backward", "adaptive_max_pool3d_backward.grad_input"),
        sources=("schema repetition",),
        inputs=r"^(with other values|from two threads): ",
        imported=OURS,
    ),
    ExplainingRule(
        "antialiasing-into-one-column",
        "the CPU's antialiased upsampling into a width of one gives every row the same number; a kernel that looks at "
        "the rows gives each its own",
        WRONG,
        VALUES_DIFFER,
        ("_upsample_lanczos2d_aa*",),
        inputs=r"output_size=\[\d+, 1\]|, \[\d+, 1\], |None, True, \[2\.0, 0\.5\]\)",
        imported=OURS,
    ),
    ExplainingRule(
        "complex-infinities",
        "what a product or a quotient of complex numbers with an infinite part is depends on how it is computed: "
        "LAPACK's is NaN where the numbers themselves leave an infinity or zero",
        WRONG,
        r"elements differ; .*, CPU \(nan\+nanj\), float64 \(nan\+nanj\)$",
        ("linalg.ldl_solve", "ormqr"),
        sources=("special values",),
        dtypes=("complex64",),
        inputs=r"^infinite (imaginary|real) part: ",
        imported=OURS,
    ),
    ExplainingRule(
        "factors-of-what-is-not-finite",
        "LAPACK makes nothing certain of a matrix with NaN or infinities: its iteration may give up, which torch "
        "raises, and its norms may pass a NaN over; our kernels return NaN or infinities without a word",
        WRONG,
        r"^returns where the CPU raises _LinAlgError: linalg\.(eigh|svd): .* failed to converge"
        r"|elements differ; at \[[\d, ]+\]: \(?-?(nan|inf)",
        (
            "*linalg[._]eigh*",
            "*linalg[._]svd*",
            "svd",
            "svd.U",
            "linalg[._]eigvalsh*",
            "linalg[._]pinv*",
            "linalg[._]matrix_rank*",
            "pinverse",
            "geqrf",
            "geqrf.*",
        ),
        sources=("schema special values", "special values", "schema twins"),
        inputs=r"^(infinities|one infinity|negative infinity in whole rows|nan (first|middle)"
        r"|infinite (imaginary|real) part): ",
        imported=OURS,
    ),
    ExplainingRule(
        "condition-of-a-singular-matrix",
        "the condition number of an expanded matrix, which has one independent row, divides by what rounding leaves of "
        "a singular value of zero; its gradient is infinite along vectors of a space in which any basis is right, and "
        "NaN where these are zero",
        WRONG,
        r"^gradient 0: \d+ of \d+ elements differ; at \[[\d, ]+\]: (nan|-?inf), CPU (nan|-?inf), ",
        ("linalg.cond",),
        sources=("tensor layouts",),
        inputs=r"^tensor 0 expanded: ",
        imported=OURS,
    ),
    ExplainingRule(
        "values-beyond-float32",
        "the largest singular value is infinite in float32, and the others lie below what rounding leaves of it: any "
        "are right",
        WRONG,
        r"elements differ; at \[[\d, ]+\]: \(?-?[\d.]",
        ("svd", "linalg.svd", "linalg_svd", "linalg_svd.U", "_linalg_svd*", "linalg_lstsq.out"),
        sources=("special values", "schema special values", "schema twins"),
        inputs=r"^largest finite: ",
        imported=OURS,
    ),
    ExplainingRule(
        "squares-beyond-float32",
        "the squares of the largest numbers are beyond float32, in which a GPU adds them up; the CPU adds in double "
        "precision where it does not lose them too",
        WRONG,
        r"^output 0: \d+ of \d+ elements differ; at \[[\d, ]*\]: (inf|nan), ",
        ("std", "std.correction_out"),
        sources=("pairs", "schema twins"),
        inputs=r"\blargest finite\b",
        imported=OURS,
    ),
    ExplainingRule(
        "sums-beyond-float32",
        "a gradient that goes through rows and columns in turn has sums on its way that are beyond float32, where the "
        "CPU's order has others",
        WRONG,
        r"^(output 0: )?\d+ of \d+ elements differ; at \[[\d, ]+\]: (-?inf|nan), ",
        ("_upsample_*2d_aa_backward", "_upsample_*2d_aa_backward.grad_input"),
        sources=("schema twins",),
        inputs=r"^largest finite(, out= resized)?: ",
        imported=OURS,
    ),
    ExplainingRule(
        "gradients-of-equal-singular-values",
        "an expanded matrix has one independent row: its other singular values are zero and equal, of which torch says "
        "that the gradient is no number",
        WRONG,
        r"^gradient 0: \d+ of \d+ elements differ; at \[[\d, ]+\]: \(?nan",
        ("svd", "linalg.svd"),
        sources=("layouts", "pairs"),
        inputs=r"^expanded(, gradients of all)?: ",
        imported=OURS,
    ),
    ExplainingRule(
        "exponentials-beyond-float32",
        "the exponential of the largest numbers is beyond float32: whether an infinity, a NaN or what rounding makes "
        "of their differences comes out depends on the order of the products",
        WRONG,
        r"elements differ; at \[[\d, ]+\]: \(?-?(inf|nan).*, float64 \(?-?(inf|nan)",
        ("matrix_exp", "linalg.matrix_exp", "linalg_matrix_exp"),
        sources=("special values", "schema special values"),
        inputs=r"^largest finite: ",
        imported=OURS,
    ),
    ExplainingRule(
        "gels-without-full-rank",
        "the driver gels is for matrices of full rank, says torch, which an expanded one has not: what comes out of "
        "it, an error or a solution, is what rounding leaves",
        WRONG,
        r"^returns where the CPU raises _LinAlgError: torch\.linalg\.lstsq: |elements differ",
        ("linalg.lstsq*",),
        sources=("layouts", "tensor layouts", "pairs"),
        inputs=r"^(tensor 0 )?expanded.*driver='gels'$",
        imported=OURS,
    ),
    ExplainingRule(
        "products-of-pseudoinverses",
        "the gradient is made of products of pseudoinverses, thousands of times as large as what is left of them where "
        "they cancel each other",
        WRONG,
        r"^gradient 0: [12] of \d+ elements differ",
        ("linalg.pinv.hermitian", "linalg.lstsq"),
        sources=("gradients", "cancellation"),
        dtypes=("float32",),
        at_most=4.0,
        imported=OURS,
    ),
    ExplainingRule(
        "combinations-of-complex-numbers",
        "the CPU's kernel leaves products of imaginary parts out of complex combinations",
        WRONG,
        VALUES_DIFFER,
        ("_compute_linear_combination", "_compute_linear_combination.out"),
        dtypes=("complex64",),
        imported=OURS,
    ),
    ExplainingRule(
        "coefficients-of-another-dtype",
        "the CPU's kernel takes the memory of coefficients for numbers of the inputs' dtype, whatever theirs is; ours "
        "refuses them",
        WRONG,
        r"^raises RuntimeError: _compute_linear_combination: inputs and coefficients must have one dtype, got ",
        ("_compute_linear_combination", "_compute_linear_combination.out"),
        imported=OURS,
    ),
    ExplainingRule(
        "distances-of-huge-norms",
        "for a p of a million, or of minus infinity, the CPU divides one power by another, and both are zero or "
        "infinite; the power of the quotient is a number",
        WRONG,
        r"^(output \d+: )?\d+ of \d+ elements differ; .*, CPU nan, float64 nan$",
        ("_pdist_backward",),
        sources=("arguments",),
        inputs=r"^(numbers near each other: p|p=-inf|in a row: .*p=-inf): ",
        imported=OURS,
    ),
    ExplainingRule(
        "no-halves-on-the-cpu",
        "the CPU's kernel of the operator takes no halves, and says so before it looks at anything else; ours takes "
        "them",
        WRONG,
        r"^(returns where the CPU raises|raises RuntimeError, the CPU) NotImplementedError: "
        r"\"\w+\" not implemented for '(Half|BFloat16)'$",
        (
            "nn.functional.multi*_margin_loss",
            "nn.Multi*MarginLoss.*",
            "multi*_margin_loss*",
            "rrelu_with_noise*",
            "special_l*_polynomial_[lp]*",
            "special_airy_ai*",
            "special_log_ndtr*",
            "special_ndtri*",
            "_pdist_*",
            "_upsample_lanczos2d_aa_backward*",
        ),
        imported=OURS,
    ),
)
