"""Properties that all explanation rules have, and literal examples and near misses of each kind of rule."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from mpsmith.audit.findings.explanations import Explainer
from mpsmith.audit.findings.rules import ALL_RULES, RULES, SHIPPED_RULES
from mpsmith.audit.findings.rules.own_kernels import OURS, OWN_KERNEL_RULES
from mpsmith.audit.findings.rules.rule import ExplainingRule
from mpsmith.audit.judging.predictions import PREDICTIONS
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.verdicts import ROUNDING, CaseVerdict, Outcome
from mpsmith.audit.releases.surface.overloads import Surface
from mpsmith.audit.store.records import StoredCase

V = CaseVerdict
SURFACE = Surface((), release="2.13.0", source="made by hand")
DIFFER = "3 of 9 elements differ; at [0]: 1.0, CPU 2.0"
OF_NAN = "1 of 1 elements differ; at [0]: 2.0, CPU nan, float64 nan"
FLUSHED: Any = {"kernel": "all_reduction_float_uchar", "model": "subnormals-count-as-zero"}
POOLED: Any = {"kernel": "max_pool_float", "model": "max-pool-skips-nan"}
FAULTS = {V.WRONG, V.CRASH, V.TIMEOUT, V.DTYPE_GAP}


def case(
    label: str,
    message: str = DIFFER,
    inputs: str = "(x)",
    *,
    verdict: CaseVerdict = V.WRONG,
    error: float | None = None,
    stage: str = "forward",
    fallbacks: tuple[str, ...] = (),
    kernel: str = "",
    model: str = "",
) -> StoredCase:
    """A case of the group with this label, "source:operator:dtype"."""
    source, operator, dtype = label.split(":")
    outcome = Outcome(verdict, stage, message, fallbacks=fallbacks)
    key = GroupKey(source, operator, "", dtype, "fallback")
    fits = ({} if error is None else {ROUNDING: error}) | ({model: 0.0} if model else {})
    return StoredCase(1, key, 0, outcome, inputs, kernels=(kernel, "copy_strided") if kernel else (), predictions=fits)


def rule_for(stored: StoredCase, shipped: str | None = "2.13.0", *, simulated: bool = True, ours: bool = True) -> str:
    imports = (OURS,) if ours else ()
    rule = Explainer(SURFACE, simulated=simulated, shipped=shipped, imports=imports).rule_for(stored)
    return rule.name if rule else ""


# Each with cases that miss one condition.
EXAMPLES: dict[str, tuple[StoredCase, tuple[StoredCase, ...]]] = {
    "no-kernel": (
        case("opinfo:mul:float32", "", verdict=V.FALLBACK, fallbacks=("mine::op",)),
        (case("opinfo:mul:float32", "", verdict=V.FALLBACK, fallbacks=("aten::op",)),),
    ),
    "float64-by-definition": (
        case(
            "opinfo:float_power:float32",
            "raises TypeError: Cannot convert a MPS Tensor to float64 dtype as the MPS framework",
            verdict=V.DTYPE_GAP,
        ),
        (case("opinfo:float_power:float32", "raises TypeError: no float64", verdict=V.DTYPE_GAP),),
    ),
    "mode-out-refuses-mps": (
        case(
            "opinfo:mode.values:float32",
            "raises RuntimeError: mode only supports CPU, CUDA and XPU device type, got: mps",
        ),
        (case("opinfo:mode.values:float32", "raises RuntimeError: mode only supports CPU"),),
    ),
    "linear-cross-entropy-in-halves": (
        case("modules:nn.LinearCrossEntropyLoss.train:float16", error=100.0),
        (
            case("modules:nn.LinearCrossEntropyLoss.train:float16", error=100.1),
            case("modules:nn.LinearCrossEntropyLoss.train:float16"),
            case("modules:nn.LinearCrossEntropyLoss.train:float32", error=1.0),
        ),
    ),
    "pinverse-under-autocast": (
        case(
            "forms:pinverse:float32",
            "raises RuntimeError: expected scalar type Half but found Float",
            "autocast float16: (x)",
            stage="backward",
        ),
        (
            case(
                "forms:pinverse:float32",
                "raises RuntimeError: expected scalar type Half but found Float",
                "autocast float16: (x)",
            ),
        ),
    ),
    "lu-solve-out": (
        case("forms:linalg.lu_solve:float32", "output 0: shape is [0], not [3, 3]"),
        (case("opinfo:linalg.lu_solve:float32", "output 0: shape is [0], not [3, 3]"),),
    ),
    "integers-refused": (
        case(
            "opinfo:mul:int64",
            "raises RuntimeError: Convolution is supported only for Floating types",
            verdict=V.DTYPE_GAP,
        ),
        (
            case(
                "opinfo:mul:float16",
                "raises RuntimeError: Convolution is supported only for Floating types",
                verdict=V.DTYPE_GAP,
            ),
        ),
    ),
    "rounding-of-many-layers": (
        case("modules:nn.LSTM.train:float32", error=4.0),
        (case("modules:nn.LSTM.train:float32", error=4.01), case("opinfo:nn.LSTM.train:float32", error=4.0)),
    ),
    "cpu-refuses": (
        case("opinfo:mul:float32", "sizes do not match", verdict=V.REFERENCE_FAILED),
        (case("opinfo:mul:float32", "list index out of range", verdict=V.REFERENCE_FAILED),),
    ),
    "no-samples": (
        case("opinfo:mul:float32", "no samples: SkipTest: no MAGMA", verdict=V.SKIPPED),
        (case("modules:mul:float32", "no samples: SkipTest: no MAGMA", verdict=V.SKIPPED),),
    ),
    "narrow-copy-writes-rows": (
        case("forms:narrow_copy:complex64", inputs="stepped, out= transposed: (x)"),
        (
            case("schema:narrow_copy:complex64", inputs="stepped, out= transposed: (x)"),
            case("forms:narrow_copy:complex64", inputs="transposed: (x)"),
        ),
    ),
    "subnormals-count-as-zero": (
        case("special values:all:float32", inputs="denormals: (x)", **FLUSHED),
        (
            case("special values:all:float32", inputs="nan: (x)", **FLUSHED),
            case("special values:all:float32", inputs="denormals: (x)", model="subnormals-count-as-zero"),
            case("special values:all:float32", inputs="denormals: (x)", kernel="all_reduction_float_uchar"),
        ),
    ),
    "reflectors-in-another-order": (
        case(
            "opinfo:linalg.householder_product:float32", "gradient 0: " + DIFFER, stage="backward", error=4.0,
            kernel="orgqr_float",
        ),
        (
            case(
                "opinfo:linalg.householder_product:float32", "gradient 0: " + DIFFER, stage="backward", error=4.1,
                kernel="orgqr_float",
            ),
        ),
    ),
    "triangle-out-of-another-layout": (
        case("forms:tril:float32", inputs="out= transposed: (x)", kernel="tril_int_float"),
        (case("forms:tril:float32", kernel="tril_int_float"),),
    ),
    "abs-of-integers-through-float": (
        case("pairs:abs:int32", kernel="abs_dense_scalar_int_int", model="abs-of-integers-through-float"),
        (
            case("pairs:abs:int32", kernel="other_dense_scalar_int_int", model="abs-of-integers-through-float"),
            case("pairs:neg:int32", kernel="abs_dense_scalar_int_int", model="abs-of-integers-through-float"),
            case("pairs:abs:float32", kernel="abs_dense_scalar_int_int", model="abs-of-integers-through-float"),
        ),
    ),
    "max-pool-skips-nan": (
        case("special values:nn.functional.max_pool2d:float32", OF_NAN, "nan: (x)", **POOLED),
        (
            case("special values:nn.functional.max_pool2d:float32", DIFFER, "nan: (x)", **POOLED),
            case("opinfo:nn.functional.max_pool2d:float32", OF_NAN, "nan: (x)", **POOLED),
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
def test_explains_its_example_and_no_near_miss(name: str) -> None:
    example, near_misses = EXAMPLES[name]
    assert rule_for(example) == name
    assert [rule_for(near) for near in near_misses] == [""] * len(near_misses)


@pytest.mark.parametrize(
    "name", ["subnormals-count-as-zero", "triangle-out-of-another-layout", "abs-of-integers-through-float"]
)
def test_shipped_rules_need_a_release_and_its_kernels(name: str) -> None:
    example, _ = EXAMPLES[name]
    assert rule_for(example, None) == ""
    assert rule_for(replace(example, kernels=())) == ""
    defect = name == "abs-of-integers-through-float"
    assert rule_for(example, "2.99.0") == ("" if defect else name)  # a defect is a defect of its release


def test_rules_about_our_kernels_need_their_import() -> None:
    example, _ = EXAMPLES["narrow-copy-writes-rows"]
    assert rule_for(example, ours=False) == ""


def test_rules_about_one_kind_of_device_hold_on_that_kind() -> None:
    skipped = case("opinfo:mul:float32", "the simulated device has no copy-on-write storages", verdict=V.SKIPPED)
    assert rule_for(skipped) == "simulated-copy-on-write"
    assert rule_for(skipped, simulated=False) == ""
    unsorted = case("arguments:topk:float32", inputs="k=2, sorted=False: (x)")
    assert rule_for(unsorted) == ""
    assert rule_for(unsorted, simulated=False) == "order-that-nobody-asked-for"


# Rules about values whose prediction is to be written. This list gets shorter only.
WITHOUT_PREDICTION = (
    "deterministic-bilinear-rounds-otherwise",
    "order-that-nobody-asked-for",
    "narrow-copy-writes-rows",
    "memory-taken-for-rows",
    "lists-taken-for-rows",
    "places-named-twice",
    "infinities-as-integers",
    "indices-of-other-windows",
    "antialiasing-into-one-column",
    "complex-infinities",
    "factors-of-what-is-not-finite",
    "condition-of-a-singular-matrix",
    "values-beyond-float32",
    "squares-beyond-float32",
    "sums-beyond-float32",
    "gradients-of-equal-singular-values",
    "exponentials-beyond-float32",
    "gels-without-full-rank",
    "combinations-of-complex-numbers",
    "distances-of-huge-norms",
    "factor-at-the-edge-of-definite",
    "triangle-out-of-another-layout",
    "average-ignores-strides-of-out",
    "one-reflector-without-a-barrier",
    "blocks-that-are-not-definite",
)


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.name)
def test_rule_is_well_formed(rule: ExplainingRule) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", rule.name)
    assert len(rule.reason) > 40
    assert V.PASSED not in rule.verdicts
    re.compile(rule.message)
    re.compile(rule.inputs)
    if set(rule.verdicts) & FAULTS:
        assert rule.message
        assert rule.operators or rule.kernels or rule.shipped or re.match(r"\^raises \w+Error: ", rule.message)
        assert all(len(pattern.strip("*")) > 2 for pattern in rule.operators)
    if "elements differ" in rule.message and V.WRONG in rule.verdicts:
        assert rule.prediction or rule.at_most is not None or rule.name in WITHOUT_PREDICTION


def test_rule_names_are_unique() -> None:
    assert len({rule.name for rule in ALL_RULES}) == len(ALL_RULES)


def test_rules_name_models_that_there_are() -> None:
    named = {rule.prediction for rule in ALL_RULES if rule.prediction}
    assert named == {prediction.name for prediction in PREDICTIONS}


def test_rules_name_what_they_depend_on() -> None:
    assert {rule.imported for rule in OWN_KERNEL_RULES} == {OURS}
    assert all(rule.shipped for rule in SHIPPED_RULES)
    assert [rule.name for rule in ALL_RULES if rule.never_stale] == ["undefined-on-the-cpu"]
    assert {rule.name: rule.upstream for rule in RULES if rule.upstream} == {
        "linear-without-forward-ad": "pytorch/pytorch#137720",
        "adaptive-pools-that-do-not-divide": "pytorch/pytorch#96056",
    }
