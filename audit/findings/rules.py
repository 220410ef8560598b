"""Why a case may fail to pass without anything new being wrong: named rules, each with a reason for a stranger.

A rule is narrow: it names verdicts, the words of the message and, wherever a fault is explained, the operators; an
error in values is explained up to a size only. Whatever else the same operator does stays unexplained. In the order
of the table, the first rule that matches explains.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..model.verdicts import CaseVerdict

HoldsOn = Literal["simulated", "real", "both"]


@dataclass(frozen=True)
class ExplainingRule:
    """What a case has to look like for `reason` to explain it; an empty condition is none.

    Attributes:
        name, reason: for people; the reason says what happens and whose doing that is.
        verdicts: the verdicts that it explains.
        message: a regular expression that is found in the case's message.
        operators: shell patterns of the entry ("nn.functional.linear", "mode.values").
        sources, dtypes, stages: the case has one of these.
        inputs: a regular expression that is found in the description of the case and its inputs.
        at_most: the largest error in units of the tolerance; a case without a measured error does not match.
        without_kernel: every operator that the device named is one for which the surface has no kernel for mps.
        holds_on: the kind of mps device of which it is true.
        upstream: the public issue about it ("pytorch/pytorch#137720"), or "".
        shipped: shell patterns of the releases of torch whose shipped kernels the run launched; the case launched some.
        kernels: shell patterns of which one is that of a kernel that the case launched.
        imported: the package whose import the run asked for; without it the rule does not hold.
        standing: it repeats what the judge says whatever the operator: true even where a run has no such case.
    """

    name: str
    reason: str
    verdicts: tuple[CaseVerdict, ...]
    message: str = ""
    operators: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()
    inputs: str = ""
    at_most: float | None = None
    without_kernel: bool = False
    holds_on: HoldsOn = "both"
    upstream: str = ""
    shipped: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    imported: str = ""
    standing: bool = False


WRONG = (CaseVerdict.WRONG,)
SKIPPED = (CaseVerdict.SKIPPED,)
REFERENCE_FAILED = (CaseVerdict.REFERENCE_FAILED,)
HALVES = ("float16", "bfloat16")
VALUES_DIFFER = r"elements differ"

# ---- what the surface says already

KERNELS = (
    ExplainingRule(
        "no-kernel",
        "torch's declarations have no mps kernel for the operator that the device named: that is the gap itself",
        (CaseVerdict.FALLBACK, CaseVerdict.MISSING),
        without_kernel=True,
    ),
)

# ---- what this torch does on every mps device

TORCH = (
    ExplainingRule(
        "float64-by-definition",
        "the operator computes in float64 by definition, a dtype that mps does not have",
        (CaseVerdict.DTYPE_GAP,),
        r"Cannot convert a MPS Tensor to float64 dtype|Trying to convert (Complex)?Double to the MPS backend",
        ("float_power", "float_power.*", "double", "cdouble", "_cast_Double", "linalg_pinv.out"),
    ),
    ExplainingRule(
        "bincount-in-the-dtype-of-weights",
        "on mps bincount adds up in the dtype of the weights, in int32 for most of them; the CPU does so in float64",
        WRONG,
        r"^(output \d+: )?dtype is torch\.(int32|float16), not torch\.float64$",
        ("bincount",),
    ),
    ExplainingRule(
        "mode-out-refuses-mps",
        "mode with out= asks for a device of type CPU, CUDA or XPU in torch's own C++, before any kernel",
        WRONG,
        r"^raises RuntimeError: mode only supports CPU, CUDA and XPU device type, got: mps$",
        ("mode", "mode.values"),
    ),
    ExplainingRule(
        "addr-in-place-resizes",
        "addr_ is composed of addr.out on every device but the CPU, and that resizes a target which the CPU refuses",
        WRONG,
        r"^returns where the CPU raises RuntimeError: 2D tensor expected, got [01]D tensor for input$",
        ("addr", "addr_"),
    ),
    ExplainingRule(
        "compressed-sparse-refused",
        "torch's own check of what makes a sparse compressed tensor lists the devices that it accepts, without mps",
        WRONG,
        r"^raises RuntimeError: device type of values \(mps\) must be one of CPU",
        ("_validate_sparse_*",),
    ),
    ExplainingRule(
        "batch-norm-of-the-cpu",
        "it is composed of the CPU's batch norm kernel for every device that has no kernel of its own",
        WRONG,
        r"^raises RuntimeError: Expected tensor to have CPU Backend, but got tensor with MPS Backend",
        ("_batch_norm_no_update", "_batch_norm_no_update.out"),
    ),
    ExplainingRule(
        "copies-of-sparse-views",
        "torch generates the copying twin of this view for dense tensors alone, which it is not for: no device runs it",
        (CaseVerdict.MISSING,),
        operators=("indices_copy*", "values_copy*", "_indices_copy*", "_values_copy*", "_sparse_broadcast_to_copy*"),
    ),
    ExplainingRule(
        "lengths-stay-on-the-cpu",
        "one of the two outputs holds lengths, which live on the CPU by definition; out= on mps is refused",
        WRONG,
        r"^raises RuntimeError: Expected out tensor to have device cpu, but got mps:0 instead$",
        ("_pack_padded_sequence.out",),
    ),
    ExplainingRule(
        "linear-without-forward-ad",
        "on mps linear is an operator with a derivative formula of its own, which has no forward mode",
        WRONG,
        r"^raises NotImplementedError: Trying to use forward AD with linear that does not support it",
        ("nn.functional.linear", "nn.functional.linear_cross_entropy", "nn.functional.multi_head_attention_forward"),
        inputs=r"^forward mode: ",
        upstream="pytorch/pytorch#137720",
    ),
    ExplainingRule(
        "linear-second-derivative",
        "on mps linear has a derivative formula of its own, which cannot be derived again for complex dtypes",
        WRONG,
        r"^raises RuntimeError: linear_backward does not support automatic differentiation for outputs with complex",
        ("nn.functional.linear",),
        inputs=r"^second derivative: ",
    ),
    ExplainingRule(
        "linear-gradients-with-a-history",
        "on mps linear has a derivative formula of its own, one node for all its gradients: that of the bias, a sum "
        "which depends on nothing, then requires a gradient as the others do",
        WRONG,
        r"^(output|gradient) \d+: requires a gradient, the CPU's does not require one$",
        ("nn.functional.linear", "nn.functional.multi_head_attention_forward"),
        inputs=r"^second derivative: ",
    ),
    ExplainingRule(
        "lu-solve-out",
        "on mps linalg.lu_solve with out= is a Python function of torch; it neither resizes out nor checks its dtype",
        WRONG,
        r"^output 0: shape is \[0\], not "
        r"|^raises RuntimeError: The size of tensor a \(\d+\) must match the size of tensor b \(\d+\) at non-singleton"
        r"|^returns where the CPU raises RuntimeError: Expected out tensor to have dtype"
        r"|^returns where the CPU raises RuntimeError: linalg\.lu_solve: Expected LU and B to have the same dtype",
        ("lu_solve", "linalg.lu_solve", "lu_solve.out", "linalg_lu_solve.out"),
        sources=("forms", "mixed dtypes", "schema mixed dtypes"),
    ),
    ExplainingRule(
        "linear-cross-entropy-in-halves",
        "the chunked linear_cross_entropy accumulates in float32 on the CPU and on CUDA; elsewhere torch's Python code "
        "accumulates in the dtype of the inputs",
        WRONG,
        VALUES_DIFFER,
        ("nn.functional.linear_cross_entropy.chunked*", "nn.LinearCrossEntropyLoss.*"),
        dtypes=HALVES,
        at_most=100.0,
    ),
    ExplainingRule(
        "deterministic-bilinear-rounds-otherwise",
        "with deterministic algorithms on, torch interpolates by a decomposition everywhere but on the CPU; it rounds "
        "uint8 where the CPU's kernel truncates fixed-point numbers",
        WRONG,
        VALUES_DIFFER,
        ("nn.functional.upsample_bilinear", "nn.functional.interpolate.bilinear"),
        dtypes=("uint8",),
        inputs=r"^deterministic algorithms: ",
    ),
    ExplainingRule(
        "pinverse-under-autocast",
        "autocast computes pinverse in float32 on the CPU but not on mps, where the products inside run in the "
        "narrower dtype and the backward meets both",
        WRONG,
        r"^raises RuntimeError: expected scalar type (Half|BFloat16) but found Float$",
        ("pinverse",),
        stages=("backward",),
        inputs=r"^autocast ",
    ),
    ExplainingRule(
        "narrow-copy-error",
        "without an mps kernel narrow_copy is a composition, which refuses a wrong dimension with an IndexError; the "
        "CPU's kernel has a check of its own",
        WRONG,
        r"^raises IndexError, the CPU RuntimeError: Expected dim < ",
        ("narrow_copy",),
        sources=("errors", "arguments"),
    ),
    ExplainingRule(
        "contiguous-after-all",
        "the CPU's kernel asks for contiguous memory; on mps the operator falls back, and the copies are contiguous",
        WRONG,
        r"^returns where the CPU raises RuntimeError: \w+ requires (\w+ to be contiguous|contiguous input)$"
        r"|^returns where the CPU raises RuntimeError: \w+ must be contiguous$",
        ("_pdist_*", "multi_margin_loss_*", "multilabel_margin_loss_*"),
    ),
    ExplainingRule(
        "fallback-resizes-in-rows",
        "where torch falls back, an empty out= is resized to rows; the CPU's kernel gives it the strides of its input",
        WRONG,
        r"^output \d+, a view, has stride \([\d, ]+\), not \([\d, ]+\)$",
        ("heaviside.out", "special_legendre_polynomial_p.out", "special_laguerre_polynomial_l.out"),
        sources=("schema twins",),
        inputs=r"out= resized: ",
        without_kernel=True,
    ),
    ExplainingRule(
        "expanded-target-refused",
        "PyTorch forbids to write into memory that several elements share; a CPU kernel that does not look takes it",
        WRONG,
        r"^raises RuntimeError: unsupported operation: more than one element of the written-to tensor refers",
        sources=("targets", "schema targets"),
        inputs=r"^(in place|out=|written) expanded: ",
    ),
    ExplainingRule(
        "grouped-mm-wants-alignment",
        "torch's _grouped_mm checks that memory begins at a multiple of 16 bytes on every device but the CPU",
        WRONG,
        r"^raises RuntimeError: expected data_ptr to be aligned to 16 bytes$",
        ("_grouped_mm",),
    ),
    ExplainingRule(
        "native-channel-shuffle-views",
        "on every device but the CPU native_channel_shuffle views its input in another shape, which needs contiguous "
        "memory",
        WRONG,
        r"^raises RuntimeError: view size is not compatible with input tensor's size and stride",
        ("native_channel_shuffle",),
    ),
    ExplainingRule(
        "ldexp-of-bools",
        "without a kernel for mps ldexp is composed of pow and mul, which refuse bools with another type of error",
        WRONG,
        r"^raises RuntimeError, the CPU NotImplementedError: \"ldexp_cpu_exp\" not implemented for 'Bool'$",
        ("ldexp",),
    ),
    ExplainingRule(
        "powsum-without-its-kernel",
        "_foreach_powsum computes from other operators where it has no kernel, and takes integers; the CPU's does not",
        WRONG,
        r"^returns where the CPU raises NotImplementedError: \"powsum_cpu\" not implemented for ",
        ("_foreach_powsum.*",),
    ),
    ExplainingRule(
        "lstm-of-onednn",
        "on the CPU an LSTM whose dtypes differ goes to oneDNN, which has no kernel for them; elsewhere torch computes",
        WRONG,
        r"^returns where the CPU raises RuntimeError: could not create a primitive descriptor for the LSTM",
        ("lstm.*", "nn.LSTM*"),
    ),
    ExplainingRule(
        "take-overlap-unchecked",
        "take falls back to the CPU with copies of its arguments: that out= overlaps the input cannot be seen there",
        WRONG,
        r"^returns where the CPU raises RuntimeError: unsupported operation: some elements of the input tensor and the",
        ("take",),
        sources=("errors",),
    ),
    ExplainingRule(
        "stack-out-of-other-devices",
        "torch's _stack.out, a private operator, concatenates instead of stacking on every device but the CPU",
        WRONG,
        r"^output 0: shape is \["
        r"|^raises RuntimeError: zero-dimensional tensor \(at position 0\) cannot be concatenated$"
        r"|^raises IndexError: Dimension out of range",
        ("_stack.out",),
    ),
    ExplainingRule(
        "generator-of-mps-in-a-fallback",
        "torch's fallback hands a generator of mps to the CPU's kernel as it is, which wants one of its own",
        WRONG,
        r"^raises RuntimeError: Expected a 'cpu' device type for generator but found 'mps'",
        ("binomial", "poisson", "poisson.out", "rrelu_with_noise", "rrelu_with_noise_", "rrelu_with_noise.out"),
        sources=("schema random",),
        inputs=r"^generator=: ",
    ),
    ExplainingRule(
        "shuffle-of-one-group",
        "without an mps kernel native_channel_shuffle is a composition, which returns a view of its input where there "
        "is one group alone and nothing to shuffle; the CPU's kernel copies",
        WRONG,
        r"^output \d shares the memory of input 0, unlike the CPU's$",
        ("native_channel_shuffle",),
        sources=("arguments",),
        inputs=r"groups=1:",
    ),
    ExplainingRule(
        "order-that-nobody-asked-for",
        "with sorted=False the results may come in any order, and a device sorts them or not as it likes",
        WRONG,
        VALUES_DIFFER,
        ("topk", "topk.values", "_unique", "_unique2"),
        sources=("arguments",),
        inputs=r"sorted=False",
        holds_on="real",
    ),
    ExplainingRule(
        "svd-out-of-another-shape",
        "linalg_svd with out= falls back to the CPU with copies of its outputs: one of another shape is resized by "
        "torch's fallback in order of rows, and by the CPU's kernel in order of columns",
        WRONG,
        r"^output 0, a view, has stride \(\d+, 1\), not \(1, \d+\)$",
        ("linalg_svd.U",),
        sources=("arguments",),
        inputs=r"^full_matrices=False: ",
    ),
)

# ---- what torch's mps kernels refuse, as its own list of expected failures says (audit/releases/coverage/refusals.py)

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "bool")
# In calls of this dtype another argument, or what is computed inside (eigenvalues), may be of one that is refused.
MIXED = "float32"
REFUSALS = (
    ExplainingRule(
        "integers-refused",
        "torch's mps kernels of linear, convolution and addr take no integers",
        (CaseVerdict.DTYPE_GAP,),
        r"^raises RuntimeError: (MPS device does not support linear for non-float inputs"
        r"|Convolution is supported only for Floating types|MPS device does not support addr for non-float input)$",
        dtypes=(*INTEGERS, MIXED),
    ),
    ExplainingRule(
        "complex-refused",
        "torch's mps kernels that factor matrices, invert them and solve with them take no complex numbers",
        (CaseVerdict.DTYPE_GAP,),
        r"^raises RuntimeError: (linalg\.solve\.triangular\(\); Only float is supported!"
        r"|linalg_inv: not supported for complex types yet!"
        r"|linalg\.lu_factor\(\): MPS (doesn't support complex types|only supports floats)\."
        r"|cholesky_inverse: MPS only supports float type!)$",
        dtypes=("complex64", MIXED),
    ),
    ExplainingRule(
        "no-metal-function",
        "torch has no Metal function of the operator for this dtype",
        (CaseVerdict.DTYPE_GAP,),
        r"^raises RuntimeError: Failed to create function state object for: (renorm_float2|silu_dense_float2_float2"
        r"|upsample_bicubic2d_uchar|scatter_prod_dense_long_long)$",
    ),
    ExplainingRule(
        "antialiasing-of-bytes",
        "torch's antialiased upsampling takes uint8 on the CPU alone",
        (CaseVerdict.DTYPE_GAP,),
        r"^raises RuntimeError: _upsample_bi(lineard|cubic)2d_aa_out_mps only supports floating-point dtypes$",
    ),
    ExplainingRule(
        "transposed-convolution-in-halves",
        "torch's mps kernel of three-dimensional transposed convolution takes no half precision",
        (CaseVerdict.DTYPE_GAP,),
        r"^raises RuntimeError: ConvTranspose 3D with BF16 or FP16 types is not supported on MPS$",
    ),
    ExplainingRule(
        "adaptive-pools-that-do-not-divide",
        "torch's adaptive average pool on mps asks that one of the two sizes divides the other",
        (CaseVerdict.DTYPE_GAP,),
        r"^raises NotImplementedError: Adaptive pool MPS: ",
        upstream="pytorch/pytorch#96056",
    ),
)

# ---- roundings

ROUNDING = (
    ExplainingRule(
        "rounding-of-many-layers",
        "a module of many layers goes through other operators on mps (linear is one kernel there) and rounds at other "
        "places; small differences add up to little more than the tolerance",
        WRONG,
        VALUES_DIFFER,
        ("nn.LSTM.*", "nn.GRU.*", "nn.Transformer*"),
        sources=("modules",),
        at_most=4.0,
    ),
    ExplainingRule(
        "inner-product-in-another-order",
        "inner adds over a thousand products that cancel each other, on mps in another order than the CPU's dot; what "
        "either loses grows with their number",
        WRONG,
        r"^1 of 1 elements differ",
        ("inner",),
        sources=("sizes",),
        dtypes=("float32",),
        inputs=r"^another kind, 1,025 rows: ",
        at_most=3.0,
    ),
    ExplainingRule(
        "gradient-of-many-rows-together",
        "the gradient of renorm takes sums over all the elements of a slice, 66,625 of them; what float32 loses in one "
        "grows with their number",
        WRONG,
        r"^gradient 0: \d+ of 133250 elements differ",
        ("renorm",),
        sources=("sizes",),
        dtypes=("float32",),
        inputs=r"^1,025 rows: ",
        at_most=10.0,
    ),
    ExplainingRule(
        "sum-over-a-transposed-gradient",
        "the bias gradient is one sum over thousands of numbers; the CPU's kernel, which the simulated device runs, "
        "adds them in the order of memory",
        WRONG,
        r"^gradient 2: \d+ of 4 elements differ",
        ("nn.functional.conv_transpose3d",),
        sources=("layouts",),
        dtypes=("float32", "complex64"),
        inputs=r"^gradients of the outputs transposed: ",
        at_most=2.0,
        holds_on="simulated",
    ),
)

# ---- what the simulated device takes that a Mac may refuse

SIMULATED = (
    ExplainingRule(
        "simulated-attention-unchecked",
        "the simulated device has the mps branch of attention without torch's check of dtypes before it",
        WRONG,
        r"^returns where the CPU raises RuntimeError: Expected query, key, and value to have the same dtype",
        ("nn.functional.scaled_dot_product_attention", "scaled_dot_product_attention"),
        holds_on="simulated",
    ),
    ExplainingRule(
        "simulated-transposed-convolution-unchecked",
        "the simulated device computes mps's own transposed convolution with kernels that cast a bias of another dtype",
        WRONG,
        r"^returns where the CPU raises RuntimeError: (expected scalar type \w+ but found \w+$"
        r"|Input type \(torch\.\w+\) and bias type \(torch\.\w+\) should be the same)",
        ("nn.functional.conv_transpose*", "nn.ConvTranspose*", "nn.LazyConvTranspose*"),
        sources=("mixed dtypes", "module mixed dtypes"),
        holds_on="simulated",
    ),
    ExplainingRule(
        "simulated-sparse-compressed-of-two-dtypes",
        "the simulated device has no sparse compressed tensors, and says so before the dtypes are compared",
        WRONG,
        r"^raises NotImplementedError, the CPU RuntimeError: dtype of values \(\w+\) must match dtype of sparse tensor",
        ("sparse_*tensor*", "_sparse_*tensor*"),
        holds_on="simulated",
    ),
)

# ---- cases without an answer of the CPU: they say nothing of the device

REFERENCE = (
    ExplainingRule(
        "no-cpu-kernel-for-dtype",
        "the CPU's kernel does not take this dtype either, so there is nothing to compare with",
        REFERENCE_FAILED,
        r"not implemented for '\w+'",
    ),
    ExplainingRule(
        "jiterator-is-for-cuda",
        "jiterator functions are compiled for CUDA and ROCm alone",
        REFERENCE_FAILED,
        r"^Jiterator is only supported on CUDA and ROCm GPUs",
        ("jiterator_*",),
    ),
    ExplainingRule(
        "undefined-on-the-cpu",
        "the CPU's own result holds what fresh memory held before, so there is nothing to compare with",
        REFERENCE_FAILED,
        r"^the CPU's result depends on uninitialised memory$",
        standing=True,
    ),
    ExplainingRule(
        "as-strided-scatter-of-views",
        "torch's as_strided_scatter asserts that an input which requires a gradient is contiguous",
        REFERENCE_FAILED,
        r"^!self\.requires_grad\(\) \|\| self\.is_contiguous\(\) INTERNAL ASSERT FAILED",
        ("as_strided_scatter",),
        sources=("layouts",),
    ),
    ExplainingRule(
        "cpu-refuses",
        "the CPU refuses this call, with the error that the case shows, so there is nothing to compare with",
        REFERENCE_FAILED,
        # Not what a mistake in the auditor's own Python looks like, nor what a broken CPU kernel leaves.
        r"^(?!not judged|no samples|the CPU's run ends)(?!.*(INTERNAL ASSERT|object is not|has no attribute"
        r"|list index out of range|values to unpack|unexpected keyword argument|failed to match any schema"
        r"|invalid combination of arguments|can't allocate memory))",
        stages=("forward",),
    ),
)

# ---- cases that were not executed

SKIPS = (
    ExplainingRule(
        "asks-for-float64",
        "the case names float64 or complex128, which mps refuses by design",
        SKIPPED,
        r"^asks for float64, a dtype that mps refuses by design$",
    ),
    ExplainingRule(
        "about-the-device",
        "the operator answers with the device, or on the CPU, by definition: two devices must differ",
        SKIPPED,
        r"^answers with the device, or on the CPU, by definition$",
    ),
    ExplainingRule(
        "no-samples",
        "PyTorch's own sampler has no sample of the operator for this dtype",
        SKIPPED,
        r"^no samples: SkipTest: ",
        sources=("opinfo",),
    ),
    ExplainingRule(
        "simulated-sparse-compressed",
        "the simulated device has no sparse compressed tensors; a Mac may have them",
        SKIPPED,
        r"^the simulated device has no sparse(_csr|_csc|_bsr|_bsc| compressed) tensors$",
        holds_on="simulated",
    ),
    ExplainingRule(
        "simulated-copy-on-write",
        "the simulated device has no copy-on-write storages; a Mac has them",
        SKIPPED,
        r"^the simulated device has no copy-on-write storages$",
        holds_on="simulated",
    ),
    ExplainingRule(
        "built-without-the-mps-branch",
        "a torch for Linux is compiled without the mps branch of some kernels that all devices share",
        SKIPPED,
        r"^this torch was built without the mps branch of the operator's kernel$",
        holds_on="simulated",
    ),
)

RULES: tuple[ExplainingRule, ...] = (*KERNELS, *TORCH, *REFUSALS, *ROUNDING, *SIMULATED, *REFERENCE, *SKIPS)
