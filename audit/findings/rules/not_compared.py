"""What the simulated device accepts and a Mac may refuse, and cases without a result to compare."""

from __future__ import annotations

from .rule import REFERENCE_FAILED, SKIPPED, WRONG, ExplainingRule

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
        never_stale=True,
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
