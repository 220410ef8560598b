"""Which faults the self-test puts into which operators, and what the auditor has to say of each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch

from ...simulator.device.faults import Fault, FaultKind, When
from ..judging.compare import TOLERANCES
from ..verdicts import CaseVerdict, Outcome

# How far beyond the tolerance a value is that is just beyond it. A tolerance ten times as wide lets it pass.
BEYOND_TOLERANCE = 3.0


@dataclass(frozen=True)
class FaultClass:
    """One way of being wrong, put into several operators.

    Attributes:
        name: for people.
        verdict: what a case that shows the fault ends with.
        message: a pattern that its message has.
        faults: an operator as its OpInfo names it, and the fault of an overload that it calls.
    """

    name: str
    verdict: CaseVerdict
    message: str
    faults: tuple[tuple[str, Fault], ...]

    def is_shown_by(self, outcome: Outcome, fault: Fault) -> bool:
        """Whether the outcome of a case says what is wrong with the operator that has the fault."""
        if fault.kind is FaultKind.FALLBACK:
            return outcome.verdict is self.verdict and fault.operator in outcome.fallbacks
        return outcome.verdict is self.verdict and re.search(self.message, outcome.message) is not None


def _class(name: str, message: str, kind: FaultKind, operators: dict[str, str], **conditions: object) -> FaultClass:
    """A class of faults: `operators` has an OpInfo's name and the overload at fault, without its namespace."""
    template = replace(Fault("", kind), **conditions)  # type: ignore[arg-type]
    faults = tuple((name, replace(template, operator=f"aten::{at_fault}")) for name, at_fault in operators.items())
    return FaultClass(name, VERDICTS.get(kind, CaseVerdict.WRONG), message, faults)


VERDICTS = {
    FaultKind.ABORT: CaseVerdict.CRASH,
    FaultKind.SEGFAULT: CaseVerdict.CRASH,
    FaultKind.HANG: CaseVerdict.TIMEOUT,
    FaultKind.FALLBACK: CaseVerdict.FALLBACK,
}

_VALUES = r"elements differ"
_GUARD = r"output [23]: 1 of \d+ elements differ"
_RELATIVE, _ABSOLUTE = (BEYOND_TOLERANCE * limit for limit in TOLERANCES[torch.float32])

# A worker dies of each case that crashes: these crash in few.
_RARE: dict[str, object] = {"when": When.EXPANDED, "dtype": "float32"}

FAULT_CLASSES: tuple[FaultClass, ...] = (
    _class("wrong values", _VALUES, FaultKind.VALUES, {"exp": "exp", "mm": "mm", "cumsum": "cumsum"}),
    _class(
        "wrong values, non-contiguous input",
        _VALUES,
        FaultKind.VALUES,
        {"cos": "cos", "softmax": "_softmax", "amax": "amax"},
        when=When.NON_CONTIGUOUS,
    ),
    _class(
        "wrong values, input at an offset",
        _VALUES,
        FaultKind.VALUES,
        {"tanh": "tanh", "bmm": "bmm", "argmax": "argmax"},
        when=When.OFFSET,
    ),
    _class(
        "wrong values, expanded input",
        _VALUES,
        FaultKind.VALUES,
        {"sin": "sin", "maximum": "maximum", "gather": "gather"},
        when=When.EXPANDED,
    ),
    _class(
        "wrong values, empty input",
        _VALUES,
        FaultKind.VALUES,
        {"sum": "sum.dim_IntList", "prod": "prod", "any": "any"},
        when=When.EMPTY,
    ),
    _class(
        "wrong values, one dtype",
        _VALUES,
        FaultKind.VALUES,
        {"log_softmax": "_log_softmax", "addmm": "addmm", "nn.functional.relu": "relu"},
        dtype="float16",
    ),
    _class(
        "wrong values, above a size",
        _VALUES,
        FaultKind.VALUES,
        {"floor": "floor", "sqrt": "sqrt", "amin": "amin"},
        above=65_536,
    ),
    _class(
        "wrong gradient",
        r"gradient \d+: .*differ",
        FaultKind.VALUES,
        {
            "nn.functional.gelu": "gelu_backward",
            "nn.functional.silu": "silu_backward",
            "nn.functional.softplus": "softplus_backward",
        },
    ),
    _class(
        "wrong values, out= only",
        _VALUES,
        FaultKind.VALUES,
        {"log": "log.out", "atan": "atan.out", "erf": "erf.out"},
    ),
    _class("wrong values, in place only", _VALUES, FaultKind.VALUES, {"ceil": "ceil_", "asin": "asin_", "tan": "tan_"}),
    _class(
        "wrong values, second call only",
        _VALUES,
        FaultKind.VALUES,
        {"trunc": "trunc", "log1p": "log1p", "expm1": "expm1"},
        when=When.REPEATED,
    ),
    _class(
        "just beyond the tolerance",
        r"1 of \d+ elements differ",
        FaultKind.NEAR,
        {"neg": "neg", "nn.functional.hardtanh": "hardtanh", "sgn": "sgn"},
        dtype="float32",
        relative=_RELATIVE,
        absolute=_ABSOLUTE,
    ),
    _class(
        "NaN where finite",
        r"differ.*: nan",
        FaultKind.NAN,
        {"rsqrt": "rsqrt", "sinh": "sinh", "reciprocal": "reciprocal"},
    ),
    _class("wrong shape", r"shape is", FaultKind.SHAPE, {"asinh": "asinh", "cumprod": "cumprod", "tril": "tril"}),
    _class(
        "wrong dtype",
        r"dtype is",
        FaultKind.DTYPE,
        {"erfc": "erfc", "acosh": "acosh", "nn.functional.leaky_relu": "leaky_relu"},
    ),
    _class("wrong stride", r"has stride", FaultKind.STRIDE, {"exp2": "exp2", "log2": "log2", "log10": "log10"}),
    _class(
        "wrong alias",
        r"shares (the|no) memory",
        FaultKind.ALIAS,
        {"unfold": "unfold", "digamma": "digamma", "nn.functional.elu": "elu"},
    ),
    _class(
        "writes outside its output",
        _GUARD,
        FaultKind.OUTSIDE,
        {"sigmoid": "sigmoid.out", "lgamma": "lgamma_", "hypot": "hypot.out"},
    ),
    _class(
        "changes its input",
        r"input \d+ was changed",
        FaultKind.INPUT,
        {"logaddexp": "logaddexp", "nn.functional.mse_loss": "mse_loss", "trace": "trace"},
    ),
    _class(
        "result in freed memory",
        r"differ.*: nan",
        FaultKind.FREED,
        {"cosh": "cosh", "roll": "roll", "flip": "flip"},
    ),
    _class(
        "aborts",
        r"SIGABRT",
        FaultKind.ABORT,
        {"triu": "triu", "acos": "acos", "nn.functional.hardswish": "hardswish"},
        **_RARE,
    ),
    _class(
        "segfaults",
        r"SIGSEGV",
        FaultKind.SEGFAULT,
        {"i0": "i0", "nn.functional.hardshrink": "hardshrink", "fmod": "fmod.Tensor"},
        **_RARE,
    ),
    _class(
        "hangs",
        r"time-out",
        FaultKind.HANG,
        {"frac": "frac", "nn.functional.hardsigmoid": "hardsigmoid", "erfinv": "erfinv"},
        **_RARE,
    ),
    _class(
        "leaks",
        r"leaks memory",
        FaultKind.LEAK,
        {"atanh": "atanh", "logcumsumexp": "_logcumsumexp", "renorm": "renorm"},
    ),
    _class(
        "ignores the seed",
        r"a seed gives other numbers again",
        FaultKind.SEED,
        {"randn_like": "normal_", "uniform": "uniform_", "exponential": "exponential_"},
    ),
    _class(
        "draws the same numbers again",
        r"gives? the same numbers'",
        FaultKind.SAME_DRAWS,
        {"cauchy": "cauchy_", "randint_like": "random_.from", "log_normal": "log_normal_"},
    ),
    _class(
        "draws from another distribution",
        r"distributed unlike",
        FaultKind.DISTRIBUTION,
        {"bernoulli": "bernoulli_.Tensor", "geometric": "geometric_", "cauchy": "cauchy_"},
    ),
    _class(
        "raises another error",
        r"raises (ValueError|TypeError), the CPU",
        FaultKind.ERROR,
        {"scatter": "scatter.src", "gather": "gather", "cat": "cat"},
    ),
    _class(
        "falls back unannounced",
        "",
        FaultKind.FALLBACK,
        {"lerp": "lerp.Tensor", "nn.functional.mish": "mish", "addcmul": "addcmul"},
    ),
)

# Operators without a fault, audited beside the faulty ones: nothing may be held against them.
CONTROLS = ("mul", "minimum", "addmv", "where", "clamp", "mean", "sort", "nn.functional.layer_norm")
SOURCES = ("opinfo", "layouts", "forms", "errors", "sizes", "random")
DTYPES = ("float32", "float16")


@dataclass(frozen=True)
class PlantedFault:
    """One fault in one operator."""

    fault_class: FaultClass
    operator: str
    fault: Fault


def rounds(classes: Sequence[FaultClass]) -> list[list[PlantedFault]]:
    """Faults that can be armed together: one of each class, no operator and no overload twice."""
    length = max((len(each.faults) for each in classes), default=0)
    return [
        [PlantedFault(each, *each.faults[turn]) for each in classes if turn < len(each.faults)]
        for turn in range(length)
    ]


def operators(faults: Iterable[PlantedFault]) -> tuple[str, ...]:
    """The operators of some planted faults, each once."""
    return tuple(dict.fromkeys(planted.operator for planted in faults))
