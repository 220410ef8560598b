"""A rule about shipped kernels explains cases that launched them, in the releases that it names, and nothing beside."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpsmith.audit.findings.explanations import Explainer
from mpsmith.audit.findings.shipped_rules import DEFECTS, SHIPPED_RULES
from mpsmith.audit.findings.store import StoredCase
from mpsmith.audit.group import GroupKey
from mpsmith.audit.surface.overloads import Surface
from mpsmith.audit.verdicts import CaseVerdict, Grade, Outcome

SURFACE = Surface((), release="2.13.0", source="made by hand")
DIFFER = "67 of 400 elements differ; at [0, 3]: 2147483647, CPU -2147483648"


def case(source: str, operator: str, dtype: str, kernels: tuple[str, ...], inputs: str = "(x)") -> StoredCase:
    outcome = Outcome(CaseVerdict.WRONG, "forward", DIFFER)
    key = GroupKey(source, operator, "", dtype, "fallback")
    return StoredCase(1, key, 0, outcome, inputs, grade=Grade.SHIPPED_KERNEL, kernels=kernels)


EXPLAINED = {
    "subnormals-count-as-zero": case(
        "special values", "all", "float32", ("all_reduction_float_uchar",), "denormals: (float32[2])"
    ),
    "abs-of-integers-through-float": case("pairs", "abs", "int32", ("abs_dense_scalar_int_int",)),
    "erfc-as-one-less-erf": case("opinfo", "_foreach_erfc", "float32", ("erfc_dense_scalar_float_float",)),
    "expm1-by-exp-from-1e-5-on": case("opinfo", "expm1", "float32", ("expm1_strided_float_float",)),
}


def rule_for(stored: StoredCase, shipped: str | None = "2.13.0", *, simulated: bool = True) -> str:
    rule = Explainer(SURFACE, simulated=simulated, shipped=shipped).rule_for(stored)
    return rule.name if rule else ""


def test_every_rule_has_a_case_that_it_explains() -> None:
    assert {name: rule_for(stored) for name, stored in EXPLAINED.items()} == {
        rule.name: rule.name for rule in SHIPPED_RULES
    }


@pytest.mark.parametrize("name", EXPLAINED)
def test_without_shipped_kernels_it_explains_nothing(name: str) -> None:
    stored = EXPLAINED[name]
    assert rule_for(replace(stored, kernels=())) == ""
    assert rule_for(stored, None) == ""
    assert rule_for(stored, None, simulated=False) == ""
    assert rule_for(replace(stored, outcome=Outcome(CaseVerdict.CRASH, "forward", DIFFER))) == ""
    assert rule_for(replace(stored, outcome=Outcome(CaseVerdict.WRONG, "forward", "shape is [1], not [2]"))) == ""


@pytest.mark.parametrize("rule", DEFECTS, ids=lambda rule: rule.name)
def test_a_defect_is_that_of_its_release_and_of_its_kernels(rule) -> None:  # type: ignore[no-untyped-def]
    stored = EXPLAINED[rule.name]
    assert rule_for(stored, "2.99.0") == ""
    assert rule_for(replace(stored, kernels=("other_dense_scalar_int_int",))) == ""
    assert rule_for(replace(stored, group=replace(stored.group, dtype="int8"))) == ""
    assert rule_for(replace(stored, group=replace(stored.group, operator="neg"))) == ""


def test_other_special_values_are_no_subnormals() -> None:
    assert rule_for(replace(EXPLAINED["subnormals-count-as-zero"], inputs="nan: (float32[2])")) == ""
    assert rule_for(case("opinfo", "all", "float32", ("all_reduction_float_uchar",), "denormals: (float32[2])")) == ""
