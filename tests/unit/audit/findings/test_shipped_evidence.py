"""What a run shows of shipped kernels: whose evidence they are, which were launched, and what came out wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from mpsmith.audit.findings.measurements import measurements_of
from mpsmith.audit.findings.results import AuditSummary, OverloadSummary
from mpsmith.audit.findings.shipped import launches
from mpsmith.audit.findings.shipped.launches import (
    LACKING,
    ONLY_BESIDE_STAND_INS,
    KernelTemplate,
    ShippedLaunches,
    StandInReason,
    kernel_templates,
    missed_templates,
)
from mpsmith.audit.findings.shipped.wrong_kernels import WrongKernel
from mpsmith.audit.findings.summary import summarize
from mpsmith.audit.findings.summary_filter import select
from mpsmith.audit.model.launches import Launches
from mpsmith.audit.model.verdicts import AtFault, CaseVerdict, Grade, Outcome, UlpSensitivity
from mpsmith.audit.releases.surface.overloads import Dispatch
from mpsmith.audit.store.store import Store
from mpsmith.reports import csv_report, json_report, markdown, terminal
from mpsmith.reports.site.content import SiteContent
from mpsmith.reports.site.writing import files
from mpsmith.reports.wording import key_figures
from support.stores import Recording, begun, new_store, opinfo
from support.surfaces import overload, surface

SURFACE = surface(
    overload("exp", Dispatch.NATIVE),
    overload("mul.Tensor", Dispatch.NATIVE),
    overload("softmax", Dispatch.NATIVE),
    overload("linear", Dispatch.NATIVE),
    overload("sigmoid_like", Dispatch.COMPOSITE_IMPLICIT, "Tensor self"),
    overload("inner", Dispatch.COMPOSITE_IMPLICIT, "Tensor self"),
)
PASSED = Outcome(CaseVerdict.PASSED)
LAUNCHED = {"aten::exp": Launches(2, Counter(exp_dense_float_float=3), Counter(), 2)}


@dataclass
class Built(Recording):
    """A run in which some groups launched shipped kernels."""

    def group(
        self,
        operator: str,
        dtype: str,
        launches: dict[str, Launches],
        *cases: tuple[Outcome, Grade, tuple[str, ...]],
        calls: dict[str, bool] | None = None,
        at_fault: AtFault | None = None,
    ) -> None:
        self.add(opinfo(operator, dtype), calls=calls or {operator: True})
        group = next(g.id for g in self.store.groups(self.run.id) if g.key == opinfo(operator, dtype))
        for position, (outcome, grade, kernels) in enumerate(cases):
            self.store.add_case(group, position, outcome, f"({dtype}[{position + 3}])", grade)
            if kernels:
                self.store.add_case_kernels(group, position, kernels)
            if at_fault:
                self.store.add_inner_fault(group, position, at_fault)
        self.store.add_launches(group, launches)

    def summary(self) -> AuditSummary:
        return summarize(self.store, self.finish(), SURFACE)

    def overload(self, name: str) -> OverloadSummary:
        return next(o for o in self.summary().overloads if o.name == f"aten::{name}")


@pytest.fixture
def built(tmp_path: Path) -> Iterator[Built]:
    with new_store(tmp_path) as store:
        yield begin(store)


def begin(store: Store) -> Built:
    recording = begun(store, {"ops": [], "dtypes": []}, {"variables": {}, "shipped": "2.13.0"})
    store.add_shipped_kernels(recording.run.id, ["exp_dense_float_float", "exp_dense_half_half", "mul_dense_float"])
    return Built(store, recording.run)


def shipped(outcome: Outcome = PASSED, *kernels: str) -> tuple[Outcome, Grade, tuple[str, ...]]:
    return outcome, Grade.SHIPPED_KERNEL, kernels


def stood_in(outcome: Outcome = PASSED) -> tuple[Outcome, Grade, tuple[str, ...]]:
    return outcome, Grade.DISPATCH_ONLY, ()


def test_an_overload_is_graded_by_its_own_launches_dtype_by_dtype(built: Built) -> None:
    built.group("exp", "float32", LAUNCHED, shipped(), shipped(), stood_in())
    built.group("exp", "float16", {}, stood_in())
    exp = built.overload("exp")
    assert exp.grade is Grade.SHIPPED_KERNEL
    assert {dtype: evidence.grade for dtype, evidence in exp.dtypes.items()} == {
        "float32": Grade.SHIPPED_KERNEL,
        "float16": Grade.DISPATCH_ONLY,
    }
    assert exp.shipped == ShippedLaunches(2, 2, {"exp_dense_float_float": 3}, {})
    assert built.summary().run.grades == {Grade.SHIPPED_KERNEL: 2, Grade.DISPATCH_ONLY: 2}


def test_a_call_without_a_launch_is_dispatch_only(built: Built) -> None:
    calls = {"exp": True, "mul.Tensor": False}
    built.group("exp", "float32", LAUNCHED, shipped(), calls=calls)
    assert built.overload("mul.Tensor").grade is Grade.DISPATCH_ONLY


def test_launches_next_to_a_stand_in_are_dispatch_only_with_a_reason(built: Built) -> None:
    launches = {
        "aten::exp": Launches(1, Counter(exp_dense_float_float=1), Counter(), 0),
        "aten::mul.Tensor": Launches(0, Counter(), Counter({"MPSGraph": 2, "odd": 1}), 0),
    }
    built.group("exp", "float32", launches, stood_in(), calls={"exp": True, "mul.Tensor": False})
    summary = built.summary()
    assert {o.name: o.grade for o in summary.overloads if o.grade} == {
        "aten::exp": Grade.DISPATCH_ONLY,
        "aten::mul.Tensor": Grade.DISPATCH_ONLY,
    }
    assert summary.shipped is not None
    assert summary.shipped.stood_in == (
        StandInReason("MPSGraph", ("aten::mul.Tensor",), 2),
        StandInReason(ONLY_BESIDE_STAND_INS, ("aten::exp",), 1),
    )


def test_kernels_that_a_release_lacks_are_one_reason(built: Built) -> None:
    lacking = Counter({"no kernel exp_dense_half": 2, "no kernel exp_dense_int": 2, "MPSGraph": 3})
    built.group("exp", "float32", {"aten::exp": Launches(0, Counter(), lacking, 0)}, stood_in())
    shown = built.summary().shipped
    assert shown is not None
    assert shown.stood_in == (StandInReason(LACKING, ("aten::exp",), 4),)


@pytest.mark.parametrize(
    ("outermost", "grade"), [(True, Grade.SHIPPED_KERNEL), (False, Grade.DISPATCH_ONLY)], ids=["called", "inside"]
)
def test_a_composite_is_graded_where_the_user_called_it(built: Built, outermost: bool, grade: Grade) -> None:
    built.group("inner", "float32", LAUNCHED, shipped(), calls={"inner": outermost, "exp": False})
    assert built.overload("inner").grade is grade


def test_a_composite_that_gives_a_view_computes_nothing(tmp_path: Path) -> None:
    viewing = overload("detached", Dispatch.COMPOSITE_IMPLICIT, "Tensor(a) self")
    viewing = type(viewing)(**{**vars(viewing), "schema": "aten::detached(Tensor(a) self) -> Tensor(a)"})
    changing = type(viewing)(
        **{
            **vars(viewing),
            "name": "aten::changed_",
            "operator": "aten::changed_",
            "schema": "aten::changed_(Tensor(a!) self) -> Tensor(a!)",
        }
    )
    with new_store(tmp_path) as store:
        built = begin(store)
        calls = {"detached": True, "changed_": True, "exp": False}
        built.group("detached", "float32", LAUNCHED, shipped(), calls=calls)
        summary = summarize(store, built.finish(), surface(overload("exp", Dispatch.NATIVE), viewing, changing))
    graded = {o.name: o.grade for o in summary.overloads}
    assert graded["aten::detached"] is Grade.DISPATCH_ONLY
    assert graded["aten::changed_"] is Grade.SHIPPED_KERNEL


def test_kernels_are_counted(built: Built) -> None:
    built.group("exp", "float32", LAUNCHED, shipped())
    evidence = built.summary().shipped
    assert evidence is not None
    assert (evidence.release, evidence.kernels) == ("2.13.0", 3)
    assert evidence.launches == {"exp_dense_float_float": 3}
    assert evidence.never_launched == ("exp_dense_half_half", "mul_dense_float")
    assert (evidence.native, evidence.native_shipped) == (4, 1)


def test_kernels_that_host_code_launches_are_counted(tmp_path: Path) -> None:
    host_code = {"source": "2.13.0", "macos": "26", "kernels": "2.13.0", "overloads": ["aten::exp"]}
    with new_store(tmp_path) as store:
        recording = begun(
            store, {"ops": [], "dtypes": []}, {"variables": {}, "simulated": True, "host_code": host_code}
        )
        built = Built(store, recording.run)
        built.group("exp", "float32", LAUNCHED, (PASSED, Grade.HOST_CODE, ()))
        assert built.summary().shipped is None  # the release's kernels are not recorded: nothing was counted
        store.add_shipped_kernels(recording.run.id, ["exp_dense_float_float", "mul_dense_float"])
        summary = built.summary()
        assert missed_templates(store, recording.run) == []  # not a whole audit
    assert summary.overloads[0].grade is Grade.HOST_CODE
    assert summary.shipped is not None
    assert (summary.shipped.release, summary.shipped.never_launched) == ("2.13.0", ("mul_dense_float",))
    assert "Kernels that torch 2.13.0 ships to Macs: 1 of 2 launched." in key_figures(summary)


def test_a_kernel_counts_the_cases_of_one_overload_of_each_group(built: Built) -> None:
    twice = {"aten::mul.Tensor": Launches(2, Counter(exp_dense_float_float=2), Counter(), 2)}
    built.group("exp", "float32", LAUNCHED | twice, shipped())
    built.group("exp", "float16", LAUNCHED, shipped())
    evidence = built.summary().shipped
    assert evidence is not None
    assert evidence.launches == {"exp_dense_float_float": 6}


def test_kernels_of_all_dtypes_are_one_template(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launches, "_reasons", lambda: (("sdpa_*", "no convention"),))
    names = ["exp_dense_half_half", "exp_dense_float_float", "exp_strided_int_float", "sdpa_vector_float_64"]
    assert kernel_templates(names, {"exp_dense_half_half": 2, "exp_dense_float_float": 1}) == (
        KernelTemplate("exp_strided", 1, 0, 0),
        KernelTemplate("sdpa_vector_64", 1, 0, 0, "no convention"),
        KernelTemplate("exp_dense", 2, 2, 3),
    )


@pytest.mark.parametrize(("cases", "missed"), [(2, ["mul_dense", "exp_dense"]), (3, ["mul_dense"])])
def test_a_whole_audit_names_templates_of_fewer_than_three_cases(built: Built, cases: int, missed: list[str]) -> None:
    launched = {"aten::exp": Launches(cases, Counter(exp_dense_float_float=cases), Counter(), cases)}
    built.group("exp", "float32", launched, shipped())
    run = built.finish()
    assert [template.name for template in missed_templates(built.store, run)] == missed
    assert missed_templates(built.store, replace(run, settings={"ops": ["exp"], "samples": "default"})) == []
    assert missed_templates(built.store, replace(run, settings={"samples": "quick"})) == []


def test_a_run_without_shipped_kernels_has_none(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        recording = begun(store, {"ops": [], "dtypes": []}, {"variables": {}})
        recording.add(opinfo("exp"), PASSED, calls={"exp": True})
        summary = summarize(store, recording.finish(), SURFACE)
    assert summary.shipped is None
    assert "Shipped kernels" not in markdown.render(summary)


WRONG = Outcome(CaseVerdict.WRONG, message="3 of 4 elements differ, the largest by 7")


def test_wrong_results_of_shipped_kernels_are_listed_once_with_the_smallest_inputs(built: Built) -> None:
    kernels = ("exp_dense_float_float",)
    less = Outcome(CaseVerdict.WRONG, message="1 of 4 elements differ, the largest by 2")
    built.group("exp", "float32", LAUNCHED, shipped(WRONG, *kernels), shipped(less, *kernels), stood_in(WRONG))
    built.group("softmax", "float16", {}, stood_in(WRONG))
    (wrong,) = built.summary().wrong_kernels
    assert wrong == WrongKernel(
        *("", "exp", "float32", kernels, CaseVerdict.WRONG, 2, WRONG.message, "(float32[3])", "opinfo:exp:float32:0")
    )


def test_wrong_kernel_has_the_most_certain_ulp_sensitivity_of_its_cases(built: Built) -> None:
    kernels = ("exp_dense_float_float",)
    built.group("exp", "float32", LAUNCHED, *[shipped(WRONG, *kernels)] * 3)
    group = next(g.id for g in built.store.groups(built.run.id) if g.key == opinfo("exp", "float32"))
    assert [wrong.ulp_sensitivity for wrong in built.summary().wrong_kernels] == [None]
    assert "| wrong in 3 | not tried |" in markdown.render(built.summary())
    built.store.add_ulp_sensitivity(group, 1, UlpSensitivity.SENSITIVE)
    assert [wrong.ulp_sensitivity for wrong in built.summary().wrong_kernels] == [UlpSensitivity.SENSITIVE]
    built.store.add_ulp_sensitivity(group, 2, UlpSensitivity.INSENSITIVE)
    summary = built.summary()
    assert [wrong.ulp_sensitivity for wrong in summary.wrong_kernels] == [UlpSensitivity.INSENSITIVE]
    assert "| wrong in 3 | not ULP-sensitive |" in markdown.render(summary)
    assert json_report.read(json_report.render(summary)).wrong_kernels == summary.wrong_kernels


def test_a_wrong_kernel_is_that_of_the_overload_at_fault(built: Built) -> None:
    at_fault = AtFault("aten::mul.Tensor", "(float32[2], float32[2])", "2 of 2 elements differ")
    built.group("exp", "float32", LAUNCHED, shipped(WRONG, "mul_dense_float"), at_fault=at_fault)
    (wrong,) = built.summary().wrong_kernels
    assert (wrong.overload, wrong.inputs, wrong.message) == (at_fault.overload, at_fault.call, at_fault.message)


def test_every_format_names_shipped_kernels(built: Built) -> None:
    built.group("exp", "float32", LAUNCHED, shipped(WRONG, "exp_dense_float_float"), shipped())
    built.group("mul", "float32", {"aten::mul.Tensor": Launches(0, Counter(), Counter(MPSGraph=4), 0)}, stood_in())
    summary = built.summary()
    text = markdown.render(summary)
    assert "where it is dispatch only" in text
    assert "1 of 3 launched; evidence of shipped kernels for 1 of 4 native overloads; 1 wrong result" in text
    assert "| `exp` | float32 | `exp_dense_float_float` | wrong in 1 | not tried | 3 of 4 elements differ" in text
    assert "| MPSGraph | 1 | 4 | `aten::mul.Tensor` |" in text
    assert "| UNEXPLAINED | 1 | 1 | `mul_dense` |\n" in text  # exp_dense is launched in three cases
    assert "exp_dense_float_float" in terminal.render(summary)
    assert "exp_dense_float_float" in dict(files(SiteContent(summary)))["shipped.html"]
    assert "exp_dense_float_float:3" in csv_report.render(summary)
    read = json_report.read(json_report.render(summary))
    assert (read.shipped, read.wrong_kernels) == (summary.shipped, summary.wrong_kernels)
    assert select(summary, patterns=["mul.Tensor"]).wrong_kernels == ()
    assert select(summary, patterns=["exp"]).wrong_kernels == summary.wrong_kernels


def test_the_registry_learns_the_dtypes(built: Built) -> None:
    built.group("exp", "float32", LAUNCHED, shipped())
    built.group("exp", "float16", {}, stood_in())
    measured = {row.operator: row.shipped_kernel for row in measurements_of(built.summary())}
    assert measured["aten::exp"] == ("float32",)
