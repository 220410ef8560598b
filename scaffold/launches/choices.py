"""Arguments with a fixed set of values: strings such as `reduce="amax"`, and enumerations such as `reduction=1`.

The shader gets the value as a number, and an enum with the names of all values.
"""

from __future__ import annotations

import re

# The order of torch's own enum, ATen/native/ReductionType.h.
REDUCTIONS = (("max", "amax"), ("mean",), ("min", "amin"), ("sum",), ("prod",))

# The operators, the argument, and the names of its values 0, 1 and so on, with synonyms.
_CHOICES = (
    (r"_?segment_reduce.*|scatter_reduce_?|index_reduce_?", "reduce", REDUCTIONS),
    (r"scatter_?", "reduce", (("add",), ("multiply",))),
    (r".*", "reduction", (("none",), ("mean",), ("sum",))),
    (r".*grid_sampler.*", "interpolation_mode", (("bilinear",), ("nearest",), ("bicubic",))),
    (r".*grid_sampler.*", "padding_mode", (("zeros",), ("border",), ("reflection",))),
    (r"_?embedding_bag.*", "mode", (("sum",), ("mean",), ("max",))),
    (r".*linalg_eig\w*", "UPLO", (("L", "l"), ("U", "u"))),
    (r"linalg_lstsq", "driver", (("gelsy",), ("gels",), ("gelsd",), ("gelss",))),
    (r"linalg_qr", "mode", (("reduced",), ("complete",), ("r",))),
    (r"gelu.*", "approximate", (("none",), ("tanh",))),
    (r"div.*", "rounding_mode", (("trunc",), ("floor",))),
    (r"searchsorted", "side", (("left",), ("right",))),
    (r"(nan)?quantile", "interpolation", (("linear",), ("lower",), ("higher",), ("midpoint",), ("nearest",))),
)


def choices_of(operator: str, argument: str) -> tuple[tuple[str, ...], ...]:
    """The names of the values of an argument; empty if it has no fixed set of values."""
    return next(
        (choices for operators, own, choices in _CHOICES if own == argument and re.fullmatch(operators, operator)), ()
    )
