"""Defects of generated Metal whose effect depends on undefined values or on Apple's compiler."""

from __future__ import annotations

from ..verdicts import CompiledVerdict
from .defect import Certainty, Defect, Report

_PULL = "https://github.com/pytorch/pytorch/pull/"

UNDEFINED = (
    Defect(
        "U4",
        "amin and amax of 64-bit integers read lanes without a thread",
        """
def program(x):
    return x.amin()


inputs = [torch.arange(1, 41)]
""",
        "Forty elements run in a threadgroup of 40: its second SIMD group has eight threads, and shuffles in it read"
        " from lanes that run nothing, whose values are undefined. So did the step that joins both groups, until 2.15.0"
        " kept all of its lanes running. The eager kernels round a threadgroup up to whole SIMD groups.",
        Certainty.UNDEFINED,
        CompiledVerdict.WRONG,
        (
            Report(
                f"{_PULL}187976", "amax of negative numbers is 0 on a Mac, in the eager kernel with the same header"
            ),
            Report(f"{_PULL}191104", "the same; lanes without a thread read as 0 there"),
        ),
    ),
    Defect(
        "U17",
        "argmax and argmin of 64-bit integers may give the index of a lane without a thread",
        """
def program(x):
    return x.argmax()


inputs = [torch.arange(-40, 0)]
""",
        "As U4: where such a lane holds 0, it wins against negative numbers, and its index is the result.",
        Certainty.UNDEFINED,
        CompiledVerdict.WRONG,
        (Report(f"{_PULL}191104", "amax and amin with the same header, on a Mac"),),
    ),
    Defect(
        "U18",
        "the product of 64-bit integers is multiplied with lanes without a thread",
        """
def program(x):
    return x.prod()


inputs = [torch.ones(40, dtype=torch.int64)]
""",
        "As U4: where such a lane holds 0, so does the product.",
        Certainty.UNDEFINED,
        CompiledVerdict.WRONG,
        (Report(f"{_PULL}187788", "says of the same header that such lanes read as 0 on M1 and M2, and not on M4"),),
    ),
    Defect(
        "U19",
        "sums of 64-bit integers and booleans add what lanes without a thread hold",
        """
def program(x):
    return (x > 0).sum()


inputs = [torch.arange(40.0)]
""",
        "As U4: right as long as such a lane holds 0. Booleans are counted as 64-bit integers.",
        Certainty.UNDEFINED,
        CompiledVerdict.UNDEFINED_LANES,
        (Report(f"{_PULL}150566", "says that another way to add lanes is wrong on M1 and M2 where some run nothing"),),
    ),
)

APPLE = (
    Defect(
        "U9",
        "sign, sgn and signbit of 64-bit integers may not compile",
        """
def program(x):
    return torch.sign(x)


inputs = [torch.tensor([3, -7, 0])]
""",
        "`metal::sign` and `metal::signbit` are called with a long. By Metal's specification they take floating point,"
        " and of several conversions none is better; Apple's headers may have more than is documented.",
        Certainty.APPLE,
        CompiledVerdict.REJECTED,
    ),
    Defect(
        "U13",
        "lgamma of infinity is nan",
        """
def program(x):
    return torch.lgamma(x)


inputs = [torch.tensor([float("inf"), 2.5])]
""",
        "log_gamma of c10/metal/special_math.h computes x * log(x) - x, where infinity is subtracted from infinity."
        " The result on a Mac depends on how strictly its compiler takes infinities.",
        Certainty.APPLE,
        CompiledVerdict.WRONG,
        (Report(f"{_PULL}145740", "another defect of the same function, mended"),),
    ),
)
