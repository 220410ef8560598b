"""Differences that come from rounding."""

from __future__ import annotations

from .rule import VALUES_DIFFER, WRONG, ExplainingRule

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
