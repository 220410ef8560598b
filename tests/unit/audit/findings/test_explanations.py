"""Rules explain what they name and nothing else: above all no fault that somebody puts in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from mpsmith.audit.findings.explanations import Explainer, Explanation, RuleUse, Unexplained, explain, explainer_of
from mpsmith.audit.findings.rules.loading import all_rules
from mpsmith.audit.findings.rules.rule import ExplainingRule
from mpsmith.audit.findings.run_data import read_run
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.verdicts import ROUNDING, CaseVerdict, Grade, Outcome
from mpsmith.audit.releases.surface.overloads import Dispatch
from mpsmith.audit.store.records import StoredCase
from mpsmith.audit.store.store import Store
from support.stores import begun
from support.surfaces import overload, surface

SURFACE = surface(
    overload("mode", Dispatch.MISSING),
    overload("linalg_svd", Dispatch.ALWAYS_FALLS_BACK),
    overload("relu", Dispatch.NATIVE),
    overload("kron", Dispatch.COMPOSITE_IMPLICIT),
)


def case(
    verdict: CaseVerdict,
    message: str = "",
    *,
    operator: str = "mul",
    variant: str = "",
    source: str = "opinfo",
    dtype: str = "float32",
    stage: str = "forward",
    inputs: str = "(float32[3])",
    fits: Mapping[str, float] | None = None,
    **outcome: object,
) -> StoredCase:
    key = GroupKey(source, operator, variant, dtype, "fallback")
    judged = Outcome(verdict, stage, message, **outcome)  # type: ignore[arg-type]
    return StoredCase(1, key, 0, judged, inputs, predictions=fits or {})


def explained_by(rule: ExplainingRule, stored: StoredCase, *, simulated: bool = True) -> bool:
    return Explainer(SURFACE, simulated=simulated, rules=(rule,)).rule_for(stored) is rule


# ---- one rule


WHOLE = ExplainingRule(
    "whole",
    "it has every condition that a rule may have",
    (CaseVerdict.WRONG,),
    r"^1 of 2 elements differ",
    ("linear", "nn.*"),
    sources=("forms",),
    dtypes=("float16",),
    stages=("backward",),
    inputs=r"^autocast ",
    at_most=2.0,
)


def matching(**change: object) -> StoredCase:
    arguments: dict[str, object] = {
        "verdict": CaseVerdict.WRONG,
        "message": "1 of 2 elements differ; at [0]: 1.0, CPU 2.0",
        "operator": "linear",
        "source": "forms",
        "dtype": "float16",
        "stage": "backward",
        "inputs": "autocast float16: (float16[3])",
        "fits": {ROUNDING: 1.5},
    }
    return case(**{**arguments, **change})  # type: ignore[arg-type]


def test_a_case_that_meets_every_condition_is_explained() -> None:
    assert explained_by(WHOLE, matching())
    assert explained_by(WHOLE, matching(operator="nn.LSTM", variant="train"))


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": CaseVerdict.CRASH},
        {"message": "2 of 2 elements differ; at [0]: 1.0, CPU 2.0"},
        {"operator": "linear_backward"},
        {"operator": "linear", "variant": "out"},
        {"source": "opinfo"},
        {"dtype": "float32"},
        {"stage": "forward"},
        {"inputs": "(float16[3])"},
        {"fits": {ROUNDING: 2.5}},
        {"fits": {"a-model": 0.0}},
        {"fits": {}},
    ],
    ids=str,
)
def test_a_case_that_misses_one_condition_is_not(change: dict[str, object]) -> None:
    assert not explained_by(WHOLE, matching(**change))


@pytest.mark.parametrize(
    ("holds_on", "on_simulated", "on_mac"), [("both", True, True), ("simulated", True, False), ("real", False, True)]
)
def test_a_rule_holds_on_its_kind_of_device(holds_on: str, on_simulated: bool, on_mac: bool) -> None:
    rule = replace(WHOLE, holds_on=holds_on)  # type: ignore[arg-type]
    assert explained_by(rule, matching(), simulated=True) is on_simulated
    assert explained_by(rule, matching(), simulated=False) is on_mac


@pytest.mark.parametrize(
    ("environment", "holds"),
    [
        ({"shipped": "2.13.0"}, True),
        ({"host_code": {"kernels": "2.13.0"}}, True),
        ({"host_code": {"kernels": "2.6.0"}}, False),
        ({"host_code": {"kernels": ""}}, False),
        ({}, False),
    ],
    ids=str,
)
def test_a_rule_about_kernels_holds_where_kernels_of_its_release_ran(
    store: Store, environment: dict[str, object], holds: bool
) -> None:
    run = read_run(store, begun(store, environment=environment).finish()).run
    rule = replace(WHOLE, shipped=("2.13.*",))
    assert (rule in explainer_of(run, SURFACE, (rule,)).rules) is holds


def test_the_first_rule_that_matches_explains() -> None:
    second = replace(WHOLE, name="second")
    assert Explainer(SURFACE, simulated=True, rules=(WHOLE, second)).rule_for(matching()) is WHOLE


MODELLED = replace(WHOLE, prediction="a-model", at_most=None)


@pytest.mark.parametrize(
    ("fits", "explained"),
    [
        ({"a-model": 0.0}, True),
        ({"another-model": 0.0, ROUNDING: 0.1}, False),
        ({}, False),
        ({"a-model+another-model": 0.0}, False),
    ],
    ids=str,
)
def test_a_rule_with_a_model_explains_predicted_values(fits: dict[str, float], explained: bool) -> None:
    assert explained_by(MODELLED, matching(fits=fits)) is explained


def test_models_that_give_a_case_together_need_a_rule_each() -> None:
    second = replace(MODELLED, name="second", prediction="another-model")
    elsewhere = replace(second, dtypes=("int8",))
    stored = matching(fits={"a-model+another-model": 0.0})
    assert Explainer(SURFACE, simulated=True, rules=(MODELLED, second)).rule_for(stored) is MODELLED
    assert Explainer(SURFACE, simulated=True, rules=(MODELLED, elsewhere)).rule_for(stored) is None
    either = matching(fits={"a-model+a-third": 0.0, "a-model+another-model": 0.0})
    assert Explainer(SURFACE, simulated=True, rules=(MODELLED, second)).rule_for(either) is MODELLED


@pytest.mark.parametrize(("grade", "explained"), [(Grade.HOST_CODE, True), (Grade.DISPATCH_ONLY, False)])
def test_a_rule_about_kernels_helps_where_host_code_ran_a_graph_and_the_gradient_is_wrong_too(
    grade: Grade, explained: bool
) -> None:
    of_kernels = replace(MODELLED, name="second", prediction="another-model", shipped=("2.13.*",), kernels=("sqrt_*",))
    stored = replace(matching(fits={"a-model+another-model": 0.0}), grade=grade)
    explainer = Explainer(SURFACE, simulated=True, shipped="2.13.0", rules=(MODELLED, of_kernels))
    assert explainer.rule_for(stored) is (MODELLED if explained else None)
    alone = replace(stored, predictions={"another-model": 0.0})
    assert explainer.rule_for(alone) is None


NO_KERNEL = next(rule for rule in all_rules() if rule.name == "no-kernel")


@pytest.mark.parametrize("verdict", [CaseVerdict.FALLBACK, CaseVerdict.MISSING])
@pytest.mark.parametrize(
    ("named", "explained"),
    [
        (("aten::mode",), True),
        (("aten::mode", "aten::linalg_svd"), True),
        (("aten::relu",), False),
        (("aten::mode", "aten::relu"), False),
        (("aten::kron",), False),
        (("aten::unheard_of",), False),
        (("mine::unheard_of",), True),
        ((), False),
    ],
)
def test_a_fallback_is_explained_where_the_surface_has_no_kernel(
    verdict: CaseVerdict, named: tuple[str, ...], explained: bool
) -> None:
    assert explained_by(NO_KERNEL, case(verdict, fallbacks=named)) is explained


WRONG_VALUES = "3 of 3 elements differ; at [0]: 1.5, CPU 2.5, float64 2.5"
# What the audit says of each kind of fault, all of them right operators turned wrong.
MESSAGES = {
    "wrong values": WRONG_VALUES,
    "wrong gradient": "gradient 0: 3 of 3 elements differ; at [0]: 1.5, CPU 2.5, float64 2.5",
    "NaN where finite": "1 of 3 elements differ; at [0]: nan, CPU 2.5, float64 2.5",
    "just beyond the tolerance": "1 of 3 elements differ; at [0]: 2.50001, CPU 2.5, float64 2.5",
    "wrong shape": "output 0: shape is [1, 3], not [3]",
    "wrong dtype": "dtype is torch.float16, not torch.float32",
    "wrong stride": "output 0 has stride (1, 5), not (5, 1)",
    "wrong alias": "output 0 shares the memory of input 0, unlike the CPU's",
    "writes outside its output": "output 2: 1 of 77 elements differ; at [40]: 9.0, CPU 1.0",
    "changes its input": "input 0 was changed, which the CPU leaves alone",
    "result in freed memory": "3 of 3 elements differ; at [0]: nan, CPU 2.5, float64 2.5",
    "aborts": "SIGABRT",
    "segfaults": "SIGSEGV",
    "hangs": "time-out",
    "leaks": "leaks memory: 1,024 bytes more are allocated after each call",
    "ignores the seed": "output 0: is 'a seed gives other numbers again', not 'a seed gives the same numbers again'",
    "draws the same numbers again": "output 1: is 'another seed gives the same numbers', not 'another seed gives "
    "other numbers'",
    "draws from another distribution": "8192 draws are distributed unlike the CPU's: Kolmogorov–Smirnov distance 0.200 "
    "over 0.042",
    "raises another error": "raises ValueError, the CPU RuntimeError: sizes do not match",
    "falls back unannounced": "",
}
VERDICTS = {
    "aborts": CaseVerdict.CRASH,
    "segfaults": CaseVerdict.CRASH,
    "hangs": CaseVerdict.TIMEOUT,
    "falls back unannounced": CaseVerdict.FALLBACK,
}
NO_LIMIT = 10_000.0


def faulty(name: str, operator: str, **of_case: str) -> StoredCase:
    verdict = VERDICTS.get(name, CaseVerdict.WRONG)
    fallbacks = ("aten::relu",) if verdict is CaseVerdict.FALLBACK else ()
    return case(verdict, MESSAGES[name], operator=operator, fallbacks=fallbacks, max_error=NO_LIMIT, **of_case)


@pytest.mark.parametrize("name", MESSAGES)
def test_no_rule_explains_a_fault_of_a_right_operator(name: str) -> None:
    explainer = Explainer(SURFACE, simulated=True)
    for operator in ("exp", "nn.functional.relu", "sum", "gather", "uniform"):
        assert explainer.rule_for(faulty(name, operator)) is None


@pytest.mark.parametrize(
    "message",
    [
        "not judged, RuntimeError: something",
        "no samples: ValueError: something",
        "the CPU's run ends in SIGSEGV",
        "'NoneType' object is not iterable",
        "list index out of range",
        "not enough values to unpack (expected 3, got 2)",
        "_foreach_abs() got an unexpected keyword argument 'out'",
        "x INTERNAL ASSERT FAILED at y",
    ],
)
def test_auditor_errors_stay_unexplained(message: str) -> None:
    assert Explainer(SURFACE, simulated=True).rule_for(case(CaseVerdict.REFERENCE_FAILED, message)) is None
    refused = case(CaseVerdict.REFERENCE_FAILED, "mat2 must be a matrix")
    assert Explainer(SURFACE, simulated=True).rule_for(refused) is not None


def test_a_skip_for_a_new_reason_stays_unexplained() -> None:
    assert Explainer(SURFACE, simulated=True).rule_for(case(CaseVerdict.SKIPPED, "did not feel like it")) is None


# ---- a run


def explanation_of(
    store: Store, cases: list[StoredCase], rules: tuple[ExplainingRule, ...], **settings: object
) -> Explanation:
    recording = begun(store, settings)
    for position, stored in enumerate(cases):
        recording.add(stored.group, stored.outcome, inputs=stored.inputs, start=position, fits=stored.predictions)
    explanation, by_case = explain(read_run(store, recording.finish()), SURFACE, rules)
    assert len(by_case) == explanation.explained
    return explanation


def test_non_passes_are_counted_by_rule_and_the_rest_by_message(store: Store) -> None:
    cases = [
        case(CaseVerdict.PASSED),
        matching(),
        matching(operator="nn.LSTM", variant="train"),
        case(CaseVerdict.FALLBACK, operator="mode", fallbacks=("aten::mode",)),
        case(CaseVerdict.WRONG, "shape is [3], not [4]"),
        case(CaseVerdict.WRONG, "shape is [30], not [40]", dtype="int8"),
        case(CaseVerdict.CRASH, "SIGSEGV", operator="sin"),
    ]
    explanation = explanation_of(store, cases, (WHOLE, NO_KERNEL))
    assert explanation.sentence == "6 non-passes: 3 explained by 2 rules, 3 unexplained"
    assert [(use.name, use.total, use.entries) for use in explanation.rules] == [
        ("whole", 2, ("linear", "nn.LSTM.train")),
        ("no-kernel", 1, ("mode",)),
    ]
    shape = "shape is [3], not [4]"
    stood_in = Grade.DISPATCH_ONLY
    assert explanation.unexplained == (
        Unexplained(
            *("opinfo", "sin", CaseVerdict.CRASH, "forward", "SIGSEGV", ("float32",), 1, "opinfo:sin:float32:6"),
            stood_in,
        ),
        Unexplained(
            *("opinfo", "mul", CaseVerdict.WRONG, "forward", shape, ("float32", "int8"), 2, "opinfo:mul:float32:4"),
            stood_in,
        ),
    )


@pytest.mark.parametrize(
    ("settings", "stale"),
    [
        ({}, ("no-kernel",)),
        ({"ops": ["linear"]}, ()),
        ({"dtypes": ["float16"]}, ()),
        ({"sources": ["forms"]}, ()),
        ({"samples": "quick"}, ()),
        ({"samples": "full"}, ("no-kernel",)),
    ],
    ids=str,
)
def test_a_rule_that_explains_nothing_in_a_full_run_is_stale(
    store: Store, settings: dict[str, object], stale: tuple[str, ...]
) -> None:
    elsewhere = replace(WHOLE, name="on-a-mac", holds_on="real")
    never_stale = replace(NO_KERNEL, name="never", never_stale=True)
    rules = (WHOLE, NO_KERNEL, elsewhere, never_stale)
    assert explanation_of(store, [matching()], rules, **settings).stale == stale


def test_a_stopped_run_makes_no_rule_stale(store: Store) -> None:
    run = store.begin_run({"samples": "default"}, {"simulated": True})
    store.plan(run.id, [matching().group])
    assert explain(read_run(store, run), SURFACE, (WHOLE,))[0].stale == ()


def test_rules_are_sorted_by_use_and_unexplained_cases_by_severity(store: Store) -> None:
    cases = [
        matching(),
        *[case(CaseVerdict.FALLBACK, operator="mode", fallbacks=("aten::mode",), dtype=dtype) for dtype in ("a", "b")],
        case(CaseVerdict.WRONG, "x", operator="b"),
        case(CaseVerdict.WRONG, "x", operator="a"),
        case(CaseVerdict.CRASH, "x", operator="z"),
        case(CaseVerdict.DTYPE_GAP, "x", operator="a"),
        case(CaseVerdict.WRONG, "x", operator="b", stage="backward"),
        case(CaseVerdict.WRONG, "y", operator="b"),
        case(CaseVerdict.WRONG, "x", operator="b", source="forms"),
        case(CaseVerdict.FALLBACK, operator="b", fallbacks=("aten::relu",)),
        case(CaseVerdict.FALLBACK, operator="b", fallbacks=("aten::kron",)),
    ]
    explanation = explanation_of(store, cases, (WHOLE, NO_KERNEL))
    assert [(use.name, use.total, use.example) for use in explanation.rules] == [
        ("no-kernel", 2, "opinfo:mode:a:1"),
        ("whole", 1, "forms:linear:float16:0"),
    ]
    assert [(row.verdict.value, row.entry) for row in explanation.unexplained] == [
        ("crash", "z"),
        ("wrong", "a"),
        *[("wrong", "b")] * 4,
        *[("fallback", "b")] * 2,
        ("dtype gap", "a"),
    ]
    assert {row.message for row in explanation.unexplained if row.verdict is CaseVerdict.FALLBACK} == {
        "aten::relu",
        "aten::kron",
    }


def test_rules_with_equal_use_are_sorted_by_name(store: Store) -> None:
    other = replace(WHOLE, name="another", message="^other$")
    cases = [matching(), matching(message="other")]
    assert [use.name for use in explanation_of(store, cases, (WHOLE, other)).rules] == ["another", "whole"]


def test_without_cases_there_is_nothing_to_explain() -> None:
    assert Explanation().sentence == "0 non-passes: 0 explained by 0 rules, 0 unexplained"
    use = RuleUse("x", "y", "both", "", {CaseVerdict.WRONG: 2}, ("a",), "a:1")
    assert Explanation(1_234, (use,)).sentence == "1,234 non-passes: 2 explained by 1 rule, 1,232 unexplained"


@pytest.mark.parametrize("simulated", [True, False])
def test_rule_that_knows_no_mac_discounts_simulated_cases_alone(store: Store, simulated: bool) -> None:
    recording = begun(store, environment={"simulated": simulated})
    example = matching()
    recording.add(example.group, example.outcome, inputs=example.inputs, fits=example.predictions)
    explanation, _ = explain(read_run(store, recording.finish()), SURFACE, (replace(WHOLE, unknown_on_mac=True),))
    assert explanation.explained == 1
    assert explanation.unknown_on_mac == ({"whole"} if simulated else set())
