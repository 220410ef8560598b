"""Cases that this torch treats differently on every mps device, and operators without an mps kernel."""

from __future__ import annotations

from ...model.verdicts import CaseVerdict
from .rule import HALVES, VALUES_DIFFER, WRONG, ExplainingRule

KERNELS = (
    ExplainingRule(
        "no-kernel",
        "torch's declarations have no mps kernel for the operator that the device named: that is the gap itself",
        (CaseVerdict.FALLBACK, CaseVerdict.MISSING),
        without_kernel=True,
    ),
)

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
