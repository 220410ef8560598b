"""Apple's error bounds of mathematical functions, and perturbation of results within them.

Apple's library is closed, so the exact results of a Mac are unknown. The bounds are those of the Metal Shading Language
Specification, version 4.1, chapter 8.4: table 8.1 (single precision with fast math disabled), table
8.2 (`fast_` functions) and table 8.3 (half precision). Kernels call no mathematics on bfloat. A verdict that holds for
results moved anywhere within the bounds does not depend on the last bits of a Mac's results.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .operation import Operation

SINGLE_ULPS = {
    **dict.fromkeys(("acos", "acosh", "asin", "asinh"), 4),
    **dict.fromkeys(("atan", "atanh", "tanh"), 5),
    **dict.fromkeys(("cos", "cosh", "cospi", "sin", "sinh", "sinpi"), 4),
    **dict.fromkeys(("exp", "exp2", "exp10", "log", "log2", "log10"), 4),
    **dict.fromkeys(("atan2", "tan", "tanpi"), 6),
    **dict.fromkeys(("pow", "powr"), 16),
}
"""Table 8.1, in ULPs; other functions are correctly rounded or exact (rsqrt, sqrt, fma, fmod)."""

# In half precision it is 1 for each of them: one of the two halves around the true result (compared with the text of
# version 2.0, whose table of half precision is number 38).

FAST_GROWING = frozenset({"exp", "exp2"})
"""Functions whose `fast_` form may be wrong by 3 + floor(|2 x|) ULPs."""

FAST_BY_FORMULA = frozenset({"tanh"})
"""Functions whose `fast_` form is defined by a formula: tanh is (t - 1) / (t + 1), where t is fast_exp(2 x)."""


@dataclass(frozen=True)
class Perturbation:
    """Moves results within their bounds, reproducibly by function, arguments and seed."""

    seed: int


def is_moved(functions: Iterable[str]) -> bool:
    """Whether a perturbation moves the results of any of these functions."""
    named = (Operation(name, "", ()).words for name in functions if name.startswith("air."))
    return any(words and (words[0] in SINGLE_ULPS or words[0] == "sincos") for words in named)
