"""Match cases of an audit under torch.compile to known defects of generated Metal.

A match is not a proof. It lets a reader of a long report skip what is known.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ...compiled.verdicts import CompiledVerdict, FaultyStage

_WRONG = (CompiledVerdict.WRONG,)
_LANES = (CompiledVerdict.WRONG, CompiledVerdict.UNDEFINED_LANES)
_REJECTED = (CompiledVerdict.REJECTED,)
_NOT_LOWERED = (CompiledVerdict.NOT_LOWERED,)
_DECOMPOSITION, _GRAPH = FaultyStage.DECOMPOSITION, FaultyStage.GRAPH
_WIDE = ("int64",)
_NARROW = ("int8", "uint8", "int16")


@dataclass(frozen=True)
class Pattern:
    """The conditions under which a case is taken for a known defect. An empty condition matches every case.

    Attributes:
        number: the defect, such as "U2".
        verdicts: the case showed one of these.
        operators: shell patterns of the operator's name.
        dtypes: the dtypes of the inputs.
        reason: a regular expression for what was different, or for the refusal.
        source: a regular expression for the generated Metal.
        faulty_stage: the compilation stage at fault, of a wrong result.
    """

    number: str
    verdicts: tuple[CompiledVerdict, ...]
    operators: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    reason: str = ""
    source: str = ""
    faulty_stage: FaultyStage = FaultyStage.INDUCTOR


# The first pattern that matches counts: by the words of a refusal, then by the source, then by the operator.
PATTERNS: tuple[Pattern, ...] = (
    Pattern("U6", _REJECTED, reason=r"Metal has buffers 0 to 30"),
    Pattern("U8", _REJECTED, reason=r"no matching function for call to 'threadgroup_(?:sum|prod)'"),
    Pattern("U9", _REJECTED, reason=r"call to '(?:sign|signbit)' is ambiguous"),
    Pattern("U23", _REJECTED, source=r"(?s)(kernel void \w+\().*\1"),
    Pattern(
        "U10",
        _NOT_LOWERED,
        reason=r"NotImplementedError in (?:acosh|asinh|cosh|sinh|copysign|frexp|hypot|logical_xor|nextafter)$",
    ),
    Pattern("U26", _NOT_LOWERED, reason=r"inconsistent range for TensorList output"),
    Pattern("U26", (CompiledVerdict.ERROR,), operators=("_foreach_*",), reason=r"select\(\): index \d+ out of range"),
    Pattern("U28", _NOT_LOWERED, reason=r"does not implement ops\.(?:airy_ai|laguerre_polynomial_l)"),
    Pattern("U22", _NOT_LOWERED, reason=r"get_mps_lib_\d+_handle"),
    Pattern("U1", _WRONG, operators=("*batch_norm*", "*BatchNorm*"), reason=r"^forward: (?:input \d+ after|output)"),
    Pattern(
        "U20",
        _WRONG,
        source=r"(?s)threadgroup_(?:sum|prod|max|min|any|welford\w*)\((?:(?!kernel void).)*(?:atomic_add|\] \+= )",
    ),
    Pattern(
        "U30",
        _WRONG,
        source=r"auto (tmp\d+) = -?[\d.]+;\s*auto tmp\d+ = c10::metal::threadgroup_(?:sum|prod)\(tmp_acc_\d+, \1, ",
    ),
    Pattern("U24", _WRONG, operators=("*avg_pool?d", "*AvgPool?d"), reason=r"^backward: gradient 0"),
    Pattern("U7", _WRONG, operators=("special.erfcx", "special.log_ndtr")),
    Pattern(
        "U21",
        _WRONG,
        operators=("*multilabel_margin_loss", "*MultiLabelMarginLoss"),
        faulty_stage=FaultyStage.DECOMPOSITION,
    ),
    Pattern(
        "U25",
        _WRONG,
        operators=("*nn.functional.soft_margin_loss", "soft_margin_loss*"),
        faulty_stage=FaultyStage.DECOMPOSITION,
    ),
    Pattern("U29", _WRONG, operators=("*native_batch_norm*",), reason=r"not \[0\]$", faulty_stage=_GRAPH),
    Pattern("U27", _WRONG, operators=("*svd*",), reason=r"^backward: ", faulty_stage=_GRAPH),
    Pattern("U17", _LANES, dtypes=_WIDE, source=r"threadgroup_arg(?:max|min)\("),
    Pattern("U3", _WRONG, source=r"threadgroup_arg(?:max|min)\("),
    Pattern("U4", _LANES, dtypes=_WIDE, source=r"threadgroup_(?:max|min)\("),
    # A product of narrow integers is computed with 64 bits.
    Pattern("U18", _LANES, source=r"(?s)threadgroup long \w+.*threadgroup_prod\("),
    # Booleans are counted as 64-bit integers.
    Pattern(
        "U19", (CompiledVerdict.UNDEFINED_LANES,), source=r"threadgroup (?:long|bool|int) \w+.*\n(?s:.*)threadgroup_"
    ),
    Pattern(
        "U16",
        _WRONG,
        source=r"auto (tmp\d+) = 1;\s*auto (tmp\d+) = c10::metal::erf\(tmp\d+\);\s*auto tmp\d+ = \1 - \2;",
    ),
    Pattern(
        "U15",
        _WRONG,
        source=r"auto (tmp\d+) = 1;\s*auto (tmp\d+) = (?:tmp\d+ \+ \1|\1 \+ tmp\d+);\s*"
        r"auto tmp\d+ = metal::precise::log\(\2\)",
    ),
    Pattern(
        "U15",
        _WRONG,
        source=r"auto (tmp\d+) = metal::precise::exp\(tmp\d+\);\s*auto (tmp\d+) = 1;\s*auto tmp\d+ = \1 - \2;",
    ),
    Pattern("U2", _WRONG, dtypes=_WIDE, source=r"(?s)auto (tmp\d+) = -?\d+;.*\? \1 : static_cast<decltype\(\1\)>"),
    Pattern("U14", _WRONG, dtypes=_WIDE, source=r"auto (tmp\d+) = \d+;\s*auto tmp\d+ = [^;]*\1 (?:<<|>>) "),
    Pattern("U13", _WRONG, reason=r"\b(?:nan|inf), CPU|CPU -?(?:nan|inf)", source=r"c10::metal::log_gamma\("),
    Pattern("U12", _WRONG, operators=("*softshrink",), reason=r"CPU nan"),
    Pattern("U5", _WRONG, dtypes=_NARROW),
)


def known_defect(
    verdict: CompiledVerdict,
    faulty_stage: FaultyStage | None,
    operator: str,
    dtypes: Collection[str],
    reason: str,
    source: str,
) -> str:
    """The number of the defect that matches a finding, "" if none does.

    Args:
        verdict, faulty_stage: the verdict, and the compilation stage at fault for a wrong result.
        operator, dtypes: of the cases.
        reason: what was different, or the refusal.
        source: the generated Metal.
    """
    for pattern in PATTERNS:
        if (
            verdict in pattern.verdicts
            and faulty_stage in (None, pattern.faulty_stage)
            and (not pattern.operators or any(fnmatchcase(operator, name) for name in pattern.operators))
            and (not pattern.dtypes or set(dtypes) <= set(pattern.dtypes))
            and re.search(pattern.reason, reason)
            and re.search(pattern.source, source)
        ):
            return pattern.number
    return ""
