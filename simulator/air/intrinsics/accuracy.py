"""How far Apple's mathematics may be from the true result, and results that are moved within that.

Apple's library is closed: the bits that a Mac gives are not known here. What is known are the bounds that the Metal
Shading Language Specification gives in its chapter "Numerical Compliance" (units in the last place of single precision
with fast math disabled, of half precision, and of what `fast_` functions may lose). A verdict that holds for results
moved anywhere within the bounds does not depend on Apple's last bits.
"""

from __future__ import annotations

from dataclasses import dataclass

SINGLE_ULPS = {
    **dict.fromkeys(("acos", "acosh", "asin", "asinh"), 4),
    **dict.fromkeys(("atan", "atanh", "tanh"), 5),
    **dict.fromkeys(("cos", "cosh", "cospi", "sin", "sinh", "sinpi"), 4),
    **dict.fromkeys(("exp", "exp2", "exp10", "log", "log2", "log10"), 4),
    **dict.fromkeys(("atan2", "tan", "tanpi"), 6),
    **dict.fromkeys(("pow", "powr"), 16),
}
"""Single precision; what is not here is rounded correctly or exact."""

# Of half precision it is 1 for each of them: one of the two halves around the true result.

FAST_GROWING = frozenset({"exp", "exp2"})
"""Functions whose `fast_` form may be wrong by 3 + floor(|2 x|) units in the last place."""


@dataclass(frozen=True)
class Perturbation:
    """Results moved within their bounds, the same way for the same function, arguments and seed."""

    seed: int
