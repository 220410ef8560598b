"""Why a case with shipped kernels may come out wrong: what the specification leaves free, and defects of releases.

A rule names the kernels and the releases that it is true of, and holds for cases alone that launched one of them: in a
run of another release it neither explains nor is missed. A defect that is explained stays in the list of wrong results
of shipped kernels; what nobody has understood yet is unexplained, like anything else.
"""

from __future__ import annotations

from .rules import VALUES_DIFFER, WRONG, ExplainingRule

ANY_RELEASE = ("*",)

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
        dtypes=("float32",),
        kernels=("erfc_*_float_float",),
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
)

SHIPPED_RULES: tuple[ExplainingRule, ...] = (*FREEDOM, *DEFECTS)
