"""By what a case of an audit is taken for a known defect: what it showed, and how the generated source looks.

A sign is no proof. It spares a reader of a long report what is known, and leaves what may be new.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ..verdicts import Blame, CompiledVerdict

_WRONG = (CompiledVerdict.WRONG,)
_LANES = (CompiledVerdict.WRONG, CompiledVerdict.UNDEFINED_LANES)
_REJECTED = (CompiledVerdict.REJECTED,)
_NOT_LOWERED = (CompiledVerdict.NOT_LOWERED,)
_WIDE = ("int64",)
_NARROW = ("int8", "uint8", "int16")


@dataclass(frozen=True)
class Sign:
    """What a case has to look like to be taken for a defect; an empty condition is none.

    Attributes:
        number: the defect, such as "U2".
        verdicts: the case showed one of these.
        operators: shell patterns of the operator's name.
        dtypes: the dtypes of the inputs.
        reason: a regular expression that is found in what was different, or who refused it and how.
        source: a regular expression that is found in the generated Metal.
        blame: who was found answerable, of a wrong result.
    """

    number: str
    verdicts: tuple[CompiledVerdict, ...]
    operators: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    reason: str = ""
    source: str = ""
    blame: Blame = Blame.INDUCTOR


# The first one that fits counts: those by the words of a refusal, then by the source, then by the operator.
SIGNS: tuple[Sign, ...] = (
    Sign("U6", _REJECTED, reason=r"Metal has buffers 0 to 30"),
    Sign("U8", _REJECTED, reason=r"no matching function for call to 'threadgroup_(?:sum|prod)'"),
    Sign("U9", _REJECTED, reason=r"call to '(?:sign|signbit)' is ambiguous"),
    Sign("U23", _REJECTED, source=r"(?s)(kernel void \w+\().*\1"),
    Sign(
        "U10",
        _NOT_LOWERED,
        reason=r"NotImplementedError in (?:acosh|asinh|cosh|sinh|copysign|frexp|hypot|logical_xor|nextafter)$",
    ),
    Sign("U26", _NOT_LOWERED, reason=r"inconsistent range for TensorList output"),
    Sign("U26", (CompiledVerdict.ERROR,), operators=("_foreach_*",), reason=r"select\(\): index \d+ out of range"),
    Sign("U28", _NOT_LOWERED, reason=r"does not implement ops\.(?:airy_ai|laguerre_polynomial_l)"),
    Sign("U22", _NOT_LOWERED, reason=r"get_mps_lib_\d+_handle"),
    Sign("U1", _WRONG, operators=("*batch_norm*", "*BatchNorm*"), reason=r"^forward: (?:input \d+ after|output)"),
    Sign(
        "U20",
        _WRONG,
        source=r"(?s)threadgroup_(?:sum|prod|max|min|any|welford\w*)\((?:(?!kernel void).)*(?:atomic_add|\] \+= )",
    ),
    Sign(
        "U30",
        _WRONG,
        source=r"auto (tmp\d+) = -?[\d.]+;\s*auto tmp\d+ = c10::metal::threadgroup_(?:sum|prod)\(tmp_acc_\d+, \1, ",
    ),
    Sign("U24", _WRONG, operators=("*avg_pool?d", "*AvgPool?d"), reason=r"^backward: gradient 0"),
    Sign("U7", _WRONG, operators=("special.erfcx", "special.log_ndtr")),
    Sign("U21", _WRONG, operators=("*multilabel_margin_loss", "*MultiLabelMarginLoss"), blame=Blame.DECOMPOSITION),
    Sign("U25", _WRONG, operators=("*nn.functional.soft_margin_loss", "soft_margin_loss*"), blame=Blame.DECOMPOSITION),
    Sign("U29", _WRONG, operators=("*native_batch_norm*",), reason=r"not \[0\]$", blame=Blame.GRAPH),
    Sign("U27", _WRONG, operators=("*svd*",), reason=r"^backward: ", blame=Blame.GRAPH),
    Sign("U17", _LANES, dtypes=_WIDE, source=r"threadgroup_arg(?:max|min)\("),
    Sign("U3", _WRONG, source=r"threadgroup_arg(?:max|min)\("),
    Sign("U4", _LANES, dtypes=_WIDE, source=r"threadgroup_(?:max|min)\("),
    # A product of narrow integers is computed with 64 bits.
    Sign("U18", _LANES, source=r"(?s)threadgroup long \w+.*threadgroup_prod\("),
    # Booleans are counted as 64-bit integers.
    Sign("U19", (CompiledVerdict.UNDEFINED_LANES,), source=r"threadgroup (?:long|bool|int) \w+.*\n(?s:.*)threadgroup_"),
    Sign(
        "U16",
        _WRONG,
        source=r"auto (tmp\d+) = 1;\s*auto (tmp\d+) = c10::metal::erf\(tmp\d+\);\s*auto tmp\d+ = \1 - \2;",
    ),
    Sign(
        "U15",
        _WRONG,
        source=r"auto (tmp\d+) = 1;\s*auto (tmp\d+) = (?:tmp\d+ \+ \1|\1 \+ tmp\d+);\s*"
        r"auto tmp\d+ = metal::precise::log\(\2\)",
    ),
    Sign(
        "U15",
        _WRONG,
        source=r"auto (tmp\d+) = metal::precise::exp\(tmp\d+\);\s*auto (tmp\d+) = 1;\s*auto tmp\d+ = \1 - \2;",
    ),
    Sign("U2", _WRONG, dtypes=_WIDE, source=r"(?s)auto (tmp\d+) = -?\d+;.*\? \1 : static_cast<decltype\(\1\)>"),
    Sign("U14", _WRONG, dtypes=_WIDE, source=r"auto (tmp\d+) = \d+;\s*auto tmp\d+ = [^;]*\1 (?:<<|>>) "),
    Sign("U13", _WRONG, reason=r"\b(?:nan|inf), CPU|CPU -?(?:nan|inf)", source=r"c10::metal::log_gamma\("),
    Sign("U12", _WRONG, operators=("*softshrink",), reason=r"CPU nan"),
    Sign("U5", _WRONG, dtypes=_NARROW),
)


def looks_like(
    verdict: CompiledVerdict,
    blame: Blame | None,
    operator: str,
    dtypes: Collection[str],
    reason: str,
    source: str,
) -> str:
    """The number of the defect that a finding is taken for, "" where none is known.

    Args:
        verdict, blame: what it showed, and who was found answerable for a wrong result.
        operator, dtypes: of what, and in which dtypes.
        reason: what was different, or who refused it and how.
        source: the generated Metal.
    """
    for sign in SIGNS:
        if (
            verdict in sign.verdicts
            and blame in (None, sign.blame)
            and (not sign.operators or any(fnmatchcase(operator, pattern) for pattern in sign.operators))
            and (not sign.dtypes or set(dtypes) <= set(sign.dtypes))
            and re.search(sign.reason, reason)
            and re.search(sign.source, source)
        ):
            return sign.number
    return ""
