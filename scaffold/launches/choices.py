"""Arguments that are one of a few: words such as `reduce="amax"`, and numbers that stand for a name: `reduction=1`.

A shader gets a number for each, and the names of all of them.
"""

from __future__ import annotations

import re

# The order of torch's own enum, ATen/native/ReductionType.h.
REDUCTIONS = (("max", "amax"), ("mean",), ("min", "amin"), ("sum",), ("prod",))

# The operators, the argument, and what its numbers 0, 1 and so on are called, synonyms together.
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
    """What the numbers of an argument are called; empty for one that may be anything."""
    return next(
        (choices for operators, own, choices in _CHOICES if own == argument and re.fullmatch(operators, operator)), ()
    )
