"""The self-test finds what was put in, blames nothing else, and notices when any part of the judge is taken out."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
import torch

from mpsmith.audit.cases import make_cases
from mpsmith.audit.findings.explanations import Explainer
from mpsmith.audit.findings.store import StoredCase
from mpsmith.audit.group import GroupKey
from mpsmith.audit.judging import agreement, compare, judge, witness
from mpsmith.audit.judging.agreement import Comparison
from mpsmith.audit.judging.compare import Agreement, Difference
from mpsmith.audit.judging.fallbacks import CounterRecorder
from mpsmith.audit.judging.judge import Trial
from mpsmith.audit.judging.witness import Witness
from mpsmith.audit.running.worker import freeze_once
from mpsmith.audit.selection import Samples
from mpsmith.audit.self_test import SelfTest, judged, self_test
from mpsmith.audit.self_test.plan import CONTROLS, DTYPES, FAULT_CLASSES, SOURCES, FaultClass, PlantedFault, rounds
from mpsmith.audit.sources import case_sources, derived, forms, layouts, random
from mpsmith.audit.surface import installed_surface
from mpsmith.audit.verdicts import CaseVerdict, Outcome
from mpsmith.cli.self_test import _as_json, _as_text
from mpsmith.simulator.device.faults import Fault, FaultKind, inject

pytestmark = pytest.mark.usefixtures("no_faults")

CLASSES = {each.name: each for each in FAULT_CLASSES}
DEADLY = ("aborts", "segfaults", "hangs")
EXPLAINER = Explainer(installed_surface(), simulated=True)


@pytest.fixture(scope="module")
def sources():
    by_name = case_sources(())
    for name in SOURCES:
        list(by_name[name].groups())
    freeze_once(set(), "all")  # as a worker does: a leak is told by many collections
    yield by_name
    gc.unfreeze()


def audited(planted: PlantedFault, sources) -> list[StoredCase]:
    """The fault's operator audited in this process, with whatever faults are armed; its sparse forms are left out."""
    cases = []
    watching = Witness() if planted.fault.kind is FaultKind.FALLBACK else None
    for name in SOURCES:
        keys = [key for key in sources[name].groups() if key.operator == planted.operator and "/" not in key.variant]
        for key in (key for key in keys if key.dtype in DTYPES):
            for position, case in make_cases(sources[name], key, Samples.DEFAULT, 0).items():
                outcome = judge.judge(case, CounterRecorder(), 0, f"{key.label}:{position}", watching)
                cases.append(StoredCase(0, key, position, outcome, ""))
    return cases


def result(planted: PlantedFault, sources) -> str:
    """What the self-test says of one fault, armed alone."""
    inject(planted.fault)
    (finding,) = judged([planted], audited(planted, sources), EXPLAINER).findings
    return finding.result


def first_fault(name: str) -> PlantedFault:
    return PlantedFault(CLASSES[name], *CLASSES[name].faults[0])


@pytest.mark.parametrize("name", [name for name in CLASSES if name not in DEADLY])
def test_a_fault_of_each_class_is_found_and_a_clean_device_is_not_blamed(name: str, sources) -> None:
    planted = first_fault(name)
    assert judged([], audited(planted, sources), EXPLAINER).strays == []
    inject(planted.fault)
    cases = audited(planted, sources)
    (finding,) = judged([planted], cases, EXPLAINER).findings
    assert finding.result == "found"
    shown = [case for case in cases if planted.fault_class.is_shown_by(case.outcome, planted.fault)]
    assert {rule.name for case in shown if (rule := EXPLAINER.rule_for(case))} == set()


# ---- the judge with one part taken out


def blinded(beginning: str) -> Callable[[pytest.MonkeyPatch], None]:
    """The comparison of tensors without the differences that begin so."""

    def apply(patch: pytest.MonkeyPatch) -> None:
        def blind(*args, **kwargs):
            found = compare.compare(*args, **kwargs)
            return Agreement(0.0) if isinstance(found, Difference) and found.text.startswith(beginning) else found

        patch.setattr(agreement, "compare", blind)

    return apply


def without(owner: object, name: str, value: object) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(owner, name, value)


def wider(patch: pytest.MonkeyPatch) -> None:
    for dtype, (relative, absolute) in list(compare.TOLERANCES.items()):
        patch.setitem(compare.TOLERANCES, dtype, (10 * relative, 10 * absolute))


def any_error_will_do(trial: Trial, expected: Exception) -> Outcome:
    return Outcome(CaseVerdict.PASSED)


def nan_counts_as_equal(patch: pytest.MonkeyPatch) -> None:
    def lenient(actual, expected, *args, **kwargs):
        if actual.shape == expected.shape and actual.dtype is expected.dtype:
            actual = torch.where(actual.isnan(), expected.to(actual.device), actual)
        return compare.compare(actual, expected, *args, **kwargs)

    patch.setattr(agreement, "compare", lenient)


def unchanged(operator: forms.Call) -> forms.Call:
    return lambda first, *args, **kwargs: first


def once(operator: forms.Call) -> forms.Call:
    return operator


def most_dimensions(case) -> tuple[int, int] | None:
    """Which tensor is largest, as if an empty one could show anything."""
    tensors = [arg for arg in case.args if isinstance(arg, torch.Tensor)]
    return max((t.dim(), t.numel()) for t in tensors) if tensors else None


def nothing_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(forms, "twice", once)
    patch.setattr(forms, "from_two_threads", once)


def no_guards(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(forms, "GUARD", 0)
    patch.setattr(forms, "OUT_KINDS", tuple(kind for kind in forms.OUT_KINDS if kind != "every other element"))


ALL_BUT_EXPANDED = tuple(each for each in layouts.LAYOUTS if each is not layouts.expanded)
MUTATIONS: dict[str, tuple[str, Callable[[pytest.MonkeyPatch], None]]] = {
    "values are not compared": (
        "wrong values",
        without(compare, "_compare_values", lambda *_: Agreement(0.0)),
    ),
    "NaN counts as equal": ("NaN where finite", nan_counts_as_equal),
    "tolerances are ten times as wide": ("just beyond the tolerance", wider),
    "shapes are not compared": ("wrong shape", blinded("shape is")),
    "dtypes are not compared": ("wrong dtype", blinded("dtype is")),
    "strides are not compared": ("wrong stride", without(Comparison, "_strides", lambda *_: None)),
    "memory is not compared": ("wrong alias", without(Comparison, "_memory", lambda *_: None)),
    "inputs are not looked at": ("changes its input", without(Comparison, "_untouched", lambda *_: None)),
    "gradients are not compared": ("wrong gradient", without(Comparison, "backward", lambda *_: 0.0)),
    "memory in use is not measured": ("leaks", without(Trial, "leaked_bytes", lambda *_: 0)),
    "distributions are not compared": (
        "draws from another distribution",
        without(agreement, "compare_draws", lambda *_: ""),
    ),
    "seeds are not tried": ("ignores the seed", without(random, "same_bits", lambda *_: True)),
    "types of errors are not compared": ("raises another error", without(Trial, "_judge_error", any_error_will_do)),
    "what goes to the CPU is not watched": ("falls back unannounced", without(witness, "HANDED_TO_CPU", "")),
    "no guards": ("writes outside its output", no_guards),
    "nothing is called twice": ("result in freed memory", nothing_twice),
    "no expanded inputs": (
        "wrong values, expanded input",
        without(layouts, "in_every_layout", partial(layouts.in_every_layout, layouts=ALL_BUT_EXPANDED)),
    ),
    "samples without elements are varied": (
        "wrong values, non-contiguous input",
        without(derived, "_largest", most_dimensions),
    ),
    "no out= forms": ("wrong values, out= only", without(forms, "OutForm", lambda *_: NoForm())),
    "no in-place form": ("wrong values, in place only", without(forms, "in_place", unchanged)),
}


class NoForm:
    title = "plain"

    def of(self, operator: forms.Call) -> forms.Call:
        return operator


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_judge_without_one_of_its_parts_misses_the_fault(
    mutation: str, sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, apply = MUTATIONS[mutation]
    apply(monkeypatch)
    assert result(first_fault(name), sources) != "found"


# ---- what the self-test makes of an audit


def stored(operator: str, verdict: CaseVerdict, message: str = "") -> StoredCase:
    return StoredCase(1, GroupKey("opinfo", operator, "", "float32", "fallback"), 0, Outcome(verdict, "", message), "")


VALUES = PlantedFault(CLASSES["wrong values"], "exp", Fault("aten::exp", FaultKind.VALUES))


@pytest.mark.parametrize(
    ("cases", "expected"),
    [
        ([stored("exp", CaseVerdict.PASSED)], "missed"),
        ([], "missed"),
        ([stored("exp", CaseVerdict.WRONG, "shape is [1], not [2]")], "misattributed"),
        ([stored("exp", CaseVerdict.CRASH, "3 of 3 elements differ")], "misattributed"),
        ([stored("exp", CaseVerdict.PASSED), stored("exp", CaseVerdict.WRONG, "3 of 3 elements differ")], "found"),
        ([stored("sin", CaseVerdict.WRONG, "3 of 3 elements differ")], "missed"),
    ],
)
def test_found_missed_and_misattributed(cases: list[StoredCase], expected: str) -> None:
    (finding,) = judged([VALUES], cases, EXPLAINER).findings
    assert finding.result == expected


def test_an_operator_without_a_fault_is_a_stray_when_it_does_not_pass() -> None:
    quiet = [stored("mul", CaseVerdict.PASSED)]
    assert judged([VALUES], quiet, EXPLAINER).strays == []
    for verdict in (verdict for verdict in CaseVerdict if verdict is not CaseVerdict.PASSED):
        found = judged([VALUES], [*quiet, stored("mul", verdict)], EXPLAINER)
        assert (len(found.strays), found.explained) == (1, 0)


def test_what_a_rule_explains_is_counted_and_no_stray() -> None:
    skipped = stored("mul", CaseVerdict.SKIPPED, "asks for float64, a dtype that mps refuses by design")
    found = judged([VALUES], [skipped], EXPLAINER)
    assert (found.strays, found.explained) == ([], 1)


def test_only_a_complete_success_passes() -> None:
    (finding,) = judged([VALUES], [stored("exp", CaseVerdict.WRONG, "3 of 3 elements differ")], EXPLAINER).findings
    good = SelfTest([finding], [], [], explained=1, executed=1, executed_clean=1, seconds=1.0)
    assert good.passed
    assert not replace(good, findings=[replace(finding, cases=0)]).passed
    assert not replace(good, accusations=["mul"]).passed
    assert not replace(good, false_alarms=["mul"]).passed
    assert not replace(good, executed=0).passed
    assert not replace(good, executed_clean=0).passed


def test_both_forms_of_the_report_say_that_it_was_simulated_and_what_was_missed() -> None:
    findings = judged([VALUES], [], EXPLAINER).findings
    done = SelfTest(findings, ["mul: wrong"], ["sub: wrong"], explained=7, executed=5, executed_clean=6, seconds=1.0)
    text = _as_text(done)
    for part in (
        "SIMULATED",
        "missed: aten::exp=values in exp",
        "mul: wrong",
        "1 false alarms in 6 cases; 7 more did not pass and are explained by rules",
        "sub: wrong",
    ):
        assert part in text
    data = _as_json(done)
    assert data["simulated"] is True
    assert data["passed"] is False
    assert data["counts"]["wrong values"] == {"found": 0, "missed": 1, "misattributed": 0}


def test_the_faults_of_a_round_do_not_meet() -> None:
    for faults in rounds(FAULT_CLASSES):
        names = [planted.operator for planted in faults]
        overloads = [planted.fault.operator for planted in faults]
        assert len({*names, *CONTROLS}) == len(names) + len(CONTROLS)
        assert len(set(overloads)) == len(overloads)


def test_every_kind_of_fault_is_in_the_plan() -> None:
    kinds = {fault.kind for each in FAULT_CLASSES for _, fault in each.faults}
    assert kinds == set(FaultKind)
    assert all(len(each.faults) >= 3 for each in FAULT_CLASSES)


def test_faults_that_end_processes_are_found_by_an_audit_in_workers() -> None:
    classes = [replace(CLASSES[name], faults=CLASSES[name].faults[:1]) for name in ("aborts", "hangs", "leaks")]
    done = self_test(workers=2, say=lambda text: None, classes=classes, timeout=5.0)
    assert {finding.planted.fault_class.name: finding.result for finding in done.findings} == {
        "aborts": "found",
        "hangs": "found",
        "leaks": "found",
    }
    assert done.passed, (done.accusations, done.false_alarms)


def test_a_class_without_evidence_is_missed_by_an_audit_in_workers() -> None:
    never = FaultClass(
        "never acts", CaseVerdict.WRONG, "", (("exp", Fault("aten::exp", FaultKind.VALUES, above=10**9)),)
    )
    done = self_test(workers=2, say=lambda text: None, classes=[never])
    assert [finding.result for finding in done.findings] == ["missed"]
    assert not done.passed
