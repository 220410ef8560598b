"""What the CPU computes wrong, and the kernels of a release right."""

from __future__ import annotations

from .rule import ANY_RELEASE, SPECIAL, VALUES_DIFFER, WRONG, ExplainingRule

CPU_DEFECTS = (
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
        prediction="infinities-times-a-complex-one",
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
        prediction="lerp-from-the-first-end-alone",
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
