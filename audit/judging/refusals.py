"""How PyTorch and MPS refuse a call that the CPU takes, and the verdict on each."""

from __future__ import annotations

import re

from ...errors import one_line
from ..model.verdicts import CaseVerdict
from .fallbacks import missing_operator

OUT_OF_MEMORY = re.compile(r"out of memory|can't allocate memory|not enough memory", re.IGNORECASE)
# How PyTorch and MPS refuse a dtype, or sizes that they do not implement. Any other error of mps where the CPU returns
# is wrong.
REFUSED = re.compile(
    r"doesn't support float64"
    r"|does not have support for that dtype"
    r"|not implemented for '?\w+'?"
    r"|(?:un|not )supported (?:data ?type|dtype|scalar ?type|type)"
    r"|(?:data ?type|dtype|type) \w* ?(?:is )?(?:un|not )supported"
    r"|only (?:supports? |for )?(?:floating|integral|integer|float|real)\w*[ -]?(?:point )?(?:types?|dtypes?)"
    r"|only (?:supports floats|float is supported)|supports float32 only"
    r"|for non-float (?:inputs?|weights|bias)|(?:for complex|BF16 or FP16) types\b"
    r"|do(?:es)?(?: not|n't) support (?:[\w.]+ )?(?:complex|bool|bfloat16|half|float16|u?int\d+|types?|dtypes?)"
    r"|^undefined type complexdouble$"
    r"|failed to create function state object for: \w+"
    r"|^adaptive pool mps: "
    r"|^conv(?:transpose )?3d is not supported on mps",
    re.IGNORECASE,
)
# How the stand-in for MPSGraph refuses operands of two dtypes, also where the graph was cached for operands of one.
MIXED_DTYPES = re.compile(
    r"MPSGraph, simulated: ('\w+' op requires the same element type|the result of \w+ has type"
    r"|a placeholder of type \w+ was fed with)"
)
# Severity and time before a failed check of c10: the message would differ in each run.
_LOGGED = re.compile(r"\[[IWEF]\d{4} \d\d:\d\d:\d\d[.\d]* ")
# The name of a Metal function ends in its dtypes. What takes an index has a function for each dtype of indices, too.
_MISSING_FUNCTION = re.compile(
    r"failed to create function state object for: ((?!scatter_|searchsorted_)\w+)", re.IGNORECASE
)
_METAL_TYPES = frozenset(
    ["float", "float2", "half", "half2", "bfloat", "bool", "char", "uchar", "short", "int", "long"]
)


class DeviceError(Exception):
    """The device raised where the CPU returned; carries the verdict."""

    def __init__(self, verdict: CaseVerdict, stage: str, message: str, operator: str | None = None) -> None:
        super().__init__(message)
        self.verdict = verdict
        self.stage = stage
        self.operator = operator

    @property
    def refuses_dtypes(self) -> bool:
        """Whether the device refuses a dtype, or dtypes together, rather than fails to compute."""
        text = str(self)
        return self.verdict is CaseVerdict.DTYPE_GAP or bool(MIXED_DTYPES.search(text)) or _mixes_dtypes(text)


def classify(error: Exception, stage: str) -> DeviceError:
    """The verdict on a call that raises on the device but not on the CPU."""
    operator = missing_operator(error)
    text = one_line(_LOGGED.sub("[", str(error)) or error)
    if operator is not None:
        return DeviceError(CaseVerdict.MISSING, stage, f"{operator} has no kernel for mps", operator)
    if isinstance(error, MemoryError) or OUT_OF_MEMORY.search(text):
        return DeviceError(CaseVerdict.CRASH, stage, f"out of memory: {text}")
    raised = f"raises {type(error).__name__}: {text}"
    is_gap = REFUSED.search(text) and not _mixes_dtypes(text)
    return DeviceError(CaseVerdict.DTYPE_GAP if is_gap else CaseVerdict.WRONG, stage, raised)


def _mixes_dtypes(message: str) -> bool:
    """Whether host code asks for a Metal function of two dtypes, or one that casts, which its library lacks.

    Each of the dtypes may have its function, so this is not a gap of a dtype.
    """
    missing = _MISSING_FUNCTION.search(message)
    if missing is None:
        return False
    words = missing[1].split("_")
    return "cast" in words or "castout" in words or len(_METAL_TYPES.intersection(words)) > 1
