"""Every rule that turns cases into verdicts, on stores and surfaces built by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from mpsmith.audit.findings.results import AuditSummary, OverloadSummary, RegistryStatus
from mpsmith.audit.findings.summary import summarize
from mpsmith.audit.findings.summary_filter import select
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.verdicts import COMPARED_ERRORS, CaseVerdict, Outcome, OverloadVerdict
from mpsmith.audit.releases.surface.overloads import Dispatch, Surface
from mpsmith.audit.releases.surface.reachability import Unreachable
from mpsmith.audit.store.records import ModuleRow, ModuleStatus
from mpsmith.errors import MpsmithError
from mpsmith.reports.audit_tables import rule_table
from support.stores import Recording, begun, new_store
from support.surfaces import overload, surface

PASSED = Outcome(CaseVerdict.PASSED)


SURFACE = surface(
    overload("relu", Dispatch.NATIVE),
    overload("add.Tensor", Dispatch.STRUCTURED_DELEGATE, "Tensor self, Tensor other, *, Scalar alpha=1"),
    overload("sum", Dispatch.NATIVE),
    overload("where.self", Dispatch.NATIVE),
    overload("heaviside", Dispatch.MISSING, "Tensor self, Tensor values"),
    overload("heaviside_", Dispatch.MISSING, "Tensor(a!) self, Tensor values"),
    overload("heaviside.out", Dispatch.MISSING, "Tensor self, Tensor values, *, Tensor(a!) out"),
    overload("mode", Dispatch.MISSING, "Tensor self, int dim=-1, bool keepdim=False"),
    overload("mode.values", Dispatch.MISSING),
    overload("linalg_svd", Dispatch.COMPOSITE_IMPLICIT),
    overload("_linalg_svd", Dispatch.ALWAYS_FALLS_BACK),
    overload("softshrink", Dispatch.STRUCTURED_DELEGATE, "Tensor self, Scalar lambd=0.5"),
    overload("softshrink.out", Dispatch.NATIVE, "Tensor self, Scalar lambd=0.5, *, Tensor(a!) out"),
    overload("softshrink_backward", Dispatch.MISSING),
    overload("mkldnn_convolution", Dispatch.MISSING, reach=Unreachable("mkldnn", "CPU packed format")),
    overload("relu.generated_out", Dispatch.COMPOSITE_EXPLICIT, generated_from="aten::relu"),
)


@dataclass
class Built(Recording):
    """A run under construction, and what it says of the overloads."""

    def case(
        self,
        operator: str,
        *outcomes: Outcome,
        dtype: str = "float32",
        mode: str = "fallback",
        calls: dict[str, bool] | None = None,
        variant: str = "",
        source: str = "opinfo",
    ) -> None:
        key = GroupKey(source, operator, variant, dtype, mode)
        self.add(key, *outcomes, inputs="(tensor)", calls=calls)

    def summary(self, surface: Surface = SURFACE) -> AuditSummary:
        return summarize(self.store, self.store.run(self.run.id), surface)

    def overload(self, name: str) -> OverloadSummary:
        return next(o for o in self.summary().overloads if o.name == f"aten::{name}")


@pytest.fixture
def built(tmp_path: Path) -> Iterator[Built]:
    with new_store(tmp_path) as store:
        yield Built(store, begun(store, {"ops": [], "dtypes": []}).run)


def fault(verdict: CaseVerdict, message: str = "broken", **fields: object) -> Outcome:
    return Outcome(verdict, message=message, **fields)  # type: ignore[arg-type]


# ---- what is not known of a Mac


def test_case_of_a_rule_that_knows_no_mac_decides_no_verdict(built: Built) -> None:
    unchecked = (
        "returns where the CPU raises RuntimeError: Expected query, key, and value to have the same dtype, but got"
    )
    entry = "scaled_dot_product_attention"
    listed = surface(overload(entry, Dispatch.NATIVE), overload("relu", Dispatch.NATIVE))
    built.case(entry, fault(CaseVerdict.WRONG, unchecked), calls={entry: True})
    built.case("relu", fault(CaseVerdict.WRONG, unchecked), calls={"relu": True})
    summary = built.summary(listed)
    attention, relu = summary.overloads
    assert (attention.verdict, attention.executed) == (OverloadVerdict.UNREACHABLE, 0)
    assert attention.reason == "called only inside cases that say nothing about it (wrong)"
    assert relu.verdict is OverloadVerdict.WRONG
    assert summary.explanation.unknown_on_mac == {"simulated-attention-unchecked"}
    assert rule_table(summary).rows[0][4] == "the simulated device, counts for no overload"


# ---- support


def test_an_overload_called_in_passing_cases_is_native_or_composite_as_the_surface_says(built: Built) -> None:
    built.case("relu", PASSED, PASSED, calls={"relu": True, "linalg_svd": False})
    assert built.overload("relu").verdict is OverloadVerdict.NATIVE
    assert built.overload("relu").executed == 2
    assert built.overload("relu").entries == ("relu",)
    assert built.overload("linalg_svd").verdict is OverloadVerdict.COMPOSITE


def test_an_overload_outside_the_surface_is_reported_too(built: Built) -> None:
    key = GroupKey("opinfo", "torchvision.nms", "", "float32", "fallback")
    built.store.plan(built.run.id, [key])
    built.store.add_case(1, 0, PASSED, "")
    built.store.add_called_overloads(1, {"torchvision::nms": True})
    overload = built.summary().overloads[-1]
    assert (overload.name, overload.operator, overload.dispatch) == ("torchvision::nms", "torchvision::nms", None)
    assert overload.verdict is OverloadVerdict.NATIVE


# ---- precedence


@pytest.mark.parametrize(
    ("cases", "expected"),
    [
        ("passed", "native"),
        ("passed, dtype gap", "dtype gap"),
        ("dtype gap, fallback", "fallback"),
        ("fallback, missing", "missing"),
        ("missing, wrong", "wrong"),
        ("wrong, timeout", "timeout"),
        ("timeout, crash, passed, wrong, missing", "crash"),
        ("reference failed", "reference failed"),
        ("reference failed, passed", "native"),
        ("skipped", "unreachable"),
    ],
)
def test_the_worst_finding_decides(built: Built, cases: str, expected: str) -> None:
    outcomes = [fault(CaseVerdict(name)) for name in cases.split(", ")]
    built.case("relu", *outcomes, calls={"relu": True})
    assert built.overload("relu").verdict.value == expected


def test_a_dtype_that_the_cpu_refuses_too_has_no_reference(built: Built) -> None:
    refusal = replace(PASSED, compared=COMPARED_ERRORS)
    built.case("relu", PASSED, calls={"relu": True})
    built.case("relu", refusal, dtype="complex64", calls={"relu": True})
    built.case("sum", refusal, refusal, calls={"sum": True})
    relu, total = built.overload("relu"), built.overload("sum")
    assert (relu.verdict, relu.executed) == (OverloadVerdict.NATIVE, 1)
    assert relu.dtypes["complex64"].verdict is total.verdict is OverloadVerdict.REFERENCE_FAILED
    assert total.reason == "the CPU and the device refuse every call: 2"


def test_a_refused_dtype_is_a_gap_only_where_another_works(built: Built) -> None:
    built.case("relu", PASSED, dtype="float32", calls={"relu": True})
    built.case("relu", fault(CaseVerdict.DTYPE_GAP), dtype="complex64")
    built.case("sum", fault(CaseVerdict.DTYPE_GAP), dtype="complex64", calls={"sum": True})
    relu, total = built.overload("relu"), built.overload("sum")
    assert relu.verdict is OverloadVerdict.DTYPE_GAP
    assert {dtype: e.verdict.value for dtype, e in relu.dtypes.items()} == {
        "float32": "native",
        "complex64": "dtype gap",
    }
    assert total.verdict is OverloadVerdict.MISSING
    assert "every dtype of this run is refused" in total.reason


# ---- fallbacks


def test_a_fallback_is_attributed_only_to_the_named_overload(built: Built) -> None:
    fell_back = fault(CaseVerdict.FALLBACK, "", fallbacks=("aten::mode",))
    built.case("mode", fell_back, PASSED, calls={"mode": True, "mode.values": True, "sum": True})
    assert built.overload("mode").verdict is OverloadVerdict.FALLBACK
    assert built.overload("mode").cases == {CaseVerdict.FALLBACK: 1}
    assert built.overload("mode.values").verdict is OverloadVerdict.NATIVE  # disagrees with the surface, see below
    assert built.overload("sum").verdict is OverloadVerdict.NATIVE
    assert not built.overload("mode").verdict.is_support


def test_a_structured_fallback_covers_the_overloads_that_hand_over_to_the_out_overload(built: Built) -> None:
    fell_back = fault(CaseVerdict.FALLBACK, "", fallbacks=("aten::heaviside.out",))
    built.case("heaviside", fell_back, calls={"heaviside": True})
    assert built.overload("heaviside.out").verdict is OverloadVerdict.FALLBACK
    assert built.overload("heaviside").verdict is OverloadVerdict.FALLBACK
    assert built.overload("heaviside_").verdict is OverloadVerdict.UNREACHABLE  # no case called it


def test_strict_mode_distinguishes_missing_from_fallback(built: Built) -> None:
    built.case("mode", fault(CaseVerdict.FALLBACK, "", fallbacks=("aten::mode",)), calls={"mode": True})
    assert built.overload("mode").reason == "1 of 1 cases"
    refused = fault(CaseVerdict.MISSING, fallbacks=("aten::_linalg_svd", "aten::mode"))
    built.case("mode", refused, mode="strict")
    assert built.overload("mode").verdict is OverloadVerdict.MISSING
    assert built.overload("mode").cases == {CaseVerdict.MISSING: 1, CaseVerdict.FALLBACK: 1}
    assert built.overload("mode").reason == "1 of 2 cases, refused in strict mode"
    assert built.overload("_linalg_svd").verdict is OverloadVerdict.FALLBACK
    (svd, mode) = built.summary().fallbacks
    assert (mode.overload, mode.fell_back, mode.refused) == ("aten::mode", 1, 1)
    assert (svd.overload, svd.fell_back, svd.refused) == ("aten::_linalg_svd", 1, 0)


def test_a_missing_case_that_names_no_operator_is_not_lost(built: Built) -> None:
    built.case("mode", fault(CaseVerdict.MISSING), calls={"mode": True})
    assert built.overload("mode").verdict is OverloadVerdict.MISSING


def test_a_composite_whose_part_fell_back_is_not_supported(built: Built) -> None:
    fell_back = fault(CaseVerdict.FALLBACK, "", fallbacks=("aten::_linalg_svd",))
    built.case("linalg.svd", PASSED, fell_back, calls={"linalg_svd": True, "_linalg_svd": False})
    svd = built.overload("linalg_svd")
    assert svd.verdict is OverloadVerdict.FALLBACK
    assert svd.inner_fallbacks == ("aten::_linalg_svd",)
    assert [f.overload for f in built.summary().fallbacks] == ["aten::_linalg_svd"]


def test_a_fallback_of_the_backward_alone_does_not_mark_the_forward(built: Built) -> None:
    fell_back = fault(CaseVerdict.FALLBACK, "", fallbacks=("aten::softshrink_backward",))
    built.case("nn.functional.softshrink", fell_back, calls={"softshrink": True, "softshrink_backward": False})
    assert built.overload("softshrink").verdict is OverloadVerdict.NATIVE
    assert built.overload("softshrink_backward").verdict is OverloadVerdict.FALLBACK


def test_calls_inside_a_fallback_are_not_evidence_for_the_device(built: Built) -> None:
    fell_back = fault(CaseVerdict.FALLBACK, "", fallbacks=("aten::mode",))
    built.case("mode", fell_back, calls={"mode": True, "sum": False})
    overload = built.overload("sum")
    assert overload.verdict is OverloadVerdict.UNREACHABLE
    assert overload.reason == "called only inside cases that say nothing about it (fallback)"


# ---- faults that name no operator


def test_a_wrong_result_is_attributed_to_the_outermost_overload(built: Built) -> None:
    wrong = fault(CaseVerdict.WRONG, "3 of 4 elements differ", stage="backward", max_error=7.0)
    built.case("relu", PASSED, wrong, calls={"relu": True, "sum": False})
    relu = built.overload("relu")
    assert relu.verdict is OverloadVerdict.WRONG
    assert relu.reason == "1 of 2 cases, in the backward: 3 of 4 elements differ"
    assert built.overload("sum").verdict is OverloadVerdict.NATIVE


def test_a_case_is_attributed_to_the_outermost_overload_named_like_the_entry(built: Built) -> None:
    built.case("linalg.svd", fault(CaseVerdict.CRASH), calls={"linalg_svd": True, "sum": True})
    assert built.overload("linalg_svd").verdict is OverloadVerdict.CRASH
    assert built.overload("linalg_svd").shared_with == ()
    assert built.overload("sum").verdict is OverloadVerdict.UNREACHABLE


def test_without_a_namesake_a_case_is_attributed_to_every_outermost_overload(built: Built) -> None:
    built.case("masked.mean", fault(CaseVerdict.WRONG), calls={"where.self": True, "sum": True, "relu": False})
    overload = built.overload("where.self")
    assert overload.verdict is OverloadVerdict.WRONG
    assert overload.shared_with == ("aten::sum",)
    assert "this or one of aten::sum" in overload.reason
    assert built.overload("sum").shared_with == ("aten::where.self",)


def test_when_all_suspects_are_cleared_the_finding_is_listed_by_its_entry(built: Built) -> None:
    built.case("masked.mean", fault(CaseVerdict.WRONG), PASSED, calls={"where.self": True, "sum": True})
    built.case("where", PASSED, calls={"where.self": True})
    built.case("sum", PASSED, calls={"sum": True})
    assert built.overload("where.self").verdict is OverloadVerdict.NATIVE
    assert built.overload("sum").verdict is OverloadVerdict.NATIVE
    (finding,) = built.summary().unattributed
    assert (finding.entry, finding.verdict, finding.cases) == ("masked.mean", CaseVerdict.WRONG, 1)
    assert finding.suspects == ("aten::sum", "aten::where.self")


def test_overloads_of_the_entrys_own_operator_are_never_all_cleared(built: Built) -> None:
    built.case("mode", fault(CaseVerdict.WRONG), calls={"mode": True, "mode.values": True})
    built.case("other", PASSED, calls={"mode": True})
    built.case("another", PASSED, calls={"mode.values": True})
    assert built.overload("mode").verdict is OverloadVerdict.WRONG
    assert built.overload("mode.values").verdict is OverloadVerdict.WRONG
    assert built.summary().unattributed == ()


def test_cpu_operators_inside_simulated_kernels_are_not_evidence(built: Built) -> None:
    built.case("relu", PASSED, calls={"relu": True, "mode": False})
    overload = built.overload("mode")
    assert overload.verdict is OverloadVerdict.UNREACHABLE
    assert overload.reason == "seen only inside kernels of the simulated device, which run on the CPU"


def test_on_a_real_device_an_inner_call_without_a_fallback_is_evidence(built: Built) -> None:
    built.run = built.store.begin_run({}, {"simulated": False})
    built.case("relu", PASSED, calls={"relu": True, "mode": False})
    assert built.overload("mode").verdict is OverloadVerdict.NATIVE
    assert [d.overload for d in built.summary().disagreements] == ["aten::mode"]


def test_entries_of_one_name_are_shown_together_and_attributed_apart(built: Built) -> None:
    built.case("relu", PASSED, PASSED, calls={"relu": True})
    built.case("relu", fault(CaseVerdict.WRONG), PASSED, calls={"sum": True}, source="modules")
    built.case("relu", PASSED, calls={"sum": True}, source="modules", dtype="int8")
    (entry,) = built.summary().entries
    assert (entry.name, entry.sources, entry.executed) == ("relu", ("modules", "opinfo"), 5)
    assert entry.dtypes["float32"].cases == {CaseVerdict.WRONG: 1, CaseVerdict.PASSED: 3}
    assert built.overload("relu").verdict is OverloadVerdict.NATIVE
    summed = built.overload("sum")
    assert summed.verdict is OverloadVerdict.NATIVE
    assert [(breakage.verdict, breakage.cases, breakage.dtypes) for breakage in summed.breakages] == [
        (CaseVerdict.WRONG, 1, ("float32",))
    ]


def test_broken_cases_are_listed_beside_the_prevailing_verdict(built: Built) -> None:
    fell_back = fault(CaseVerdict.FALLBACK, "", fallbacks=("aten::mode",))
    odd = fault(CaseVerdict.WRONG, "out= is refused in other words")
    built.case("mode", fell_back, fell_back, odd, calls={"mode": True})
    built.case("mode", fault(CaseVerdict.MISSING, fallbacks=("aten::mode",)), mode="strict")
    built.case("mode.values", odd, odd, dtype="float32", source="schema")
    built.case("mode.values", PASSED, odd, dtype="int8", source="schema")
    summary = built.summary()
    mode = next(o for o in summary.overloads if o.name == "aten::mode")
    assert mode.verdict is OverloadVerdict.MISSING
    assert mode.reason.endswith("; wrong in 1 of 4 cases, out= is refused in other words")
    (broken,) = mode.breakages
    assert summary.cases[broken.worst_case].message == broken.message == "out= is refused in other words"
    in_float32 = mode.dtypes["float32"]
    assert (in_float32.verdict, in_float32.broken_case) == (OverloadVerdict.MISSING, broken.worst_case)
    values = next(o for o in summary.overloads if o.name == "aten::mode.values")
    assert (values.verdict, values.breakages) == (OverloadVerdict.WRONG, ())
    (operator,) = (o for o in summary.operators if o.name == "aten::mode")
    # mode.values writes into out=, which few programs do: it does not decide the verdict of mode.
    assert (operator.verdict, operator.breakages) == (OverloadVerdict.MISSING, (CaseVerdict.WRONG,))
    assert operator.dtypes == {"float32": OverloadVerdict.MISSING}
    assert operator.dtype_breakages == {"float32": (CaseVerdict.WRONG,)}


def test_an_overload_that_breaks_in_some_cases_is_not_counted_as_supported(built: Built) -> None:
    built.case("relu", PASSED, PASSED, PASSED, fault(CaseVerdict.CRASH, "signal 11"), calls={"relu": True})
    summary = built.summary()
    relu = next(o for o in summary.overloads if o.name == "aten::relu")
    assert relu.verdict is OverloadVerdict.NATIVE
    assert not relu.is_supported
    assert relu.reason == "3 cases passed; crash in 1 of 4 cases, signal 11"
    assert (summary.supported, summary.partly_broken) == (0, 1)


def test_a_crash_before_anything_was_traced_is_found_by_other_dtypes_then_by_name(built: Built) -> None:
    built.case("masked.mean", PASSED, calls={"where.self": True}, dtype="float32")
    built.case("masked.mean", fault(CaseVerdict.CRASH), dtype="bool")
    built.case("sum", fault(CaseVerdict.TIMEOUT))
    assert built.overload("where.self").verdict is OverloadVerdict.CRASH
    assert built.overload("sum").verdict is OverloadVerdict.TIMEOUT


def test_a_finding_without_an_overload_is_listed(built: Built) -> None:
    built.case("nothing.like.it", fault(CaseVerdict.CRASH, "signal 11"))
    summary = built.summary()
    (finding,) = summary.unattributed
    assert (finding.entry, finding.verdict, finding.cases) == ("nothing.like.it", CaseVerdict.CRASH, 1)
    assert summary.cases[finding.worst_case].message == "signal 11"


def test_the_largest_error_is_the_worst_case_and_an_exception_is_worse(built: Built) -> None:
    errors = [fault(CaseVerdict.WRONG, f"{e}", max_error=e) for e in (2.0, 90.0, 3.0)]
    built.case("relu", *errors, calls={"relu": True}, dtype="float32")
    built.case("relu", fault(CaseVerdict.WRONG, "raises"), dtype="bool")
    built.case("relu6", fault(CaseVerdict.WRONG, "1", max_error=1.0), calls={"relu": True})
    summary = built.summary()
    assert summary.cases["opinfo:relu6:float32:0"].max_error == 1.0, "the worst of its entry"
    relu = summary.overloads[0]
    assert relu.worst_case is not None
    assert summary.cases[relu.worst_case].message == "raises"
    in_float32 = relu.dtypes["float32"].worst_case
    assert in_float32 is not None
    assert summary.cases[in_float32].max_error == 90.0
    assert summary.cases[in_float32].replay == f"mpsmith replay {in_float32}"


# ---- what was not executed


def test_an_overload_without_evidence_is_unreachable_with_the_reason(built: Built) -> None:
    built.case("relu", PASSED, calls={"relu": True})
    assert built.overload("mkldnn_convolution").reason == "mkldnn: CPU packed format"
    assert built.overload("mode").reason == "not executed; the surface says missing"
    assert built.overload("sum").reason == "no case of this run calls it (1 cases, selected by: samples default)"
    for name in ("mkldnn_convolution", "mode", "sum"):
        assert built.overload(name).verdict is OverloadVerdict.UNREACHABLE


def test_every_overload_of_the_surface_has_a_verdict_and_a_reason(built: Built) -> None:
    summary = built.summary()
    assert [o.name for o in summary.overloads] == [o.name for o in SURFACE.overloads]
    assert all(o.reason for o in summary.overloads)
    assert summary.supported == 0


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("/x/torchgen/a.yaml", "torchgen/a.yaml"),
        ("C:\\torchgen/a.yaml", "torchgen/a.yaml"),
        ("my torchgen", "my torchgen"),
    ],
)
def test_the_origin_of_the_surface_is_shown_without_this_machines_folder(built: Built, source: str, shown: str) -> None:
    assert built.summary(replace(SURFACE, source=source)).surface_source == shown


def test_an_unfinished_run_says_how_far_it_came(built: Built) -> None:
    built.case("relu", PASSED, fault(CaseVerdict.SKIPPED, "not selected"), calls={"relu": True})
    built.store.plan(built.run.id, [GroupKey("opinfo", "sum", "", "float32", "fallback")])
    run = built.summary().run
    assert (run.groups_planned, run.groups_done, run.recorded, run.executed) == (2, 1, 2, 1)
    assert not run.finished
    assert not run.complete
    planned_only = next(e for e in built.summary().entries if e.name == "sum")
    assert (planned_only.verdict, planned_only.executed) == (None, 0)


def test_a_finished_run_is_complete(built: Built) -> None:
    built.case("relu", PASSED)
    built.finish()
    summary = built.summary()
    assert summary.run.complete
    assert summary.execution is not None
    assert summary.execution.duration is not None


# ---- roll-ups


def test_an_operator_has_the_worst_verdict_of_its_overloads_by_dtype(built: Built) -> None:
    fell_back = fault(CaseVerdict.FALLBACK, "", fallbacks=("aten::mul.Scalar",))
    built.case("mul", fell_back, dtype="int8", calls={"mul.Scalar": True})
    built.case("other", PASSED, dtype="int8", calls={"mul.Tensor": True})
    built.case("other", PASSED, dtype="float32", calls={"mul.Tensor": True})
    both = surface(overload("mul.Scalar", Dispatch.MISSING), overload("mul.Tensor", Dispatch.MISSING))
    mul = next(o for o in built.summary(both).operators if o.name == "aten::mul")
    assert mul.verdict is OverloadVerdict.FALLBACK
    assert {dtype: verdict.value for dtype, verdict in mul.dtypes.items()} == {"float32": "native", "int8": "fallback"}
    assert mul.overloads == ("aten::mul.Scalar", "aten::mul.Tensor")


def test_totals_count_every_case_once(built: Built) -> None:
    built.case("relu", PASSED, PASSED, fault(CaseVerdict.WRONG), dtype="float32", calls={"relu": True, "sum": True})
    built.case("relu", PASSED, fault(CaseVerdict.SKIPPED, "too large"), dtype="int8", variant="x")
    built.case("mode", fault(CaseVerdict.MISSING, fallbacks=("aten::mode",)), mode="strict")
    summary = built.summary()
    assert summary.totals == {
        "fallback": {CaseVerdict.WRONG: 1, CaseVerdict.PASSED: 3, CaseVerdict.SKIPPED: 1},
        "strict": {CaseVerdict.MISSING: 1},
    }
    assert summary.dtype_totals["int8"] == {CaseVerdict.PASSED: 1, CaseVerdict.SKIPPED: 1}
    assert summary.skips == {"too large": 1}
    assert [e.name for e in summary.entries] == ["mode", "relu", "relu.x"]


def test_a_passed_case_in_which_something_fell_back_counts_once(built: Built) -> None:
    built.case("relu", PASSED, Outcome(CaseVerdict.PASSED, fallbacks=("aten::mode",)), calls={"relu": True})
    assert built.overload("relu").cases == {CaseVerdict.PASSED: 2}
    assert built.overload("mode").cases == {CaseVerdict.FALLBACK: 1}
    (entry,) = built.summary().entries
    assert entry.executed == 2


def test_disagreements_go_both_ways(built: Built) -> None:
    built.case("softshrink", fault(CaseVerdict.FALLBACK, "", fallbacks=("aten::softshrink.out",)))
    built.case("mode", PASSED, calls={"mode": True})
    native, missing = built.summary().disagreements
    assert (native.overload, native.observed) == ("aten::softshrink.out", "fell back in 1 cases, refused in 0")
    assert (missing.overload, missing.observed) == ("aten::mode", "ran in 1 cases without a fallback")


def test_the_registry_is_shown_and_changes_no_verdict(built: Built) -> None:
    built.case("relu", PASSED, calls={"relu": True})
    run = built.store.run(built.run.id)
    summary = summarize(built.store, run, SURFACE, {"aten::relu": RegistryStatus("missing", None, "#1")})
    relu = next(o for o in summary.operators if o.name == "aten::relu")
    assert relu.registered == RegistryStatus("missing", None, "#1")
    assert relu.verdict is OverloadVerdict.NATIVE


def test_runs_of_one_store_do_not_mix(built: Built) -> None:
    built.case("relu", PASSED, calls={"relu": True})
    second = built.store.begin_run({"ops": ["relu", "sum"], "dtypes": ["int8"]}, {})
    summary = summarize(built.store, second, SURFACE)
    assert summary.run.executed == 0
    assert summary.overloads[0].reason.endswith("(0 cases, selected by: ops relu, sum; dtypes int8)")
    assert not summary.run.simulated
    assert all(o.verdict is OverloadVerdict.UNREACHABLE for o in summary.overloads)


# ---- selection


def test_filters_select_overloads_and_keep_the_run(built: Built) -> None:
    built.case("relu", PASSED, calls={"relu": True})
    built.case("mode", fault(CaseVerdict.FALLBACK, "", fallbacks=("aten::mode",)), dtype="int8", calls={"mode": True})
    summary = built.summary()
    by_verdict = select(summary, verdicts=[OverloadVerdict.FALLBACK])
    assert [o.name for o in by_verdict.overloads] == ["aten::mode"]
    assert [o.name for o in by_verdict.operators] == ["aten::mode"]
    assert by_verdict.totals == summary.totals
    assert [o.name for o in select(summary, patterns=["rel?"]).overloads] == ["aten::relu", "aten::relu.generated_out"]
    assert [o.name for o in select(summary, patterns=["aten::mode*"]).overloads] == ["aten::mode", "aten::mode.values"]
    assert [o.name for o in select(summary, patterns=["linalg.sv?"]).overloads] == ["aten::linalg_svd"]
    assert [o.name for o in select(summary, dtypes=["int8"]).overloads] == ["aten::mode"]
    assert select(summary, [OverloadVerdict.NATIVE], (), ["int8"]).overloads == ()


@pytest.mark.parametrize(
    "filters", [{"verdicts": [OverloadVerdict.NATIVE]}, {"patterns": ["relu"]}, {"dtypes": ["float32"]}]
)
def test_a_filtered_report_has_no_other_findings(built: Built, filters: dict[str, list[object]]) -> None:
    built.case("relu", PASSED, calls={"relu": True})
    built.case("nothing.like.it", fault(CaseVerdict.CRASH, "signal 11"))
    built.store.add_module_row(built.run.id, ModuleRow("torch.mps.synchronize", ModuleStatus.WORKS))
    summary = built.summary()
    assert summary.unattributed
    assert summary.module
    part = select(summary, **filters)  # type: ignore[arg-type]
    assert part.overloads
    assert part.unattributed == ()
    assert part.module == ()


def test_filters_that_can_match_nothing_are_errors(built: Built) -> None:
    built.case("relu", PASSED, calls={"relu": True})
    with pytest.raises(MpsmithError, match=r"no operator or entry of this report matches nosuch \(`mpsmith coverage"):
        select(built.summary(), patterns=["nosuch"])
    with pytest.raises(MpsmithError, match=r"no case has dtype 'float64' \(this run has float32\)"):
        select(built.summary(), dtypes=["float64"])
