"""Each rule of the registry explains its examples and none of their near misses; its models are there."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from mpsmith.audit.findings.explanations import Explainer
from mpsmith.audit.findings.rules import loading
from mpsmith.audit.findings.rules.loading import PACKAGED, TOPICS, all_rules, entries
from mpsmith.audit.findings.rules.rule import Example, ExplainingRule
from mpsmith.audit.judging.predictions import OF_HOST_CODE, PREDICTIONS
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.verdicts import ROUNDING, CaseVerdict, Outcome
from mpsmith.audit.store.records import StoredCase
from mpsmith.registry.problems import RegistryError
from support.surfaces import Dispatch, overload, surface

V = CaseVerdict
SURFACE = surface(overload("mode", Dispatch.MISSING), overload("relu", Dispatch.NATIVE))
# Rules about values without a prediction, each with the reason.
WITHOUT_PREDICTION = {
    "any-order-without-sorting": "any order of the results is right; a rule about real devices alone",
    "values-beyond-float32": "any singular value below the largest times the ULP is right, since that one is infinite",
    "contents-of-memory": "what is in memory that nothing wrote, no model can give",
    "variance-that-overflows-without-momentum": "torch's schema does not say that running_var is written",
    "largest-numbers-of-a-convolution": "beside it a result is missing, which no model can give",
    "gels-without-full-rank": "any solution is right: torch says that gels is for matrices of full rank",
}


def stored(entry: ExplainingRule, example: Example) -> StoredCase:
    source, operator, dtype = example.case.split(":")
    verdict = example.verdict or entry.verdicts[0]
    outcome = Outcome(verdict, example.stage, example.message, fallbacks=example.fallbacks)
    key = GroupKey(source, operator, "", dtype, "fallback")
    kernels, fits = example.kernels, example.fits
    return StoredCase(1, key, 0, outcome, example.inputs, grade=example.grade, kernels=kernels, predictions=fits)


def rule_for(name: str, example: Example, shipped: str | None = "2.13.0") -> str:
    """The rule that explains an example where the rule of this name holds."""
    entry = entries()[name]
    imports = (entry.imported,) if entry.imported else ()
    explainer = Explainer(SURFACE, simulated=entry.holds_on != "real", shipped=shipped, imports=imports)
    rule = explainer.rule_for(stored(entry, example))
    return rule.name if rule else ""


@pytest.mark.parametrize("name", entries())
def test_a_rule_explains_its_examples_and_no_near_miss(name: str) -> None:
    assert entries()[name].examples
    for example in entries()[name].examples:
        assert rule_for(name, example) == name
        assert example.unlike
        for near in example.near_misses:
            assert rule_for(name, near) != name


# Where a message has the device's value.
VALUE = re.compile(r"(; at \[[^\]]*\]: ).*?, CPU")


# Of each rule that needs a prediction, the examples whose values differ; rules of refusals have none.
OF_VALUES = [
    (rule.name, example)
    for rule in all_rules()
    if rule.name not in WITHOUT_PREDICTION
    for example in entries()[rule.name].examples
    if "elements differ" in example.message
]


@pytest.mark.parametrize(("name", "example"), OF_VALUES, ids=[name for name, _ in OF_VALUES])
def test_nothing_explains_an_example_with_garbage_in_one_element(name: str, example: Example) -> None:
    fits: dict[str, float]
    message = VALUE.sub(r"\g<1>12345.678, CPU", example.message)
    for fits in {}, {ROUNDING: 1e6}:
        assert rule_for(name, example.model_copy(update={"message": message, "fits": fits})) == ""


@pytest.mark.parametrize("name", [rule.name for rule in all_rules() if rule.shipped])
def test_a_rule_about_shipped_kernels_needs_a_release_and_its_kernels(name: str) -> None:
    entry = entries()[name]
    (example, *_) = entry.examples
    assert rule_for(name, example, None) != name
    assert rule_for(name, example.model_copy(update={"kernels": ()})) != name
    assert (rule_for(name, example, "2.99.0") == name) is (entry.shipped == ("*",)), "a defect is one of its release"


@pytest.mark.parametrize("name", [rule.name for rule in all_rules() if rule.imported])
def test_a_rule_about_our_kernels_needs_their_import(name: str) -> None:
    entry = entries()[name]
    case = stored(entry, entry.examples[0])
    rule = Explainer(SURFACE, simulated=True, shipped="2.13.0").rule_for(case)
    assert rule is None or rule.name != name


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.name)
def test_a_rule_about_values_has_a_prediction(rule: ExplainingRule) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", rule.name)
    assert V.PASSED not in rule.verdicts
    re.compile(rule.message)
    re.compile(rule.inputs)
    if "elements differ" in rule.message:
        assert rule.prediction or rule.at_most is not None or rule.name in WITHOUT_PREDICTION


def test_rules_name_existing_models() -> None:
    named = {rule.prediction for rule in all_rules() if rule.prediction}
    assert named == {prediction.name for prediction in PREDICTIONS + OF_HOST_CODE}
    assert len(WITHOUT_PREDICTION) == 6


def test_every_file_is_read() -> None:
    assert sorted(path.stem for path in PACKAGED.glob("*")) == sorted(TOPICS)


def test_a_mistake_in_a_file_names_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = (PACKAGED / "no_kernel.yaml").read_text()
    (tmp_path / "rules.yaml").write_text(good.replace("reason:", "raeson:"))
    monkeypatch.setattr(loading, "PACKAGED", tmp_path)
    monkeypatch.setattr(loading, "TOPICS", ("rules",))
    with pytest.raises(RegistryError) as error:
        entries.__wrapped__()
    assert "rules.yaml:" in str(error.value)
    assert "raeson" in str(error.value)


def test_an_example_of_another_rule_is_a_near_miss() -> None:
    entry = entries()["erfc-as-one-less-erf"]
    other = replace(stored(entry, entry.examples[0]), predictions={"expm1-by-exp-from-1e-5-on": 0.0})
    assert Explainer(SURFACE, simulated=True, shipped="2.13.0").rule_for(other) is None
